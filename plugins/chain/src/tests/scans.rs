//! Scans of the coins and of blocks, and block filters.

use bitcoin::OutPoint;
use outrigger_sdk::testing::{StubHost, TestPlugin};
use serde_json::{Value, json};

use super::{GENESIS, KEY, check, check_refusals, funded, pay, start};
use crate::ChainPlugin;

/// What all scans refuse of their objects; `arguments` puts them in their place.
fn check_objects(plugin: &TestPlugin<ChainPlugin>, method: &str, arguments: impl Fn(Value) -> Value) {
    const TPUB: &str = "tpubD6NzVbkrYhZ4WaWSyoBvQwbpLkojyoTZPRsgXELWz3Popb3qkjcJyJUGLnL4qHHoQvao8ESaAstxYSnhyswJ76uZPStJRJCTKvosUCJZL5B";
    let hardened = format!("wpkh({TPUB}/0h/*)");
    let without = format!("Cannot derive script without private keys: '{hardened}'");
    let cases = [
        (json!([5]), -8, "Scan object needs to be either a string or an object"),
        (json!([{}]), -8, "Descriptor needs to be provided in scan object"),
        (json!([{"desc": 5}]), -3, "JSON value of type number is not of expected type string"),
        (json!([{"desc": "raw(51)", "range": "x"}]), -8, "Range must be specified as end or as [begin,end]"),
        (
            json!([{"desc": "raw(51)", "range": [2, 1]}]),
            -8,
            "Range specified as [begin,end] must not have begin after end",
        ),
        (json!([hardened]), -5, &without),
    ];
    for (objects, code, message) in cases {
        check_refusals(plugin, method, &[(arguments(objects), code, message)]);
    }
}

#[test]
fn scantxoutset_finds_the_coins_of_descriptors() {
    let (host, outpoint) = funded();
    let plugin = start(&host);
    let key_hash = format!("wpkh({KEY})");
    let script = plugin
        .call("deriveaddresses", json!([plugin.call("getdescriptorinfo", json!([key_hash])).unwrap()["descriptor"]]));
    let script = plugin.call("validateaddress", json!([script.unwrap()[0]])).unwrap()["scriptPubKey"].clone();
    let paying = pay(outpoint, 100_000, &outrigger_sdk::params::decode_hex(script.as_str().unwrap()).unwrap());
    let made = OutPoint::new(paying.compute_txid(), 0);
    let hash = host.chain.mine(vec![paying]);
    let tip = host.chain.mine(vec![]);
    let found = plugin.call_json("scantxoutset", json!(["start", [format!("combo({KEY})")]])).unwrap();
    // The key with the fingerprint of itself.
    let desc = format!("wpkh([63f3ebd5]{KEY})");
    let desc = &plugin.call("getdescriptorinfo", json!([desc])).unwrap()["descriptor"];
    let expected = format!(
        r#"{{"success":true,"txouts":3,"height":2,"bestblock":"{tip}","unspents":[{{"txid":"{}","vout":0,"scriptPubKey":{script},"desc":{desc},"amount":0.00100000,"coinbase":false,"height":1,"blockhash":"{hash}","confirmations":2}}],"total_amount":0.00100000}}"#,
        made.txid
    );
    assert_eq!(found, expected);
    check(&plugin, "scantxoutset", &[(json!(["status"]), Value::Null), (json!(["abort"]), json!(false))]);
    check_refusals(
        &plugin,
        "scantxoutset",
        &[
            (json!(["foo"]), -8, "Invalid action 'foo'"),
            (json!(["start"]), -1, "scanobjects argument is required for the start action"),
        ],
    );
    check_objects(&plugin, "scantxoutset", |objects| json!(["start", objects]));
    // A scan that was refused has ended.
    check(&plugin, "scantxoutset", &[(json!(["status"]), Value::Null)]);
}

#[test]
fn scanblocks_finds_the_blocks_that_pay_and_that_spend() {
    let (host, outpoint) = funded();
    let plugin = start(&host);
    let paying = pay(outpoint, 100_000, &[0x52]);
    let made = OutPoint::new(paying.compute_txid(), 0);
    let first = host.chain.mine(vec![paying.clone()]);
    let between = host.chain.mine(vec![]);
    let spending = pay(made, 90_000, &[0x53]);
    let second = host.chain.mine(vec![spending.clone()]);
    let scan = |arguments: Value| plugin.call_json("scanblocks", arguments).unwrap();
    let expected = |from: u32, to: u32, blocks: Value| {
        format!(r#"{{"from_height":{from},"to_height":{to},"relevant_blocks":{blocks},"completed":true}}"#)
    };
    assert_eq!(scan(json!(["start", ["raw(52)"]])), expected(0, 3, json!([first, second])));
    assert_eq!(
        scan(json!(["start", ["raw(52)"], 2, 2, "basic", {"filter_false_positives": true}])),
        expected(2, 2, json!([]))
    );
    assert_eq!(scan(json!(["start", ["raw(51)"], 2, 2])), expected(2, 2, json!([between])));
    check(&plugin, "scanblocks", &[(json!(["status"]), Value::Null), (json!(["abort"]), json!(false))]);
    check_refusals(
        &plugin,
        "scanblocks",
        &[
            (json!(["foo"]), -8, "Invalid action 'foo'"),
            (json!(["start", [], 0, 0, "foo"]), -5, "Unknown filtertype"),
            (json!(["start", [], 4]), -1, "Invalid start_height"),
            (json!(["start", [], -1]), -1, "Invalid start_height"),
            (json!(["start", [], 2, 1]), -1, "Invalid stop_height"),
            (json!(["start", [], 2, 4]), -1, "Invalid stop_height"),
        ],
    );
    check_objects(&plugin, "scanblocks", |objects| json!(["start", objects]));
    let activity = plugin.call("getdescriptoractivity", json!([[second, first], ["raw(52)"]])).unwrap();
    let activity = activity["activity"].as_array().unwrap();
    assert_eq!(activity.iter().map(|event| &event["type"]).collect::<Vec<_>>(), ["receive", "spend"]);
    assert_eq!(activity[0]["txid"], json!(paying.compute_txid()));
    assert_eq!((&activity[1]["spend_txid"], &activity[1]["height"]), (&json!(spending.compute_txid()), &json!(3)));
    check_objects(&plugin, "getdescriptoractivity", |objects| json!([[], objects]));
}

#[test]
fn getblockfilter_is_computed_with_its_header() {
    let host = StubHost::new();
    let plugin = start(&host);
    // BIP 158 on the genesis block of regtest, as recorded from bitcoind.
    let genesis =
        json!({"filter": "014756c0", "header": "485e301e4509d7f0d954bf5b529f3ecef68c5191fd0e635f775c1d0266dc5a2b"});
    check(&plugin, "getblockfilter", &[(json!([GENESIS]), genesis.clone()), (json!([GENESIS, "basic"]), genesis)]);
    let hash = host.chain.mine(vec![]);
    host.chain.disconnect();
    // A block that was connected once has a filter all the same.
    assert!(plugin.call("getblockfilter", json!([hash])).is_ok());
    check_refusals(
        &plugin,
        "getblockfilter",
        &[
            (json!(["aa", "foo"]), -8, "blockhash must be of length 64 (not 2, for 'aa')"),
            (json!(["11".repeat(32), "foo"]), -5, "Unknown filtertype"),
            (json!(["11".repeat(32)]), -5, "Block not found"),
        ],
    );
}
