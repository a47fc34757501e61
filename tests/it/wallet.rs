//! The supporting methods of a first session.

use outrigger_tests::Host;
use serde_json::{Value, json};

#[test]
fn wallets_are_made_loaded_and_chosen() {
    let host = Host::start();
    let mut client = host.client();
    let none = client.refused("getwalletinfo", json!([]));
    assert_eq!(none.0, -18);
    assert!(none.1.starts_with("No wallet is loaded."), "{}", none.1);
    assert_eq!(client.call("createwallet", json!(["a"]))["name"], json!("a"));
    assert_eq!(client.call("getwalletinfo", json!([]))["walletname"], json!("a"));
    client.call("createwallet", json!(["b b"]));
    assert_eq!(client.call("listwallets", json!([])), json!(["a", "b b"]));
    assert_eq!(client.refused("getwalletinfo", json!([])).0, -19);
    assert_eq!(client.wallet("b%20b").call("getwalletinfo", json!([]))["walletname"], json!("b b"));
    assert_eq!(client.refused("createwallet", json!(["a"])).0, -4);
    assert_eq!(client.refused("loadwallet", json!(["a"])).0, -35);
    assert_eq!(client.refused("loadwallet", json!(["nosuch"])).0, -18);
    for name in ["../up", "/absolute", "nul\u{0}"] {
        assert!(client.try_call("createwallet", json!([name])).is_err(), "{name:?}");
    }
    client.call("createwallet", json!({"wallet_name": "blank", "blank": true}));
    let mut blank = client.wallet("blank");
    assert_eq!(blank.refused("keypoolrefill", json!([5])), (-4, "Error refreshing keypool.".into()));
    assert_eq!(blank.call("keypoolrefill", json!([])), Value::Null);
    blank.call("unloadwallet", json!([]));
    client.call("unloadwallet", json!(["a"]));
    assert_eq!(client.call("listwallets", json!([])), json!(["b b"]));
    client.call("loadwallet", json!(["a"]));
    assert_eq!(client.call("listwallets", json!([])), json!(["b b", "a"]));
}

#[test]
fn money_goes_from_wallet_to_wallet_exactly() {
    let host = Host::start();
    let mut alice = host.new_wallet("alice");
    let mut bob = host.new_wallet("bob");
    let mining = alice.call("getnewaddress", json!([]));
    alice.call("generatetoaddress", json!([101, mining]));
    let balances = alice.call("getbalances", json!([]));
    assert_eq!(balances["mine"]["trusted"].to_string(), "50.00000000");
    assert_eq!(balances["mine"]["immature"].to_string(), "5000.00000000");
    for kind in ["legacy", "p2sh-segwit", "bech32", "bech32m"] {
        let address = bob.call("getnewaddress", json!(["", kind]));
        let txid = alice.call("sendtoaddress", json!([address, "0.1"]));
        let entry = alice.call("getmempoolentry", json!([txid]));
        let fee = alice.call("gettransaction", json!([txid]))["fee"].to_string();
        assert_eq!(fee, format!("-{}", entry["fees"]["base"]), "{kind}");
    }
    assert_eq!(bob.call("getbalances", json!([]))["mine"]["untrusted_pending"].to_string(), "0.40000000");
    alice.call("generatetoaddress", json!([1, mining]));
    assert_eq!(bob.call("getbalances", json!([]))["mine"]["trusted"].to_string(), "0.40000000");
    assert_eq!(bob.call("listunspent", json!([])).as_array().unwrap().len(), 4);
    let back = alice.call("getnewaddress", json!([]));
    let all = bob.call("sendtoaddress", json!({"address": back, "amount": 0.4, "subtractfeefromamount": true}));
    assert_eq!(bob.call("getbalances", json!([]))["mine"]["trusted"].to_string(), "0.00000000");
    assert_eq!(alice.call("gettransaction", json!([all]))["confirmations"], json!(0));
    assert_eq!(bob.refused("sendtoaddress", json!([back, 1])).0, -6);
    assert_eq!(bob.refused("sendtoaddress", json!(["nonsense", 1])).0, -5);
    assert_eq!(bob.refused("sendtoaddress", json!([back, -1])), (-3, "Amount out of range".into()));
}

#[test]
fn one_payment_pays_several() {
    let host = Host::start();
    let mut alice = host.new_wallet("alice");
    let mut bob = host.new_wallet("bob");
    let mining = alice.call("getnewaddress", json!([]));
    alice.call("generatetoaddress", json!([101, mining]));
    let [first, second, third] =
        ["legacy", "bech32", "bech32m"].map(|kind| bob.call("getnewaddress", json!(["", kind])));
    let [first, second, third] = [&first, &second, &third].map(|address| address.as_str().unwrap());
    let amounts = json!({first: 1, second: "0.5", third: 0.25, "data": "0102"});
    let txid = alice.call("sendmany", json!(["", amounts, 6, "wages", [first, 2]]));
    let entry = alice.call("getmempoolentry", json!([txid]));
    let sent = alice.call("gettransaction", json!([txid]));
    assert_eq!(
        (sent["comment"].clone(), sent["fee"].to_string()),
        (json!("wages"), format!("-{}", entry["fees"]["base"]))
    );
    alice.call("generatetoaddress", json!([1, mining]));
    let fee = sent["fee"].to_string().replace("-0.", "").parse::<u64>().unwrap();
    let received = bob.call("getbalances", json!([]))["mine"]["trusted"].to_string();
    assert_eq!(received.replace('.', "").parse::<u64>().unwrap(), 175_000_000 - fee);
    // JSON that names an address twice has no meaning that all readers share.
    let twice = format!(r#"{{"method":"sendmany","params":["",{{"{first}":1,"{first}":2}}],"id":1}}"#);
    let refusal = format!("Invalid parameter, duplicated address: {first}");
    assert!(alice.post(&twice).body.contains(&refusal));
}

#[test]
fn a_wallet_is_encrypted_unlocked_and_locked() {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    assert_eq!(wallet.refused("walletlock", json!([])).0, -15);
    wallet.call("encryptwallet", json!(["correct horse"]));
    assert_eq!(wallet.refused("encryptwallet", json!(["again"])).0, -15);
    assert_eq!(wallet.call("getwalletinfo", json!([]))["unlocked_until"], json!(0));
    assert_eq!(wallet.refused("listdescriptors", json!([true])).0, -13);
    wallet.call("walletpassphrase", json!(["correct horse", 1000]));
    assert!(wallet.call("getwalletinfo", json!([]))["unlocked_until"].as_u64().unwrap() > 1_000_000_000);
    // Encrypting makes fresh keys; those that were once in the clear stay, but give no new addresses.
    let listed = wallet.call("listdescriptors", json!([true]));
    let active: Vec<&Value> = listed["descriptors"].as_array().unwrap().iter().map(|d| &d["active"]).collect();
    assert_eq!((active.len(), active.iter().filter(|active| **active == &json!(true)).count()), (16, 8));
    wallet.call("walletpassphrasechange", json!(["correct horse", "battery staple"]));
    wallet.call("walletlock", json!([]));
    assert_eq!(wallet.refused("walletpassphrase", json!(["correct horse", 10])).0, -14);
    // Addresses are derived while it is locked.
    let first = wallet.call("getnewaddress", json!([]));
    assert_ne!(wallet.call("getnewaddress", json!([])), first);
    let host = host.restart();
    let mut client = host.client();
    client.call("loadwallet", json!(["w"]));
    let mut wallet = client.wallet("w");
    assert_eq!(wallet.call("getaddressinfo", json!([first]))["ismine"], json!(true));
    wallet.call("walletpassphrase", json!(["battery staple", 10]));
}

#[test]
fn transactions_are_made_read_and_relayed() {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    let address = wallet.call("getnewaddress", json!([]));
    let hashes = wallet.call("generatetoaddress", json!([101, address]));
    let block = wallet.call("getblock", json!([hashes[0], 2]));
    let coinbase = &block["tx"][0];
    let raw = wallet.call("getrawtransaction", json!([coinbase["txid"], true]));
    assert_eq!((&raw["txid"], &raw["blockhash"]), (&coinbase["txid"], &hashes[0]));
    let unknown = wallet.refused("getrawtransaction", json!(["ab".repeat(32)]));
    assert_eq!(unknown.0, -5);
    let inputs = json!([{"txid": coinbase["txid"], "vout": 0}]);
    let made =
        wallet.call("createrawtransaction", json!([inputs, [{address.as_str().unwrap(): 49.99}, {"data": "beef"}]]));
    let decoded = wallet.call("decoderawtransaction", json!([made]));
    assert_eq!(decoded["vout"][0]["value"].to_string(), "49.99000000");
    assert_eq!(decoded["vout"][1]["scriptPubKey"]["type"], json!("nulldata"));
    let signed = wallet.call("signrawtransactionwithwallet", json!([made]))["hex"].clone();
    let txid = wallet.call("sendrawtransaction", json!([signed]));
    assert_eq!(wallet.call("getrawmempool", json!([])), json!([txid]));
    assert_eq!(wallet.call("getmempoolinfo", json!([]))["size"], json!(1));
    assert_eq!(wallet.call("getrawtransaction", json!([txid])), signed);
    let spent = wallet.call("createrawtransaction", json!([inputs, [{address.as_str().unwrap(): 49.9999}]]));
    let spent = wallet.call("signrawtransactionwithwallet", json!([spent]))["hex"].clone();
    let conflict = wallet.refused("sendrawtransaction", json!([spent]));
    assert_eq!(conflict.0, -26, "{conflict:?}");
    wallet.call("generatetoaddress", json!([1, address]));
    assert_eq!(wallet.refused("sendrawtransaction", json!([signed])).0, -27);
    assert_eq!(wallet.refused("sendrawtransaction", json!([spent])), (-25, "bad-txns-inputs-missingorspent".into()));
    assert_eq!(wallet.call("gettxout", json!([coinbase["txid"], 0])), Value::Null);
}

/// As bitcoind 29 answered to the same steps.
#[test]
fn a_wallet_that_avoids_reuse_tells_apart_what_came_to_addresses_it_has_spent_from() {
    let host = Host::start();
    let mut rich = host.new_wallet("rich");
    let mining = rich.call("getnewaddress", json!([]));
    rich.call("generatetoaddress", json!([101, mining]));
    rich.call("createwallet", json!(["careful", false, false, "", true]));
    let mut careful = host.client().wallet("careful");
    let [used, fresh] = [(); 2].map(|()| careful.call("getnewaddress", json!([])));
    rich.call("sendtoaddress", json!([used, 10]));
    rich.call("sendtoaddress", json!([fresh, 1]));
    rich.call("generatetoaddress", json!([1, mining]));
    // A text of a descriptor is the same wherever it is told.
    let coin = careful.call("listunspent", json!([1, 9, [used]]))[0].clone();
    let received = careful.call("listtransactions", json!(["*", 10]));
    let of_coin = received.as_array().unwrap().iter().find(|entry| entry["txid"] == coin["txid"]).unwrap();
    assert_eq!(coin["parent_descs"], of_coin["parent_descs"]);
    assert_eq!((coin["parent_descs"].as_array().unwrap().len(), &coin["reused"]), (1, &json!(false)));

    let inputs = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
    let raw = careful
        .call("createrawtransaction", json!([inputs, [{"bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202": 9.999}]]));
    let signed = careful.call("signrawtransactionwithwallet", json!([raw]));
    careful.call("sendrawtransaction", json!([signed["hex"]]));
    rich.call("sendtoaddress", json!([used, 5]));
    rich.call("generatetoaddress", json!([1, mining]));
    let mine = careful.call("getbalances", json!([]))["mine"].to_string();
    let told = r#"{"trusted":1.00000000,"untrusted_pending":0.00000000,"immature":0.00000000,"used":5.00000000}"#;
    assert_eq!(mine, told);
    assert_eq!(careful.call("getbalance", json!(["*", 0, false, false])).to_string(), "6.00000000");
    assert_eq!(careful.call("listunspent", json!([1, 9, [used]]))[0]["reused"], json!(true));
    let elsewhere = json!("bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202");
    assert_eq!(careful.refused("sendtoaddress", json!([elsewhere, 3])), (-6, "Insufficient funds".into()));
    careful.call("sendtoaddress", json!([elsewhere, 3, "", "", false, true, null, "unset", false]));
}

#[test]
fn setlabel_and_all_stored_texts_are_bounded() {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    let address = wallet.call("getnewaddress", json!([]));
    wallet.call("generatetoaddress", json!([101, address]));
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
    wallet.call("createwallet", json!({"wallet_name": "watch", "disable_private_keys": true, "descriptors": false}));
    let mut watch = wallet.wallet("watch");
    for request in [
        json!({"scriptPubKey": {"address": "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202"}, "timestamp": "now", "label": long}),
        json!({"scriptPubKey": "51".repeat(10_001), "timestamp": "now", "internal": true}),
    ] {
        let outcome = watch.call("importmulti", json!([[request]]));
        assert_eq!(outcome[0]["success"], json!(false), "{outcome}");
        let message = outcome[0]["error"]["message"].as_str().unwrap();
        assert!(message.ends_with("are stored"), "{message}");
    }
}
