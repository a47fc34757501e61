//! bitcoind's methods, with the properties that the host must know without asking the node. All other lists of methods
//! are derived from this one.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::RandomState;

use MethodSet::{Mining, NodeAdmin, Read, Send, Wallet};
use traits::{CHAIN, FILES, KEYS, LONG, MONEY, NODE, NONE, OTHERS, PURE, SETS, SHORT, SUBMITS, VIEW, WAITS, WALLET};

/// A set of methods that an operator may name in a list of methods.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MethodSet {
    /// The node's methods without effects, including those of `Send` and `Mining`; no wallet methods.
    Read,
    /// Methods that broadcast transactions.
    Send,
    /// Templates, blocks, priorities.
    Mining,
    /// Wallet methods, including payments, except those that name files.
    Wallet,
    /// Methods that change the node for everyone, keep it busy for long, or read or write files that the caller names.
    NodeAdmin,
}

impl MethodSet {
    pub const ALL: [Self; 5] = [Read, Send, Mining, Wallet, NodeAdmin];

    /// The name in a list.
    pub fn name(self) -> &'static str {
        match self {
            Read => "@read",
            Send => "@send",
            Mining => "@mining",
            Wallet => "@wallet",
            NodeAdmin => "@node-admin",
        }
    }
}

/// What a method may do: bits for [`Method::is`].
pub mod traits {
    /// No effects: repeated if the connection ended before any byte of the reply.
    pub const PURE: u16 = 1 << 0;
    /// Waits for an event, without effects.
    pub const WAITS: u16 = 1 << 1;
    /// The result may be long or slow: not batched.
    pub const LONG: u16 = 1 << 2;
    /// May put transactions into the mempool.
    pub const SUBMITS: u16 = 1 << 3;
    /// May change the best chain.
    pub const CHAIN: u16 = 1 << 4;
    /// A wallet method outside the set `Wallet`.
    pub const WALLET: u16 = 1 << 5;
    /// Concerns wallets other than the selected one, or files.
    pub const OTHERS: u16 = 1 << 6;
    /// Changes the node for everyone.
    pub const NODE: u16 = 1 << 7;
    /// Reads or writes files that the caller names, or files in the node's folders.
    pub const FILES: u16 = 1 << 8;
    /// Moves money: sends transactions, or signs them with a wallet's keys.
    pub const MONEY: u16 = 1 << 9;
    /// Exports keys, or their seeds.
    pub const KEYS: u16 = 1 << 10;
    /// Changes settings, keys or locks of a wallet, or the order in which the node mines transactions.
    pub const SETS: u16 = 1 << 11;
    /// Without effects, and with hardly any time at the node: batched with other calls.
    pub const SHORT: u16 = 1 << 12;
    /// No effects, although outside the set `Read`.
    pub const VIEW: u16 = 1 << 13;
    pub const NONE: u16 = 0;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Method {
    set: MethodSet,
    traits: u16,
}

impl Method {
    pub const fn of_host(set: MethodSet, sets: bool) -> Self {
        let traits = match set {
            _ if !sets => NONE,
            NodeAdmin => NODE,
            _ => SETS,
        };
        Self { set, traits }
    }

    /// Whether it has any of the [`traits`].
    pub const fn is(self, traits: u16) -> bool {
        self.traits & traits != 0
    }

    /// Each method is in one set, and may also be in `Read`.
    pub fn is_of(self, set: MethodSet) -> bool {
        self.set == set || (set == Read && self.is(PURE | WAITS))
    }

    pub fn is_wallet(self) -> bool {
        self.set == Wallet || self.is(WALLET)
    }

    /// Whether a call whose answer was lost can be repeated.
    pub fn is_read_only(self) -> bool {
        self.is(PURE)
    }

    /// Whether a call whose answer was lost must not be repeated silently.
    pub fn has_effects(self) -> bool {
        !self.is(PURE | WAITS | VIEW)
    }

    pub fn may_be_long(self) -> bool {
        self.is(LONG)
    }

    /// Whether the audit log records calls: they move money, export keys, touch files or change settings.
    pub fn is_audited(self) -> bool {
        self.is(MONEY | KEYS | FILES | NODE | SETS)
    }
}

/// The methods of all versions since 0.21 and of Bitcoin Knots, hidden ones included, sorted by name.
const METHODS: &[(&str, MethodSet, u16)] = &[
    ("abandontransaction", Wallet, SETS),
    ("abortprivatebroadcast", NodeAdmin, NODE),
    ("abortrescan", Wallet, NONE),
    ("addconnection", NodeAdmin, NODE),
    ("addhdkey", Wallet, KEYS | SETS),
    ("addmultisigaddress", Wallet, SETS),
    ("addnode", NodeAdmin, NODE),
    ("addpeeraddress", NodeAdmin, NODE),
    ("analyzepsbt", Read, PURE),
    ("backupwallet", NodeAdmin, WALLET | OTHERS | FILES | KEYS),
    ("bumpfee", Wallet, MONEY),
    ("clearbanned", NodeAdmin, NODE),
    ("combinepsbt", Read, PURE),
    ("combinerawtransaction", Read, PURE),
    ("converttopsbt", Read, PURE),
    ("createmultisig", Read, PURE),
    ("createpsbt", Read, PURE),
    ("createrawtransaction", Read, PURE),
    ("createwallet", Wallet, OTHERS | SETS),
    ("createwalletdescriptor", Wallet, SETS),
    ("decodepsbt", Read, PURE),
    ("decoderawtransaction", Read, PURE),
    ("decodescript", Read, PURE),
    ("deriveaddresses", Read, PURE | LONG),
    ("derivehdkey", Wallet, KEYS | VIEW),
    ("descriptorprocesspsbt", Read, PURE),
    ("disconnectnode", NodeAdmin, NODE),
    ("dumpmasterprivkey", Wallet, KEYS | VIEW),
    ("dumpprivkey", Wallet, KEYS | VIEW),
    ("dumptxoutset", NodeAdmin, NODE | FILES),
    ("dumpwallet", NodeAdmin, WALLET | OTHERS | FILES | KEYS),
    ("echo", Read, PURE),
    ("echojson", Read, PURE),
    ("encryptwallet", Wallet, SETS),
    ("enumeratesigners", Wallet, VIEW),
    ("estimaterawfee", Read, PURE),
    ("estimatesmartfee", Read, PURE | SHORT),
    ("exportasmap", NodeAdmin, NODE | FILES),
    ("exportwatchonlywallet", NodeAdmin, WALLET | OTHERS | FILES | KEYS),
    ("finalizepsbt", Read, PURE),
    ("fundrawtransaction", Wallet, NONE),
    ("generateblock", Mining, CHAIN),
    ("generatetoaddress", Mining, CHAIN),
    ("generatetodescriptor", Mining, CHAIN),
    ("getaddednodeinfo", Read, PURE),
    ("getaddressesbylabel", Wallet, VIEW),
    ("getaddressinfo", Wallet, VIEW),
    ("getaddrmaninfo", Read, PURE),
    ("getbalance", Wallet, VIEW),
    ("getbalances", Wallet, VIEW),
    ("getbestblockhash", Read, PURE | SHORT),
    ("getblock", Read, PURE | LONG),
    ("getblockchaininfo", Read, PURE | SHORT),
    ("getblockcount", Read, PURE | SHORT),
    ("getblockfilter", Read, PURE),
    ("getblockfrompeer", NodeAdmin, NODE),
    ("getblockhash", Read, PURE | SHORT),
    ("getblockheader", Read, PURE | SHORT),
    ("getblockstats", Read, PURE | LONG),
    ("getblocktemplate", Mining, PURE | LONG),
    ("getchainstates", Read, PURE),
    ("getchaintips", Read, PURE),
    ("getchaintxstats", Read, PURE),
    ("getconnectioncount", Read, PURE | SHORT),
    ("getdeploymentinfo", Read, PURE),
    ("getdescriptoractivity", Read, PURE | LONG),
    ("getdescriptorinfo", Read, PURE),
    ("getdifficulty", Read, PURE | SHORT),
    ("getgeneralinfo", Read, PURE),
    ("gethdkeys", Wallet, KEYS | VIEW),
    ("getindexinfo", Read, PURE | SHORT),
    ("getmemoryinfo", Read, PURE),
    ("getmempoolancestors", Read, PURE | LONG),
    ("getmempoolcluster", Read, PURE),
    ("getmempooldescendants", Read, PURE | LONG),
    ("getmempoolentry", Read, PURE | SHORT),
    ("getmempoolfeeratediagram", Read, PURE | LONG),
    ("getmempoolinfo", Read, PURE | SHORT),
    ("getmempoolstats", Read, PURE | LONG),
    ("getmininginfo", Mining, PURE | SHORT),
    ("getnettotals", Read, PURE | SHORT),
    ("getnetworkhashps", Mining, PURE),
    ("getnetworkinfo", Read, PURE | SHORT),
    ("getnewaddress", Wallet, NONE),
    ("getnodeaddresses", Read, PURE),
    ("getopenrpcinfo", Read, PURE),
    ("getorphantxs", Read, PURE),
    ("getpeerinfo", Read, PURE),
    ("getprioritisedtransactions", Mining, PURE),
    ("getprivatebroadcastinfo", Read, PURE),
    ("getrawaddrman", Read, PURE | LONG),
    ("getrawchangeaddress", Wallet, NONE),
    ("getrawmempool", Read, PURE | LONG),
    ("getrawtransaction", Read, PURE),
    ("getreceivedbyaddress", Wallet, VIEW),
    ("getreceivedbylabel", Wallet, VIEW),
    ("getrpcinfo", Read, PURE),
    ("getrpcwhitelist", Read, PURE),
    ("gettransaction", Wallet, VIEW),
    ("gettxout", Read, PURE | SHORT),
    ("gettxoutproof", Read, PURE),
    ("gettxoutsetinfo", Read, PURE | LONG),
    ("gettxspendingprevout", Read, PURE),
    ("getunconfirmedbalance", Wallet, VIEW),
    ("getwalletinfo", Wallet, VIEW),
    ("getzmqnotifications", Read, PURE),
    ("help", Read, PURE),
    ("importaddress", Wallet, SETS),
    ("importdescriptors", Wallet, SETS),
    ("importmempool", NodeAdmin, NODE | FILES),
    ("importmulti", Wallet, SETS),
    ("importprivkey", Wallet, SETS),
    ("importprunedfunds", Wallet, SETS),
    ("importpubkey", Wallet, SETS),
    ("importwallet", NodeAdmin, WALLET | OTHERS | FILES),
    ("invalidateblock", NodeAdmin, CHAIN | NODE),
    ("joinpsbts", Read, PURE),
    ("keypoolrefill", Wallet, SETS),
    ("listaddressgroupings", Wallet, VIEW),
    ("listbanned", Read, PURE),
    ("listdescriptors", Wallet, KEYS | VIEW),
    ("listlabels", Wallet, VIEW),
    ("listlockunspent", Wallet, VIEW),
    ("listmempooltransactions", Read, PURE | LONG),
    ("listprunelocks", Read, PURE),
    ("listreceivedbyaddress", Wallet, VIEW),
    ("listreceivedbylabel", Wallet, VIEW),
    ("listsinceblock", Wallet, VIEW),
    ("listtransactions", Wallet, VIEW),
    ("listunspent", Wallet, VIEW),
    ("listwalletdir", Wallet, OTHERS | VIEW),
    ("listwallets", Wallet, OTHERS | VIEW),
    ("loadtxoutset", NodeAdmin, NODE | FILES),
    ("loadwallet", Wallet, OTHERS | SETS),
    ("lockunspent", Wallet, SETS),
    ("logging", NodeAdmin, NODE),
    ("maxmempool", NodeAdmin, NODE),
    ("migratewallet", NodeAdmin, WALLET | OTHERS | FILES),
    ("mockscheduler", NodeAdmin, NODE),
    ("newkeypool", Wallet, SETS),
    ("ping", NodeAdmin, NONE),
    ("preciousblock", NodeAdmin, CHAIN | NODE),
    ("prioritisetransaction", Mining, SETS),
    ("pruneblockchain", NodeAdmin, NODE),
    ("psbtbumpfee", Wallet, NONE),
    ("reconsiderblock", NodeAdmin, CHAIN | NODE),
    ("removeprunedfunds", Wallet, SETS),
    ("rescanblockchain", Wallet, NONE),
    ("resendwallettransactions", Wallet, NONE),
    ("restorewallet", NodeAdmin, WALLET | OTHERS | FILES),
    ("savefeeestimates", NodeAdmin, NODE | FILES),
    ("savemempool", NodeAdmin, NODE | FILES),
    ("scanblocks", NodeAdmin, NONE),
    ("scantxoutset", NodeAdmin, NONE),
    ("scriptthreadsinfo", Read, PURE),
    ("send", Wallet, MONEY),
    ("sendall", Wallet, MONEY),
    ("sendmany", Wallet, MONEY),
    ("sendmsgtopeer", NodeAdmin, NODE),
    ("sendrawtransaction", Send, SUBMITS | MONEY),
    ("sendtoaddress", Wallet, MONEY),
    ("setban", NodeAdmin, NODE),
    ("setfeerate", Wallet, SETS),
    ("sethdseed", Wallet, SETS),
    ("setlabel", Wallet, NONE),
    ("setmocktime", NodeAdmin, NODE),
    ("setnetworkactive", NodeAdmin, NODE),
    ("setprunelock", NodeAdmin, NODE),
    ("setscriptthreadsenabled", NodeAdmin, NODE),
    ("settxfee", Wallet, SETS),
    ("setwalletflag", Wallet, SETS),
    ("signmessage", Wallet, VIEW),
    ("signmessagewithprivkey", Read, PURE),
    ("signrawtransactionwithkey", Read, PURE),
    ("signrawtransactionwithwallet", Wallet, MONEY),
    ("simulaterawtransaction", Wallet, VIEW),
    ("stop", NodeAdmin, NODE),
    ("submitblock", Mining, CHAIN),
    ("submitheader", Mining, NONE),
    ("submitpackage", Send, SUBMITS | MONEY),
    ("sweepprivkeys", Wallet, MONEY),
    ("syncwithvalidationinterfacequeue", Read, PURE | LONG),
    ("testmempoolaccept", Send, PURE),
    ("unloadwallet", Wallet, OTHERS | SETS),
    ("upgradewallet", Wallet, SETS),
    ("uptime", Read, PURE | SHORT),
    ("utxoupdatepsbt", Read, PURE),
    ("validateaddress", Read, PURE | SHORT),
    ("verifychain", NodeAdmin, VIEW),
    ("verifymessage", Read, PURE),
    ("verifytxoutproof", Read, PURE),
    ("waitforblock", Read, WAITS),
    ("waitforblockheight", Read, WAITS),
    ("waitfornewblock", Read, WAITS),
    ("walletcreatefundedpsbt", Wallet, NONE),
    ("walletdisplayaddress", Wallet, NONE),
    ("walletlock", Wallet, SETS),
    ("walletpassphrase", Wallet, SETS),
    ("walletpassphrasechange", Wallet, SETS),
    ("walletprocesspsbt", Wallet, MONEY),
];

/// A hash map, because the host looks up each call's method several times.
static BY_NAME: LazyLock<HashMap<&str, Method, RandomState>> = LazyLock::new(|| methods().collect());

/// `None` if bitcoind has no such method.
pub fn method(name: &str) -> Option<Method> {
    BY_NAME.get(name).copied()
}

pub fn methods() -> impl Iterator<Item = (&'static str, Method)> {
    METHODS.iter().map(|&(name, set, traits)| (name, Method { set, traits }))
}

pub fn is_read_only(name: &str) -> bool {
    method(name).is_some_and(Method::is_read_only)
}

/// Unknown methods may have effects.
pub fn may_have_effects(name: &str) -> bool {
    method(name).is_none_or(Method::has_effects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_sorted_by_name() {
        assert!(METHODS.is_sorted_by(|(a, ..), (b, ..)| a < b));
        assert!(method("getblock").is_some() && method("getblok").is_none());
        assert!(is_read_only("getblock") && !is_read_only("sendrawtransaction") && !is_read_only("stop"));
    }

    #[test]
    fn methods_of_the_set_read_have_no_effects_and_no_other_has_wallets() {
        for (name, method) in methods() {
            let harmless = method.is(PURE | WAITS);
            assert!(method.set != Read || harmless, "{name} has effects");
            assert!(!harmless || !(method.is_wallet() || method.is_audited()), "{name}");
            assert!(!method.is(MONEY | FILES | SETS | NODE) || method.has_effects(), "{name}");
            assert!(!method.is(FILES) || method.set == NodeAdmin, "{name} touches files");
        }
    }
}
