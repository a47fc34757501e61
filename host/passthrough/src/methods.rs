//! What is known of bitcoind's methods without asking the node.

/// The wallet methods of all releases from 0.21 on, hidden ones included, sorted. A node that runs with `-disablewallet` lists
/// none of them in its help.
const WALLET: [&str; 71] = [
    "abandontransaction",
    "abortrescan",
    "addmultisigaddress",
    "backupwallet",
    "bumpfee",
    "createwallet",
    "createwalletdescriptor",
    "dumpprivkey",
    "dumpwallet",
    "encryptwallet",
    "enumeratesigners",
    "fundrawtransaction",
    "getaddressesbylabel",
    "getaddressinfo",
    "getbalance",
    "getbalances",
    "gethdkeys",
    "getnewaddress",
    "getrawchangeaddress",
    "getreceivedbyaddress",
    "getreceivedbylabel",
    "gettransaction",
    "getunconfirmedbalance",
    "getwalletinfo",
    "importaddress",
    "importdescriptors",
    "importmulti",
    "importprivkey",
    "importprunedfunds",
    "importpubkey",
    "importwallet",
    "keypoolrefill",
    "listaddressgroupings",
    "listdescriptors",
    "listlabels",
    "listlockunspent",
    "listreceivedbyaddress",
    "listreceivedbylabel",
    "listsinceblock",
    "listtransactions",
    "listunspent",
    "listwalletdir",
    "listwallets",
    "loadwallet",
    "lockunspent",
    "migratewallet",
    "newkeypool",
    "psbtbumpfee",
    "removeprunedfunds",
    "rescanblockchain",
    "resendwallettransactions",
    "restorewallet",
    "send",
    "sendall",
    "sendmany",
    "sendtoaddress",
    "sethdseed",
    "setlabel",
    "settxfee",
    "setwalletflag",
    "signmessage",
    "signrawtransactionwithwallet",
    "simulaterawtransaction",
    "unloadwallet",
    "upgradewallet",
    "walletcreatefundedpsbt",
    "walletdisplayaddress",
    "walletlock",
    "walletpassphrase",
    "walletpassphrasechange",
    "walletprocesspsbt",
];

/// Whether bitcoind has, or had, a wallet method of this name.
pub(crate) fn is_wallet_method(method: &str) -> bool {
    WALLET.binary_search(&method).is_ok()
}

/// The methods of the node alone that have effects, sorted: with those without effects, all that pass while the node's help is
/// not known.
const EFFECTS: [&str; 33] = [
    "addconnection",
    "addnode",
    "addpeeraddress",
    "clearbanned",
    "disconnectnode",
    "dumptxoutset",
    "generateblock",
    "generatetoaddress",
    "generatetodescriptor",
    "getblockfrompeer",
    "importmempool",
    "invalidateblock",
    "loadtxoutset",
    "logging",
    "mockscheduler",
    "ping",
    "preciousblock",
    "prioritisetransaction",
    "pruneblockchain",
    "reconsiderblock",
    "savemempool",
    "scanblocks",
    "scantxoutset",
    "sendmsgtopeer",
    "sendrawtransaction",
    "setban",
    "setmocktime",
    "setnetworkactive",
    "submitblock",
    "submitheader",
    "submitpackage",
    "utxoupdatepsbt",
    "verifychain",
];

/// Whether a method is known to be one of the node, and none of its wallets.
pub(crate) fn is_node_method(method: &str) -> bool {
    outrigger_upstream::is_read_only(method)
        || EFFECTS.binary_search(&method).is_ok()
        || WAITING.binary_search(&method).is_ok()
}

/// Methods of the node that only wait, which no help lists.
const WAITING: [&str; 3] = ["waitforblock", "waitforblockheight", "waitfornewblock"];

/// Whether a method is known, as one of the node or of its wallets.
pub fn is_known(method: &str) -> bool {
    is_node_method(method) || is_wallet_method(method)
}

/// Whether a method changes the node for everyone, or writes or reads files of its machine.
pub(crate) fn changes_node(method: &str) -> bool {
    matches!(
        method,
        "addconnection"
            | "addnode"
            | "addpeeraddress"
            | "clearbanned"
            | "disconnectnode"
            | "dumptxoutset"
            | "getblockfrompeer"
            | "importmempool"
            | "invalidateblock"
            | "loadtxoutset"
            | "logging"
            | "mockscheduler"
            | "preciousblock"
            | "pruneblockchain"
            | "reconsiderblock"
            | "savemempool"
            | "sendmsgtopeer"
            | "setban"
            | "setmocktime"
            | "setnetworkactive"
            | "stop"
    )
}

/// Whether a wallet method is about other wallets than the one it is called for, or about files.
pub(crate) fn manages_wallets(method: &str) -> bool {
    matches!(
        method,
        "backupwallet"
            | "createwallet"
            | "dumpwallet"
            | "importwallet"
            | "listwalletdir"
            | "listwallets"
            | "loadwallet"
            | "migratewallet"
            | "restorewallet"
            | "unloadwallet"
    )
}

/// Whether a method's result may be long, or take long: it is not asked for together with others.
pub(crate) fn may_be_long(method: &str) -> bool {
    matches!(
        method,
        "getblock"
            | "getblockstats"
            | "getblocktemplate"
            | "getmempoolancestors"
            | "getmempooldescendants"
            | "getrawmempool"
            | "gettxoutsetinfo"
            | "getdescriptoractivity"
            | "deriveaddresses"
    )
}

/// Whether a method may change the best chain.
pub(crate) fn changes_chain(method: &str) -> bool {
    matches!(
        method,
        "submitblock"
            | "generateblock"
            | "generatetoaddress"
            | "generatetodescriptor"
            | "invalidateblock"
            | "reconsiderblock"
            | "preciousblock"
    )
}

/// Whether a method may put transactions into the mempool.
pub(crate) fn submits_transactions(method: &str) -> bool {
    matches!(method, "sendrawtransaction" | "submitpackage")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_sorted_and_in_one_list_only() {
        assert!(WALLET.is_sorted() && EFFECTS.is_sorted());
        assert!(WALLET.iter().chain(&["getblock"]).filter(|method| is_node_method(method)).eq(&["getblock"]));
    }
}
