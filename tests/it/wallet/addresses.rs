use outrigger_tests::{Client, ELSEWHERE, Host, NOBODY, XPRV};
use serde_json::{Value, json};

use super::{activate, fund};

#[test]
fn addresses_are_of_the_types_that_the_wallet_has_and_each_is_used_once() {
    let host = Host::start();
    // First, since it needs a coinbase without fees.
    check_used_change_addresses(&host);
    check_missing_types(&host);
    check_change_of_other_types(&host);
}

/// sendtoaddress uses one change address, or none if it fails.
fn check_used_change_addresses(host: &Host) {
    let mut client = host.new_wallet("used");
    fund(&mut client, "bech32");
    let index = |client: &mut Client| {
        let address = client.call("getrawchangeaddress", json!([]));
        let path = client.call("getaddressinfo", json!([address]))["hdkeypath"].as_str().unwrap().to_owned();
        path.rsplit('/').next().unwrap().parse::<u32>().unwrap()
    };
    let range = |client: &mut Client| {
        let listed = client.call("listdescriptors", json!([]));
        let of = |listed: &&Value| {
            listed["internal"] == json!(true) && listed["desc"].as_str().unwrap().starts_with("wpkh(")
        };
        listed["descriptors"].as_array().unwrap().iter().find(of).unwrap()["range"][1].as_u64().unwrap()
    };
    assert_eq!(index(&mut client), 0);
    let before = range(&mut client);
    assert_eq!(client.refused("sendtoaddress", json!([NOBODY, 51])).0, -6);
    assert_eq!(range(&mut client), before + 1, "what was derived ahead for it stays");
    assert_eq!(index(&mut client), 1);
    client.call("sendtoaddress", json!({"address": NOBODY, "amount": 50, "subtractfeefromamount": true}));
    assert_eq!(index(&mut client), 3);
}

/// getnewaddress and getrawchangeaddress name the missing address type.
fn check_missing_types(host: &Host) {
    let mut client = host.client().create_wallet("missing-types", json!({"blank": true}));
    let no_keys = (-4, "Error: This wallet has no available keys".to_owned());
    assert_eq!(client.refused("getnewaddress", json!(["*", "nosuch"])), no_keys);
    activate(&mut client, &[(&format!("wpkh({XPRV}/0/*)"), false)]);
    assert_eq!(client.refused("getnewaddress", json!(["", "nosuch"])), (-5, "Unknown address type 'nosuch'".into()));
    let missing = (-12, "Error: No bech32m addresses available.".to_owned());
    assert_eq!(client.refused("getnewaddress", json!(["", "bech32m"])), missing);
    assert_eq!(client.refused("getrawchangeaddress", json!(["nosuch"])), no_keys);
    client.call("getnewaddress", json!([]));
}

/// sendtoaddress without a change address is refused, and P2WSH change is weighed correctly.
fn check_change_of_other_types(host: &Host) {
    let mut client = host.client().create_wallet("other-types", json!({"blank": true}));
    activate(&mut client, &[(&format!("wpkh({XPRV}/0/*)"), false), (&format!("pkh({XPRV}/1/*)"), true)]);
    fund(&mut client, "bech32");
    let message = "Transaction needs a change address, but we can't generate it. Error: No bech32 addresses available.";
    assert_eq!(client.refused("sendtoaddress", json!([NOBODY, 1])), (-6, message.into()));
    assert_eq!(client.refused("sendmany", json!(["", {NOBODY: 1}])), (-6, message.into()));
    assert_eq!(client.refused("sendtoaddress", json!([NOBODY, 51])), (-6, "Insufficient funds".into()));
    activate(&mut client, &[(&format!("wsh(pk({XPRV}/2/*))"), true)]);
    let txid = client.call("sendtoaddress", json!({"address": NOBODY, "amount": 1, "fee_rate": 1}));
    let entry = client.call("getmempoolentry", json!([txid]));
    let fee = entry["fees"]["base"].to_string().replace('.', "").parse::<u64>().unwrap();
    let size = entry["vsize"].as_u64().unwrap();
    // One signature in 256 is a byte shorter than estimated.
    assert!((size..=size + 1).contains(&fee), "{fee} for {size}");
    let outputs = client.call("gettransaction", json!({"txid": txid, "verbose": true}))["decoded"]["vout"].clone();
    let types: Vec<&Value> = outputs.as_array().unwrap().iter().map(|output| &output["scriptPubKey"]["type"]).collect();
    assert!(types.contains(&&json!("witness_v0_scripthash")), "{types:?}");
}

#[test]
fn wallet_calls_limit_their_texts_and_accept_options_by_name() {
    let host = Host::start();
    check_options(&host);
    check_stored_texts(&host);
}

/// listunspent and importmulti accept options by name.
fn check_options(host: &Host) {
    let mut client = host.client().create_wallet("options", json!({"descriptors": false}));
    fund(&mut client, "bech32");
    let count = |client: &mut Client, params| client.call("listunspent", params).as_array().unwrap().len();
    assert_eq!(count(&mut client, json!({"minimumAmount": 50, "minconf": 101})), 1);
    assert_eq!(count(&mut client, json!({"args": [1], "minimumAmount": "50.00000001"})), 0);
    for options in [json!({}), Value::Null] {
        let message = "Parameter query_options conflicts with parameter maximumCount";
        let refused = client.refused("listunspent", json!({"maximumCount": 1, "query_options": options}));
        assert_eq!(refused, (-8, message.into()));
    }
    let refused = client.refused("listunspent", json!({"query_options": {"nosuch": 1}}));
    assert_eq!(refused, (-3, "Unexpected key nosuch".into()));
    assert_eq!(client.refused("listunspent", json!({"nosuch": 1})), (-8, "Unknown named parameter nosuch".into()));
    let request = json!([{"scriptPubKey": {"address": NOBODY},
        "timestamp": 0, "watchonly": true}]);
    let imported = client.call("importmulti", json!({"requests": request, "rescan": false}));
    assert_eq!(imported[0]["success"], json!(true));
    let message = "Parameter options conflicts with parameter rescan";
    let refused = client.refused("importmulti", json!({"requests": request, "rescan": false, "options": {}}));
    assert_eq!(refused, (-8, message.into()));
}

/// Each call that stores texts limits their length.
fn check_stored_texts(host: &Host) {
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
