//! The bundled groups and their methods. The host knows them even if a group is off.

/// The methods of each group. A test compares them with the libraries' manifests.
const GROUPS: [(&str, &str); 8] = [
    (
        "chain",
        "createmultisig createrawtransaction decoderawtransaction decodescript deriveaddresses estimatesmartfee \
         getbestblockhash getblock getblockchaininfo getblockcount getblockfilter getblockhash getblockheader \
         getblockstats getchaintips getchaintxstats getconnectioncount getdeploymentinfo getdescriptoractivity \
         getdescriptorinfo getdifficulty getindexinfo getmempoolancestors getmempooldescendants getmempoolentry \
         getmempoolinfo getnettotals getnetworkinfo getnodeaddresses getpeerinfo getrawmempool getrawtransaction \
         gettxout gettxoutproof gettxoutsetinfo gettxspendingprevout getzmqnotifications invalidateblock \
         listbanned ping reconsiderblock savemempool scanblocks scantxoutset sendrawtransaction setmocktime \
         submitpackage syncwithvalidationinterfacequeue testmempoolaccept validateaddress verifymessage \
         verifytxoutproof waitforblock waitforblockheight waitfornewblock",
    ),
    (
        "history",
        "abandontransaction getreceivedbyaddress getreceivedbylabel gettransaction listaddressgroupings \
         listreceivedbyaddress listreceivedbylabel listsinceblock listtransactions setcomment waitevents",
    ),
    (
        "import",
        "abortrescan importaddress importdescriptors importmulti importprivkey importprunedfunds importpubkey \
         removeprunedfunds rescanblockchain",
    ),
    (
        "mining",
        "generateblock generatetoaddress generatetodescriptor getblocktemplate getmininginfo getnetworkhashps \
         getprioritisedtransactions preciousblock prioritisetransaction submitblock submitheader",
    ),
    (
        "psbt",
        "analyzepsbt combinepsbt converttopsbt createpsbt decodepsbt descriptorprocesspsbt finalizepsbt joinpsbts \
         psbtbumpfee send sendall utxoupdatepsbt walletcreatefundedpsbt walletprocesspsbt",
    ),
    (
        "signing",
        "combinerawtransaction signmessage signmessagewithprivkey signrawtransactionwithkey \
         signrawtransactionwithwallet",
    ),
    (
        "wallet",
        "addhdkey backupwallet bumpfee createwallet createwalletdescriptor derivehdkey dumpprivkey encryptwallet \
         exportwatchonlywallet fundrawtransaction getaddressesbylabel getaddressinfo getbalance getbalances \
         gethdkeys getnewaddress getrawchangeaddress getunconfirmedbalance getwalletbackupinfo getwalletinfo \
         keypoolrefill listdescriptors listlabels listlockunspent listunspent listwalletdir listwallets loadwallet \
         lockunspent restorewallet sendmany sendtoaddress setlabel settxfee setwalletflag simulaterawtransaction \
         unloadwallet upgradewallet walletlock walletpassphrase walletpassphrasechange",
    ),
    ("webhooks", "listwebhooks"),
];

/// Whether this plugin id, or file name without a folder, is a bundled group's.
pub fn is_bundled(name: &str) -> bool {
    GROUPS.iter().any(|(group, _)| *group == name)
}

pub fn names() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().map(|(group, _)| *group)
}

/// The method of this name, and its group.
pub fn group_of(method: &str) -> Option<(&'static str, &'static str)> {
    all().find(|(known, _)| *known == method)
}

pub fn methods() -> impl Iterator<Item = &'static str> {
    all().map(|(method, _)| method)
}

/// Each method with its group.
fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    GROUPS.iter().flat_map(|(group, methods)| methods.split(' ').map(move |method| (method, *group)))
}
