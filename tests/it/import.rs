//! importmulti and importdescriptors: what is imported is found on the chain.

use outrigger_tests::{Client, Host};
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
    let checksum =
        |client: &mut Client, text: String| client.call("getdescriptorinfo", json!([text]))["descriptor"].clone();
    for (function, address) in [("pkh", KEY.pkh), ("wpkh", KEY.wpkh)] {
        let descriptor = checksum(&mut client, format!("{function}({})", KEY.public));
        assert_eq!(client.call("deriveaddresses", json!([descriptor])), json!([address]), "{function}");
        client.call("generatetoaddress", json!([2, address]));
    }
    let elsewhere = "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202";
    client.call("generatetoaddress", json!([100, elsewhere]));
    (host, client)
}

/// The text of a descriptor with its checksum, private keys kept.
fn with_checksum(client: &mut Client, text: &str) -> String {
    let info = client.call("getdescriptorinfo", json!([text]));
    format!("{text}#{}", info["checksum"].as_str().unwrap())
}

#[test]
fn importdescriptors_finds_the_history_of_its_scripts() {
    let (_host, mut client) = paid();
    client.call("createwallet", json!({"wallet_name": "w", "blank": true}));
    let mut wallet = client.wallet("w");
    let descriptor = with_checksum(&mut client, &format!("wpkh({})", KEY.wif));
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
    let again = wallet.call("importdescriptors", json!([[{"desc": descriptor, "timestamp": "now"}]]));
    assert_eq!(again[0]["success"], json!(true));
    assert_eq!(wallet.call("listsinceblock", json!([]))["transactions"].as_array().unwrap().len(), 2);
}

#[test]
fn importdescriptors_active_range_gives_addresses_from_next_index() {
    let (_host, mut client) = paid();
    client.call("createwallet", json!({"wallet_name": "w", "blank": true}));
    let mut wallet = client.wallet("w");
    let key = "tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtHcQJCCRUcMRvmDUjyEmNUWwx8UbK";
    let descriptor = with_checksum(&mut client, &format!("wpkh({key}/1/*)"));
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
}

#[test]
fn importmulti_gives_each_request_a_result_of_its_own() {
    let (_host, mut client) = paid();
    client.call("createwallet", json!({"wallet_name": "w", "blank": true}));
    let mut wallet = client.wallet("w");
    let requests = json!([
        {"scriptPubKey": {"address": KEY.pkh}, "timestamp": 0, "keys": [KEY.wif], "label": "key"},
        {"scriptPubKey": {"address": "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202"}, "timestamp": 0, "watchonly": true},
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
    // The key owns its P2WPKH form too; the watched address counts only when asked for.
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

#[test]
fn importmulti_and_importdescriptors_fail_without_a_timestamp_before_and_after_storing() {
    let (_host, mut client) = paid();
    client.call("createwallet", json!({"wallet_name": "w", "blank": true}));
    let mut wallet = client.wallet("w");
    let bad = (-3, "Missing required timestamp field for key".to_owned());
    let requests = json!([{"scriptPubKey": {"address": KEY.pkh}, "timestamp": 0, "watchonly": true}, {}]);
    assert_eq!(wallet.refused("importmulti", json!([requests])), bad);
    assert_eq!(wallet.call("getaddressinfo", json!([KEY.pkh]))["iswatchonly"], json!(false));
    let descriptor = with_checksum(&mut client, &format!("wpkh({})", KEY.wif));
    let requests = json!([{"desc": descriptor, "timestamp": 0}, {}]);
    assert_eq!(wallet.refused("importdescriptors", json!([requests])), bad);
    assert_eq!(wallet.call("getaddressinfo", json!([KEY.wpkh]))["ismine"], json!(true));
}

#[test]
fn importmulti_and_importdescriptors_are_refused_by_the_other_kind_of_wallet() {
    let (_host, mut client) = paid();
    client.call("createwallet", json!({"wallet_name": "d", "blank": true, "descriptors": true}));
    client.call("createwallet", json!({"wallet_name": "l", "blank": true, "descriptors": false}));
    let request = json!([[{"scriptPubKey": {"address": KEY.pkh}, "timestamp": 0, "watchonly": true}]]);
    assert_eq!(
        client.wallet("d").refused("importmulti", request),
        (-4, "Only legacy wallets are supported by this command".into())
    );
    assert_eq!(
        client.wallet("l").refused("importdescriptors", json!([[]])),
        (-4, "importdescriptors is not available for non-descriptor wallets".into())
    );
}
