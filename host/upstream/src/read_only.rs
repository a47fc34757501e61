//! The methods that can be asked twice.

/// bitcoind's methods without effects, sorted: where the connection ended before any byte of the reply, these are sent again.
const READ_ONLY: [&str; 61] = [
    "analyzepsbt",
    "combinepsbt",
    "combinerawtransaction",
    "converttopsbt",
    "createmultisig",
    "createpsbt",
    "createrawtransaction",
    "decodepsbt",
    "decoderawtransaction",
    "decodescript",
    "deriveaddresses",
    "descriptorprocesspsbt",
    "estimaterawfee",
    "estimatesmartfee",
    "finalizepsbt",
    "getaddednodeinfo",
    "getaddrmaninfo",
    "getbestblockhash",
    "getblock",
    "getblockchaininfo",
    "getblockcount",
    "getblockfilter",
    "getblockhash",
    "getblockheader",
    "getblockstats",
    "getblocktemplate",
    "getchainstates",
    "getchaintips",
    "getchaintxstats",
    "getconnectioncount",
    "getdeploymentinfo",
    "getdescriptoractivity",
    "getdescriptorinfo",
    "getdifficulty",
    "getindexinfo",
    "getmemoryinfo",
    "getmempoolancestors",
    "getmempooldescendants",
    "getmempoolentry",
    "getmempoolinfo",
    "getmininginfo",
    "getnettotals",
    "getnetworkhashps",
    "getnetworkinfo",
    "getnodeaddresses",
    "getorphantxs",
    "getpeerinfo",
    "getprioritisedtransactions",
    "getrawmempool",
    "getrawtransaction",
    "gettxout",
    "gettxoutproof",
    "gettxoutsetinfo",
    "gettxspendingprevout",
    "getzmqnotifications",
    "help",
    "listbanned",
    "testmempoolaccept",
    "validateaddress",
    "verifymessage",
    "verifytxoutproof",
];

/// Whether a method of bitcoind has no effects.
pub fn is_read_only(method: &str) -> bool {
    READ_ONLY.binary_search(&method).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_only_methods_are_sorted_and_change_nothing() {
        assert!(READ_ONLY.is_sorted());
        assert!(is_read_only("getblock") && !is_read_only("sendrawtransaction") && !is_read_only("stop"));
    }
}
