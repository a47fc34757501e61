//! The node's methods that the host calls.

pub struct Need {
    pub purpose: &'static str,
    pub methods: &'static [&'static str],
    /// Whether the host cannot work without them.
    pub is_vital: bool,
}

const fn vital(purpose: &'static str, methods: &'static [&'static str]) -> Need {
    Need { purpose, methods, is_vital: true }
}

const fn useful(purpose: &'static str, methods: &'static [&'static str]) -> Need {
    Need { purpose, methods, is_vital: false }
}

/// config/bitcoind.md has the same table.
pub const NEEDS: [Need; 10] = [
    vital("the chain", &["getbestblockhash", "getblockchaininfo", "getblockcount", "getblockhash", "getblockheader"]),
    vital("blocks", &["getblock"]),
    vital("the mempool", &["getmempoolentry", "getmempoolinfo", "getrawmempool", "getrawtransaction"]),
    useful("the node's state", &["getchainstates", "getchaintips", "getnetworkinfo", "help", "uptime"]),
    useful("notifications", &["getrpcinfo", "getzmqnotifications", "waitfornewblock"]),
    useful("rescans by block filters", &["getblockfilter", "getindexinfo"]),
    useful("payments", &["estimatesmartfee", "gettxspendingprevout", "sendrawtransaction", "testmempoolaccept"]),
    useful("unspent outputs", &["gettxout"]),
    useful(
        "templates and mining",
        &[
            "getblocktemplate",
            "getdeploymentinfo",
            "getprioritisedtransactions",
            "invalidateblock",
            "preciousblock",
            "prioritisetransaction",
            "reconsiderblock",
            "setmocktime",
            "submitblock",
            "submitheader",
        ],
    ),
    useful("the count of its wallets", &["listwallets"]),
];

pub(crate) fn is_listed(method: &str) -> bool {
    NEEDS.iter().any(|need| need.methods.contains(&method))
}
