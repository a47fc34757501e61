//! Answers that differ between releases of Bitcoin Core under the setting `release`, compared with recordings of nodes.

use std::collections::{BTreeMap, BTreeSet};

use outrigger_tests::{Client, Host, HostOptions, NOBODY, data_json};
use serde_json::{Value, json};

/// Result members that only Knots has.
pub const OF_KNOTS: [&str; 4] = ["in_mempool", "isactive", "mintxfee", "use_txids"];

/// The result members that differ between the recorded releases, by the end of their paths, with the release that added (true) or
/// removed (false) them.
const CHANGES: [(&str, u32, bool); 10] = [
    ("balance", 30, false),
    ("unconfirmed_balance", 30, false),
    ("immature_balance", 30, false),
    ("flags", 30, true),
    ("wallets[].warnings", 30, true),
    ("paytxfee", 31, false),
    ("vout[].ischange", 31, true),
    ("bip125-replaceable", 32, false),
    ("alternate_wtxids", 32, true),
    ("mine.nonmempool", 32, true),
];

/// Arguments of the recorded release that this host lacks, all of methods of the chain group.
const LACKING: [(&str, &str); 5] = [
    ("estimatesmartfee", "options"),
    ("gettxspendingprevout", "mempool_only"),
    ("gettxspendingprevout", "options"),
    ("gettxspendingprevout", "return_spending_tx"),
    ("waitfornewblock", "current_tip"),
];

/// The methods that Bitcoin Core removed, each with the first release without it. Copied from its release notes, to catch errors in the
/// host's table.
const REMOVED: [(&str, u32); 8] = [
    ("dumpprivkey", 30),
    ("getunconfirmedbalance", 30),
    ("importaddress", 30),
    ("importmulti", 30),
    ("importprivkey", 30),
    ("importpubkey", 30),
    ("settxfee", 31),
    ("upgradewallet", 30),
];

/// The methods with the argument `version`, which Bitcoin Core 30 added.
const VERSIONED: [&str; 5] = ["createrawtransaction", "createpsbt", "send", "sendall", "walletcreatefundedpsbt"];

fn start(release: u32) -> Host {
    Host::start_with(HostOptions::of_release(release))
}

/// Collects the paths of all members of a value; `[]` stands for an array's elements.
pub fn paths(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (key, item) in members.iter().filter(|(key, _)| !OF_KNOTS.contains(&key.as_str())) {
                let below = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                paths(item, &below, found);
                found.insert(below);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| paths(item, &format!("{at}[]"), found)),
        _ => {}
    }
}

/// The calls whose members are compared. The wallet has sent `paid` and owns `mine`.
pub fn views(paid: &Value, mine: &Value) -> [(&'static str, Value); 8] {
    [
        ("getwalletinfo", json!([])),
        ("getbalances", json!([])),
        ("gettransaction", json!([paid, true, true])),
        ("listtransactions", json!([])),
        ("listsinceblock", json!([])),
        ("listunspent", json!([0])),
        ("getaddressinfo", json!([mine])),
        ("listreceivedbyaddress", json!([0, true])),
    ]
}

/// The members of the results in the scenario of `tests/record/wallet_keys.py`.
fn scenario(node: &mut Client) -> BTreeMap<String, BTreeSet<String>> {
    node.call("createwallet", json!(["w", false, false, "", true]));
    node.call("createwallet", json!(["locked", false, false, "secret"]));
    let mut wallet = node.wallet("w");
    let mine = wallet.call("getnewaddress", json!(["mine", "bech32"]));
    node.call("generatetoaddress", json!([2, mine]));
    node.call("generatetoaddress", json!([100, NOBODY]));
    let pay = |verbose| json!([NOBODY, 1, "", "", false, true, null, "unset", null, 5, verbose]);
    let paid = wallet.call("sendtoaddress", pay(false));
    wallet.call("setlabel", json!([NOBODY, "theirs"]));
    let calls = [
        ("listwalletdir", json!([])),
        ("listreceivedbylabel", json!([0, true])),
        ("listdescriptors", json!([])),
        ("gethdkeys", json!([])),
        ("sendtoaddress", pay(true)),
        ("walletcreatefundedpsbt", json!([[], [{NOBODY: 1}]])),
    ];
    let calls = views(&paid, &mine).into_iter().chain(calls);
    let mut results = BTreeMap::new();
    let mut tell = |call: &str, result: &Value| {
        let mut members = BTreeSet::new();
        paths(result, "", &mut members);
        results.insert(call.to_owned(), members);
    };
    for (method, params) in calls {
        tell(method, &wallet.call(method, params));
    }
    tell("getwalletinfo locked", &node.wallet("locked").call("getwalletinfo", json!([])));
    results
}

fn recorded(release: u32) -> BTreeMap<String, BTreeSet<String>> {
    let recording = data_json(&format!("wallet-keys-{release}.json"));
    let rows = recording["results"].as_array().unwrap().iter();
    let is_core = |path: &String| !OF_KNOTS.iter().any(|knots| path.split('.').any(|part| part == *knots));
    let members = |row: &Value| {
        let members: BTreeSet<String> = serde_json::from_value(row["members"].clone()).unwrap();
        members.into_iter().filter(is_core).collect()
    };
    rows.map(|row| (row["call"].as_str().unwrap().to_owned(), members(row))).collect()
}

/// The release that added or removed a member, and whether it was added.
fn change(path: &str) -> Option<(u32, bool)> {
    let ends = |end: &str| path == end || path.ends_with(&format!(".{end}"));
    CHANGES.iter().find(|(end, ..)| ends(end)).map(|(_, release, added)| (*release, *added))
}

#[test]
fn answers_are_those_of_their_release() {
    let recordings = [29, 32].map(recorded);
    for release in 29..=32 {
        let host = start(release);
        check_members(&host, release, &recordings);
        let mut wallet = host.new_wallet("rich");
        let mine = wallet.call("getnewaddress", json!(["", "bech32m"]));
        wallet.call("generatetoaddress", json!([1, mine]));
        wallet.call("generatetoaddress", json!([100, NOBODY]));
        check_versions(&mut wallet, release);
        check_removed_methods(&mut wallet, release);
        if release >= 31 {
            check_wtxids(&mut wallet, release);
        }
        if release == 32 {
            check_arguments(&host);
        }
    }
}

/// Results of wallet methods have the members of their release.
fn check_members(host: &Host, release: u32, [oldest, newest]: &[BTreeMap<String, BTreeSet<String>>; 2]) {
    let results = scenario(&mut host.client());
    for (call, old) in oldest {
        let both = old.union(&newest[call]).filter(|path| match change(path) {
            Some((since, added)) => (release >= since) == added,
            None => true,
        });
        let expected: BTreeSet<String> = both.cloned().collect();
        assert_eq!(results[call], expected, "{call} of release {release}");
        if release == 32 {
            assert_eq!(expected, newest[call], "{call}: the table of changes is not that of the recordings");
        }
    }
}

/// Methods take the arguments of the recorded release.
fn check_arguments(host: &Host) {
    let document = host.client().call("rpc.discover", json!([]));
    let names = |param: &Value| {
        let listed = |key: &str| param[key].as_array().cloned().unwrap_or_default();
        let members = listed("x-members").into_iter().map(|member| member["name"].clone());
        let all = std::iter::once(param["name"].clone()).chain(listed("x-bitcoin-aliases")).chain(members);
        all.map(|name| name.as_str().unwrap().to_owned()).collect::<BTreeSet<String>>()
    };
    let methods = document["methods"].as_array().unwrap().iter();
    let params = |method: &Value| method["params"].as_array().unwrap().iter().map(names).collect::<Vec<_>>();
    let ours: BTreeMap<&str, Vec<BTreeSet<String>>> =
        methods.map(|method| (method["name"].as_str().unwrap(), params(method))).collect();
    let recording = data_json("arguments-32.json");
    let mut lacking = BTreeSet::new();
    for row in recording["methods"].as_array().unwrap() {
        let Some(ours) = ours.get(row["method"].as_str().unwrap()) else { continue };
        for (position, argument) in row["arguments"].as_array().unwrap().iter().enumerate() {
            for name in argument.as_str().unwrap().split('|') {
                if !ours.get(position).is_some_and(|names| names.contains(name)) {
                    lacking.insert((row["method"].as_str().unwrap(), name));
                }
            }
        }
    }
    assert_eq!(lacking, BTreeSet::from(LACKING));
}

/// `version` is an argument since release 30.
fn check_versions(wallet: &mut Client, release: u32) {
    for method in VERSIONED {
        let ask = |wallet: &mut Client, version: u32| {
            let mut params = match method {
                "send" => json!({"outputs": {NOBODY: 1}, "psbt": true, "add_to_wallet": false}),
                "sendall" => json!({"recipients": [NOBODY], "psbt": true, "add_to_wallet": false}),
                _ => json!({"inputs": [], "outputs": {NOBODY: 1}}),
            };
            params["version"] = json!(version);
            wallet.try_call(method, params).map_err(|failure| (failure.code, failure.message))
        };
        if release < 30 {
            let refusal = (-8, "Unknown named parameter version".to_owned());
            assert_eq!(ask(wallet, 3), Err(refusal), "{method}");
            continue;
        }
        for version in [0, 4] {
            let refusal = (-8, "Invalid parameter, version out of range(1~3)".to_owned());
            assert_eq!(ask(wallet, version), Err(refusal), "{method}");
        }
        let made = ask(wallet, 3).unwrap();
        let decoded = match made["hex"].as_str().or(made.as_str()) {
            Some(raw) if method != "createpsbt" => wallet.call("decoderawtransaction", json!([raw])),
            _ => {
                let psbt = if made.is_string() { &made } else { &made["psbt"] };
                wallet.call("decodepsbt", json!([psbt]))["tx"].clone()
            }
        };
        // PSBTs of version 2 show the transaction's version in another field.
        assert!(decoded["version"] == 3 || decoded.is_null(), "{method}: {decoded}");
    }
    let help = wallet.call("help", json!(["send"])).as_str().unwrap().contains("version");
    assert_eq!(help, release >= 30);
}

/// The host keeps removed methods, and lists them as its own.
fn check_removed_methods(wallet: &mut Client, release: u32) {
    let help = wallet.call("help", json!([]));
    let sections = help.as_str().unwrap().split("== ").filter_map(|section| section.split_once(" ==\n"));
    let category = |method: &str| {
        let has = |lines: &str| lines.lines().any(|line| line.split(' ').next() == Some(method));
        sections.clone().find(|(_, lines)| has(lines)).map(|(name, _)| name)
    };
    for (method, removed) in REMOVED {
        let expected = if release >= removed { "Outrigger" } else { "Wallet" };
        assert_eq!(category(method), Some(expected), "{method} of release {release}");
    }
    assert_eq!(wallet.call("settxfee", json!([0.0001])), true);
    assert_eq!(wallet.call("getunconfirmedbalance", json!([])).to_string(), "0.00000000");
    let pays = wallet.call("getwalletinfo", json!([]))["paytxfee"].clone();
    assert_eq!(pays.is_null(), release >= 31);
}

/// gettransaction shows the confirmed wtxid, and since release 32 also the alternative ones.
fn check_wtxids(wallet: &mut Client, release: u32) {
    let coin = wallet.call("listunspent", json!([]))[0].clone();
    let inputs = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
    let raw = wallet.call("createrawtransaction", json!([inputs, [{NOBODY: 49.9}]]));
    // A signature of the default sighash type is one byte shorter.
    let [first, second] = ["DEFAULT", "ALL"].map(|kind| {
        let signed = wallet.call("signrawtransactionwithwallet", json!([raw, [], kind]))["hex"].clone();
        let wtxid = wallet.call("decoderawtransaction", json!([signed]))["hash"].clone();
        (signed, wtxid)
    });
    assert_ne!(first.1, second.1);
    let txid = wallet.call("sendrawtransaction", json!([first.0, 0]));
    let told = |wallet: &mut Client| {
        let told = wallet.call("gettransaction", json!([txid]));
        let listed = wallet.call("listtransactions", json!([]));
        let listed = listed.as_array().unwrap().iter().find(|entry| entry["txid"] == txid).unwrap();
        assert_eq!([&listed["wtxid"], &listed["alternate_wtxids"]], [&told["wtxid"], &told["alternate_wtxids"]]);
        json!([told["wtxid"], told["alternate_wtxids"], told["hex"]])
    };
    let alternates = |wtxids: Value| if release >= 32 { wtxids } else { Value::Null };
    assert_eq!(told(wallet), json!([first.1, alternates(json!([])), first.0]));
    let block = wallet.call("generateblock", json!([NOBODY, [second.0]]));
    assert_eq!(told(wallet), json!([second.1, alternates(json!([first.1])), second.0]));
    wallet.call("unloadwallet", json!(["rich"]));
    wallet.call("loadwallet", json!(["rich"]));
    assert_eq!(told(wallet), json!([second.1, alternates(json!([first.1])), second.0]));
    wallet.call("invalidateblock", json!([block["hash"]]));
    let expected = match release {
        32 => json!([first.1, [second.1], first.0]),
        _ => json!([second.1, null, second.0]),
    };
    assert_eq!(told(wallet), expected, "the lighter one since release 32");
}
