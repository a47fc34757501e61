use outrigger_tests::{ELSEWHERE, Host, XPRV};
use serde_json::{Value, json};

use super::activate;

#[test]
fn getnewaddress_and_getrawchangeaddress_name_a_type_that_is_missing() {
    let host = Host::start();
    let mut client = host.client();
    client.call("createwallet", json!({"wallet_name": "w", "blank": true}));
    let no_keys = (-4, "Error: This wallet has no available keys".to_owned());
    assert_eq!(client.refused("getnewaddress", json!(["*", "nosuch"])), no_keys);
    activate(&mut client, &[(&format!("wpkh({XPRV}/0/*)"), false)]);
    assert_eq!(client.refused("getnewaddress", json!(["", "nosuch"])), (-5, "Unknown address type 'nosuch'".into()));
    let missing = (-12, "Error: No bech32m addresses available.".to_owned());
    assert_eq!(client.refused("getnewaddress", json!(["", "bech32m"])), missing);
    assert_eq!(client.refused("getrawchangeaddress", json!(["nosuch"])), no_keys);
    client.call("getnewaddress", json!([]));
}

#[test]
fn setlabel_and_all_stored_texts_are_bounded() {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    let address = wallet.mine(101);
    let (longest, long) = ("x".repeat(4096), "x".repeat(4097));
    let refused = (-11, "Invalid label name: it has 4097 bytes, and at most 4096 are stored".to_owned());
    assert_eq!(wallet.refused("setlabel", json!([address, long])), refused);
    assert_eq!(wallet.refused("getnewaddress", json!([long])), refused);
    assert_eq!(wallet.call("setlabel", json!([address, longest])), Value::Null);
    assert_eq!(wallet.call("getaddressinfo", json!([address]))["labels"], json!([longest]));
    let comment = "x".repeat(16_385);
    let refused = (-8, "Invalid comment: it has 16385 bytes, and at most 16384 are stored".to_owned());
    assert_eq!(wallet.refused("sendtoaddress", json!([address, 1, comment])), refused);
    assert_eq!(wallet.refused("sendmany", json!(["", {address.as_str().unwrap(): 1}, 1, comment])), refused);
    let txid = wallet.call("sendtoaddress", json!([address, 1, "x".repeat(16_384), "to"]));
    assert_eq!(wallet.call("gettransaction", json!([txid]))["comment"].as_str().unwrap().len(), 16_384);

    let descriptor = "wpkh(cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v)#pdry7alk";
    let import = json!([[{"desc": descriptor, "timestamp": "now", "label": long}]]);
    let outcome = wallet.call("importdescriptors", import);
    assert_eq!(outcome[0]["error"]["message"], json!("The label has 4097 bytes, and at most 4096 are stored"));
    let mut watch = wallet.create_wallet("watch", json!({"disable_private_keys": true, "descriptors": false}));
    for request in [
        json!({"scriptPubKey": {"address": ELSEWHERE}, "timestamp": "now", "label": long}),
        json!({"scriptPubKey": "51".repeat(10_001), "timestamp": "now", "internal": true}),
    ] {
        let outcome = watch.call("importmulti", json!([[request]]));
        assert_eq!(outcome[0]["success"], json!(false), "{outcome}");
        let message = outcome[0]["error"]["message"].as_str().unwrap();
        assert!(message.ends_with("are stored"), "{message}");
    }
}
