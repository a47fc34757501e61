//! The signing operations on a real chain and a real wallet.

use outrigger_tests::{Host, HostOptions};
use serde_json::{Value, json};

#[test]
fn a_wallet_signs_every_kind_of_its_addresses() {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    let kinds = ["legacy", "p2sh-segwit", "bech32", "bech32m"];
    let addresses: Vec<Value> = kinds.iter().map(|kind| wallet.call("getnewaddress", json!(["", kind]))).collect();
    for address in &addresses {
        wallet.call("generatetoaddress", json!([1, address]));
    }
    wallet.call("generatetoaddress", json!([100, addresses[0]]));
    let coins = wallet.call("listunspent", json!([100, 999, addresses]));
    assert_eq!(coins.as_array().unwrap().len(), 4, "{coins}");
    let inputs: Vec<Value> =
        coins.as_array().unwrap().iter().map(|c| json!({"txid": c["txid"], "vout": c["vout"]})).collect();
    let raw = wallet.call("createrawtransaction", json!([inputs, [{addresses[2].as_str().unwrap(): 199.999}]]));
    let unsigned = wallet.call("testmempoolaccept", json!([[raw]]));
    assert_eq!(unsigned[0]["allowed"], json!(false));
    let signed = wallet.call("signrawtransactionwithwallet", json!([raw]));
    assert_eq!((&signed["complete"], signed.get("errors")), (&json!(true), None), "{signed}");
    let txid = wallet.call("sendrawtransaction", json!([signed["hex"]]));
    let again = wallet.call("signrawtransactionwithwallet", json!([signed["hex"]]));
    assert_eq!(again["hex"], signed["hex"]);
    wallet.call("generatetoaddress", json!([1, addresses[0]]));
    assert_eq!(wallet.call("gettransaction", json!([txid]))["confirmations"], json!(1));
}

#[test]
fn given_keys_sign_and_what_is_missing_is_told_by_input() {
    let host = Host::start();
    let mut client = host.client();
    let key = "cUeKHd5orzT3mz8P9pxyREHfsWtVfgsfDjiZZBcjUBAaGk1BTj7N";
    let script = "76a91460baa0f494b38ce3c940dea67f3804dc52d1fb9488ac";
    let prevtxs = json!([{"txid": "11".repeat(32), "vout": 1, "scriptPubKey": script, "amount": 1}]);
    let raw = client.call("createrawtransaction", json!([[{"txid": "11".repeat(32), "vout": 1}], [{"data": "00"}]]));
    let unknown = client.call("signrawtransactionwithkey", json!([raw, [key]]));
    assert_eq!(unknown["errors"][0]["error"], json!("Input not found or already spent"));
    assert_eq!(unknown["hex"], raw);
    let unsigned = client.call("signrawtransactionwithkey", json!([raw, [], prevtxs]));
    let text = "Unable to sign input, invalid stack size (possibly missing key)";
    assert_eq!((&unsigned["complete"], &unsigned["errors"][0]["error"]), (&json!(false), &json!(text)));
    let keys: Vec<&String> = unsigned["errors"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["txid", "vout", "witness", "scriptSig", "sequence", "error"]);
    let checks = [
        (json!([raw, null]), -1, "JSON value is not an array as expected"),
        (json!([raw, ["x"]]), -5, "Invalid private key"),
        (json!([raw, [], [{"txid": "11".repeat(32)}]]), -3, "Missing scriptPubKey"),
        (json!([raw, [], [], "all"]), -1, "all is not a valid sighash parameter."),
    ];
    for (params, code, message) in checks {
        assert_eq!(client.refused("signrawtransactionwithkey", params.clone()), (code, message.to_owned()), "{params}");
    }
}

#[test]
fn a_locked_wallet_does_not_sign_and_an_unlocked_one_does() {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    let address = wallet.call("getnewaddress", json!([]));
    wallet.call("generatetoaddress", json!([101, address]));
    let coin = wallet.call("listunspent", json!([]))[0].clone();
    let inputs = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
    let raw = wallet.call("createrawtransaction", json!([inputs, [{address.as_str().unwrap(): 49.999}]]));
    wallet.call("encryptwallet", json!(["pass phrase"]));
    let locked = (-13, "Error: Please enter the wallet passphrase with walletpassphrase first.".to_owned());
    assert_eq!(wallet.refused("signrawtransactionwithwallet", json!([raw])), locked);
    let wrong = (-14, "Error: The wallet passphrase entered was incorrect.".to_owned());
    assert_eq!(wallet.refused("walletpassphrase", json!(["wrong", 60])), wrong);
    wallet.call("walletpassphrase", json!(["pass phrase", 60]));
    assert_eq!(wallet.call("signrawtransactionwithwallet", json!([raw]))["complete"], json!(true));
    wallet.call("walletlock", json!([]));
    assert_eq!(wallet.refused("signrawtransactionwithwallet", json!([raw])), locked);
}

#[test]
fn given_keys_sign_without_a_grant_for_mempool_or_wallets() {
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(config.path(), "[[plugins]]\nfile = \"signing\"\ngrants = [\"chain/1\"]\n").unwrap();
    let host = Host::start_with(HostOptions { config: Some(config.path().to_owned()), ..HostOptions::default() });
    let mut client = host.client();
    let key = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA";
    let script = "0014751e76e8199196d454941c45d1b3a323f1433bd6";
    let txid = "11".repeat(32);
    let prevtxs = json!([{"txid": txid, "vout": 0, "scriptPubKey": script, "amount": "0.5"}]);
    // Version 2, one input, one output of 1 satoshi without conditions.
    let raw = format!("0200000001{txid}0000000000ffffffff0101000000000000000151{}", "00000000");
    assert_eq!(client.call("signrawtransactionwithkey", json!([raw, [key], prevtxs]))["complete"], json!(true));
    let refused = client.refused("signrawtransactionwithwallet", json!([raw]));
    assert_eq!(refused, (-32603, "The plugin lacks the grant for this service".into()));
}
