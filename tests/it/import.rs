//! importmulti and importdescriptors: the wallet finds payments to imported scripts on the chain.

use outrigger_tests::{Client, ELSEWHERE, Host, XPRV};
use serde_json::{Value, json};

/// A private key whose coins are mined below, and its addresses.
struct Key {
    wif: &'static str,
    public: &'static str,
    pkh: &'static str,
    wpkh: &'static str,
}

const KEY: Key = Key {
    wif: "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v",
    public: "02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5",
    pkh: "mg8Jz5776UdyiYcBb9Z873NTozEiADRW5H",
    wpkh: "bcrt1qq6hag67dl53wl99vzg42z8eyzfz2xlkvwk6f7m",
};

/// A host whose chain pays the key's addresses in its first blocks.
fn paid() -> (Host, Client) {
    let host = Host::start();
    let mut client = host.client();
    for (function, address) in [("pkh", KEY.pkh), ("wpkh", KEY.wpkh)] {
        let descriptor = client.with_checksum(&format!("{function}({})", KEY.public));
        assert_eq!(client.call("deriveaddresses", json!([descriptor])), json!([address]), "{function}");
        client.call("generatetoaddress", json!([2, address]));
    }
    client.call("generatetoaddress", json!([100, ELSEWHERE]));
    (host, client)
}

#[test]
fn importdescriptors_finds_history_and_gives_addresses_and_needs_a_timestamp() {
    let (_host, mut client) = paid();
    find_the_history(&mut client);
    // An active descriptor gives addresses from its next index.
    let mut wallet = client.create_wallet("active", json!({"blank": true}));
    let descriptor = client.with_checksum(&format!("wpkh({XPRV}/1/*)"));
    let request = json!({"desc": descriptor, "timestamp": "now", "active": true, "range": [0, 20], "next_index": 3});
    assert_eq!(wallet.call("importdescriptors", json!([[request]])), json!([{"success": true}]));
    let derived = client.call("deriveaddresses", json!([descriptor, [0, 5]]));
    assert_eq!(wallet.call("getnewaddress", json!([])), derived[3]);
    assert_eq!(wallet.call("getnewaddress", json!([])), derived[4]);
    let bad = json!({"desc": descriptor, "timestamp": "now", "range": [1, 20]});
    let result = wallet.call("importdescriptors", json!([[bad]]));
    assert_eq!(result[0]["error"]["code"], json!(-8), "{result}");
    let message = result[0]["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("new range must include current range = [0,"), "{message}");
    // importmulti fails before it stores anything, importdescriptors after it has stored the earlier requests.
    let mut wallet = client.create_wallet("untimed", json!({"blank": true}));
    let bad = (-3, "Missing required timestamp field for key".to_owned());
    let requests = json!([{"scriptPubKey": {"address": KEY.pkh}, "timestamp": 0, "watchonly": true}, {}]);
    assert_eq!(wallet.refused("importmulti", json!([requests])), bad);
    assert_eq!(wallet.call("getaddressinfo", json!([KEY.pkh]))["iswatchonly"], json!(false));
    let descriptor = client.with_checksum(&format!("wpkh({})", KEY.wif));
    let requests = json!([{"desc": descriptor, "timestamp": 0}, {}]);
    assert_eq!(wallet.refused("importdescriptors", json!([requests])), bad);
    assert_eq!(wallet.call("getaddressinfo", json!([KEY.wpkh]))["ismine"], json!(true));
}

#[test]
fn importmulti_and_listdescriptors_work_in_the_one_kind_of_wallet() {
    let (_host, mut client) = paid();
    give_each_request_a_result(&mut client);
    make_the_one_kind_of_wallet(&mut client);
    list_descriptors_that_another_wallet_takes(&mut client);
}

fn find_the_history(client: &mut Client) {
    let mut wallet = client.create_wallet("history", json!({"blank": true}));
    let descriptor = client.with_checksum(&format!("wpkh({})", KEY.wif));
    let requests = json!([
        {"desc": descriptor, "timestamp": 0, "label": "savings"},
        {"desc": "wpkh(nonsense)", "timestamp": "now"},
        {"timestamp": "now"},
    ]);
    let results = wallet.call("importdescriptors", json!([requests]));
    assert_eq!(results[0], json!({"success": true}));
    assert_eq!(results[1], json!({"success": false, "error": {"code": -5, "message": "Missing checksum"}}));
    assert_eq!(results[2], json!({"success": false, "error": {"code": -8, "message": "Descriptor not found."}}));
    let listed = wallet.call("listsinceblock", json!([]));
    let transactions = listed["transactions"].as_array().unwrap();
    assert_eq!(transactions.len(), 2, "{listed}");
    for entry in transactions {
        assert_eq!((&entry["address"], &entry["label"]), (&json!(KEY.wpkh), &json!("savings")));
        assert_eq!((&entry["category"], entry["amount"].to_string().as_str()), (&json!("generate"), "50.00000000"));
    }
    assert_eq!(wallet.call("getbalances", json!([]))["mine"]["trusted"].to_string(), "100.00000000");
    wallet.import(&json!([{"desc": descriptor, "timestamp": "now"}]));
    assert_eq!(wallet.call("listsinceblock", json!([]))["transactions"].as_array().unwrap().len(), 2);
}

fn give_each_request_a_result(client: &mut Client) {
    let mut wallet = client.create_wallet("multi", json!({"blank": true}));
    let requests = json!([
        {"scriptPubKey": {"address": KEY.pkh}, "timestamp": 0, "keys": [KEY.wif], "label": "key"},
        {"scriptPubKey": {"address": ELSEWHERE}, "timestamp": 0, "watchonly": true},
        {"scriptPubKey": {"address": "nonsense"}, "timestamp": 0},
        {"scriptPubKey": {"address": KEY.pkh}, "timestamp": 0, "keys": [5]},
    ]);
    let results = wallet.call("importmulti", json!([requests]));
    assert_eq!(results[0], json!({"success": true}));
    assert_eq!(results[1], json!({"success": true}));
    let invalid = json!({"code": -5, "message": "Invalid address \"nonsense\""});
    assert_eq!(results[2], json!({"success": false, "error": invalid}));
    let missing = json!({"code": -1, "message": "Missing required fields"});
    assert_eq!(results[3], json!({"success": false, "error": missing}));
    // The key also owns its P2WPKH form; the watched address counts only on request.
    let count = |listed: Value| listed["transactions"].as_array().unwrap().len();
    assert_eq!(count(wallet.call("listsinceblock", json!([]))), 4);
    assert_eq!(count(wallet.call("listsinceblock", json!(["", 1, true]))), 104);
    assert_eq!(wallet.call("getbalances", json!([]))["mine"]["trusted"].to_string(), "200.00000000");
    let second = wallet
        .call("importmulti", json!([[{"scriptPubKey": {"address": KEY.pkh}, "timestamp": 0, "keys": [KEY.wif]}]]));
    let script = "76a91406afd46bcdfd22ef94ac122aa11f241244a37ecc88ac";
    let message = format!("The wallet already contains the private key for this address or script (\"{script}\")");
    assert_eq!(second[0]["error"], json!({"code": -4, "message": message}));
}

/// createwallet with and without descriptors.
fn make_the_one_kind_of_wallet(client: &mut Client) {
    let made = client.call("createwallet", json!({"wallet_name": "one-kind", "blank": true, "descriptors": false}));
    let warning = "There is one kind of wallet, which takes descriptors as well as keys and scripts: descriptors=false has no effect.";
    assert_eq!(made, json!({"name": "one-kind", "warnings": [warning]}));
    assert_eq!(client.call("createwallet", json!({"wallet_name": "d", "descriptors": true})), json!({"name": "d"}));
    let mut wallet = client.wallet("one-kind");
    let descriptor = client.with_checksum(&format!("wpkh({})", KEY.wif));
    let request = json!([[{"scriptPubKey": {"address": KEY.pkh}, "timestamp": 0, "watchonly": true}]]);
    assert_eq!(wallet.call("importmulti", request), json!([{"success": true}]));
    let request = json!([[{"desc": descriptor, "timestamp": "now"}]]);
    assert_eq!(wallet.call("importdescriptors", request), json!([{"success": true}]));
    assert_eq!(wallet.call("getwalletinfo", json!([]))["descriptors"], json!(true));
}

fn list_descriptors_that_another_wallet_takes(client: &mut Client) {
    let [mut wallet, mut copy, mut eyes] = [("listed", false), ("copy", false), ("eyes", true)]
        .map(|(name, disabled)| client.create_wallet(name, json!({"blank": true, "disable_private_keys": disabled})));
    let other = "02f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9";
    let multisig = format!("5121{}21{other}52ae", KEY.public);
    let program = client.call("decodescript", json!([multisig]))["segwit"].clone();
    let requests = json!([
        {"scriptPubKey": {"address": KEY.wpkh}, "keys": [KEY.wif], "timestamp": 0},
        {"scriptPubKey": program["hex"], "witnessscript": multisig, "timestamp": 0, "watchonly": true},
        {"scriptPubKey": {"address": ELSEWHERE}, "timestamp": 0, "watchonly": true},
    ]);
    for outcome in wallet.call("importmulti", json!([requests])).as_array().unwrap() {
        assert_eq!(outcome["success"], json!(true), "{outcome}");
    }
    let told = |wallet: &mut Client, private: bool| -> Vec<String> {
        let listed = wallet.call("listdescriptors", json!([private]));
        listed["descriptors"].as_array().unwrap().iter().map(|one| one["desc"].as_str().unwrap().to_owned()).collect()
    };
    let public = told(&mut wallet, false);
    let functions =
        |all: &[String]| all.iter().map(|text| text.split('(').next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(functions(&public), ["addr", "combo", "sh", "wsh"], "{public:?}");
    assert!(public[1].starts_with(&format!("combo({})#", KEY.public)), "{public:?}");
    let private = told(&mut wallet, true);
    assert_eq!(functions(&private), ["addr", "combo", "sh", "wsh"], "{private:?}");
    assert!(private[1].starts_with(&format!("combo({})#", KEY.wif)) && private[3].contains(KEY.wif), "{private:?}");

    // Descriptors with private keys go to one wallet, the others to a watch-only wallet.
    copy.import(&json!([{"desc": private[1], "timestamp": 0}]));
    // The wallet also watches the script's P2SH form.
    for text in [&public[0], &public[2], &public[3]] {
        eyes.import(&json!([{"desc": text, "timestamp": 0}]));
    }
    for wallet in [&mut wallet, &mut copy] {
        assert_eq!(wallet.call("getbalances", json!([]))["mine"]["trusted"].to_string(), "200.00000000");
    }
    assert_eq!(eyes.call("getaddressinfo", json!([program["address"]]))["solvable"], json!(true));
}
