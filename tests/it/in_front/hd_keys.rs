//! Keys and descriptors of Bitcoin Core since release 30: a wallet of the host and one of the node get the same calls.

use outrigger_tests::{XPRV, XPUB, skip};
use serde_json::{Value, json};

use super::is_since;
use super::twins::Wallets;

const OTHER: &str =
    "tpubDC5FSnBiZDMmhiuCmWAYsLwgLYrrT9rAqvTySfuCCrgsWz8wxMXUS9Tb9iVMvcRbvFcAHGkMD5Kx8koh4GquNGNTfohfk7pgjhaPCdXpoba";

/// Imports a descriptor into both wallets. The node repeats a warning for each path.
fn import(wallets: &mut Wallets, text: &str, active: bool) -> Value {
    let node = wallets.host.node.as_ref().unwrap();
    let import = json!([[{"desc": node.client().with_checksum(text), "timestamp": "now", "active": active}]]);
    let [ours, theirs] = wallets.ask("importdescriptors", &import).map(|answer| answer.unwrap()[0].clone());
    assert_eq!([&ours["success"], &ours["error"]], [&theirs["success"], &theirs["error"]], "{text}");
    ours
}

/// The descriptors, without their creation times.
fn listed(wallets: &mut Wallets) -> Vec<Value> {
    let [ours, theirs] = wallets.ask("listdescriptors", &json!([])).map(|answer| {
        let mut entries = answer.unwrap()["descriptors"].as_array().unwrap().clone();
        entries.iter_mut().for_each(|entry| entry["timestamp"] = json!(0));
        entries
    });
    assert_eq!(ours, theirs);
    ours
}

#[test]
fn hd_keys_and_exports_answer_as_the_node() {
    if !is_since(30) {
        return;
    }
    let Some(mut wallets) = Wallets::start() else { return };
    let told = wallets.theirs.call("help", json!(["derivehdkey"]));
    if !told.as_str().unwrap().starts_with("derivehdkey") {
        return skip("the node has no derivehdkey");
    }
    check_exports(&mut wallets);
    check_derivations(&mut wallets);
    wallets.choose("w");
    // Keys that no script uses.
    for text in
        [format!("unused({XPUB})"), format!("unused({XPRV})"), format!("unused({XPRV})"), format!("unused({XPRV}/5)")]
    {
        import(&mut wallets, &text, false);
    }
    import(&mut wallets, &format!("unused({XPRV})"), true);
    wallets.check("gethdkeys", json!([])).unwrap();
    wallets.make("watched", &[json!(true)]);
    import(&mut wallets, &format!("unused({XPUB})"), false);
    import(&mut wallets, &format!("unused({XPRV})"), false);
    wallets.check("listdescriptors", json!([true])).unwrap_err();
    check_aggregate_keys(&mut wallets);
}

fn check_derivations(wallets: &mut Wallets) {
    wallets.make("blank", &[json!(false), json!(true)]);
    let paths =
        ["m", "m/87/0", "m/2147483648h", "m//1h", "M/1h", "m/m/1h", "zz", "", "/", "/1h", "m/1h/", "m/-1h", "m/1hh"];
    wallets.check("derivehdkey", json!(["m/87h"])).unwrap_err();
    wallets.check("addhdkey", json!([XPRV])).unwrap();
    for path in paths.into_iter().chain(["m/87h/1'/0", "87h", "0h/1", "m/000087h"]) {
        let _ = wallets.check("derivehdkey", json!([path]));
    }
    let _ = wallets.check("derivehdkey", json!([format!("m{}", "/0h".repeat(255))])).unwrap();
    wallets.check("derivehdkey", json!([format!("m{}", "/0h".repeat(256))])).unwrap_err();
    for options in [
        json!({"private": true}),
        json!({"private": 1}),
        json!({"hdkey": XPUB}),
        json!({"hdkey": XPRV}),
        json!({"hdkey": OTHER}),
        json!({"hdkey": 5}),
        json!({"other": 5}),
    ] {
        let _ = wallets.check("derivehdkey", json!(["m/87h/0h", options]));
    }
    for key in [json!(XPRV), json!(OTHER), json!("xx"), json!(""), json!(5)] {
        wallets.check("addhdkey", json!([key])).unwrap_err();
    }
    wallets.check("gethdkeys", json!([])).unwrap();
    listed(wallets);
    wallets.check("createwalletdescriptor", json!(["bech32"])).unwrap_err();
    wallets.check("createwalletdescriptor", json!(["bech32", {"hdkey": XPUB}])).unwrap();
    wallets.check("derivehdkey", json!(["m/84h/1h/0h", {"private": true}])).unwrap();
    import(wallets, &format!("wpkh({XPRV}/1h/*)"), true);
    wallets.check("gethdkeys", json!([{"active_only": true, "private": true}])).unwrap();
    wallets.check("encryptwallet", json!(["secret"])).unwrap();
    wallets.check("derivehdkey", json!(["m/84h"])).unwrap_err();
    wallets.check("derivehdkey", json!(["m/84"])).unwrap_err();
    wallets.check("addhdkey", json!([])).unwrap_err();
    wallets.check("addhdkey", json!(["xx"])).unwrap_err();
    wallets.check("walletpassphrase", json!(["secret", 60])).unwrap();
    wallets.check("derivehdkey", json!(["m/84h"])).unwrap();
    wallets.make("watch", &[json!(true)]);
    wallets.check("addhdkey", json!(["xx"])).unwrap_err();
    wallets.check("derivehdkey", json!(["zz"])).unwrap_err();
}

fn check_aggregate_keys(wallets: &mut Wallets) {
    let key = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    for (number, (text, watched, ranged)) in [
        (format!("tr(musig({OTHER},{XPRV})/<0;1>/*)"), false, true),
        (format!("tr(musig({OTHER}/*,{XPRV}/1h/*))"), false, true),
        (format!("rawtr(musig({OTHER},{key}))"), true, false),
        (format!("tr({key},{{pk(musig({OTHER}/*,[deadbeef/3']{XPUB}/*)),and_v(v:pk(musig({OTHER},{XPUB})/0/*),older(5))}})"), true, true),
    ]
    .into_iter()
    .enumerate()
    {
        wallets.make(&format!("m{number}"), &[json!(watched), json!(true)]);
        wallets.check("getdescriptorinfo", json!([text])).unwrap();
        assert_eq!(import(wallets, &text, false)["success"], true);
        wallets.check("gethdkeys", json!([])).unwrap();
        assert_eq!(wallets.check("listdescriptors", json!([true])).is_err(), watched);
        for entry in listed(wallets) {
            let range = if ranged { json!([entry["desc"], [0, 1]]) } else { json!([entry["desc"]]) };
            let addresses = wallets.check("deriveaddresses", range).unwrap();
            let [ours, theirs] = wallets.ask("getaddressinfo", &json!([addresses[0]])).map(|answer| answer.unwrap());
            for key in ["desc", "parent_desc", "hdkeypath", "ismine", "solvable"] {
                assert_eq!(ours[key], theirs[key], "{text} {key}");
            }
        }
    }
}

/// Checks refused wallet names and the exports of a fresh wallet.
fn check_exports(wallets: &mut Wallets) {
    for name in ["", "a/../b", "a/./b", "./x", "../", "..", ".", "../x", "/", "x/.."] {
        wallets.check("createwallet", json!([name])).unwrap_err();
        if !name.is_empty() {
            wallets.check("loadwallet", json!([name])).unwrap_err();
        }
    }
    wallets.check("restorewallet", json!(["", "/none"])).unwrap_err();
    wallets.check("removeprunedfunds", json!(["zz"])).unwrap_err();
    let folder = tempfile::tempdir().unwrap();
    let exists = folder.path().join("exists");
    std::fs::write(&exists, "x").unwrap();
    for file in
        [json!(""), json!("."), json!(folder.path()), json!(exists), json!(folder.path().join("no/b")), json!(5)]
    {
        wallets.check("exportwatchonlywallet", json!([file])).unwrap_err();
    }
    let files = ["ours", "theirs"].map(|name| folder.path().join(name));
    wallets.ours.call("exportwatchonlywallet", json!([files[0]]));
    wallets.theirs.call("exportwatchonlywallet", json!([files[1]]));
    let before = listed(wallets);
    wallets.host.client().call("restorewallet", json!(["export", files[0]]));
    wallets.host.node_client().call("restorewallet", json!(["export", files[1]]));
    wallets.choose("export");
    assert_eq!(listed(wallets), before);
    wallets.check("gethdkeys", json!([])).unwrap();
    wallets.check("addhdkey", json!([])).unwrap_err();
    for kind in ["legacy", "p2sh-segwit", "bech32", "bech32m"] {
        wallets.address("", kind);
    }
    wallets.make("empty", &[json!(true)]);
    wallets.check("exportwatchonlywallet", json!([folder.path().join("c")])).unwrap_err();
}
