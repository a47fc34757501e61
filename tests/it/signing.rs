//! The signing group on a real chain and a real wallet, and held against signatures that a real bitcoind made, byte for byte.
//! `vault.rs` has those of a third party's group in the place of this one.

use outrigger_tests::{Client, Host, HostOptions, data_json, groups};
use serde_json::{Value, json};

use crate::chain;
use crate::plugin_control::plugin;

#[test]
fn signrawtransactionwithwallet_signs_every_kind_of_address() {
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
fn signrawtransactionwithkey_errors_tell_what_is_missing_by_input() {
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
        (json!([raw, [5]]), -3, "JSON value of type number is not of expected type string"),
        (json!([raw, ["x"]]), -5, "Invalid private key"),
        (json!([raw, [], [{"txid": "11".repeat(32)}]]), -3, "Missing scriptPubKey"),
        (json!([raw, [], [], "all"]), -8, "'all' is not a valid sighash parameter."),
    ];
    for (params, code, message) in checks {
        assert_eq!(client.refused("signrawtransactionwithkey", params.clone()), (code, message.to_owned()), "{params}");
    }
}

#[test]
fn signrawtransactionwithwallet_needs_an_unlocked_wallet() {
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
fn signrawtransactionwithkey_needs_no_grant_for_mempool_or_wallets() {
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

#[test]
fn signrawtransactionwithwallet_signs_only_for_the_wallets_of_its_grant() {
    let text = std::fs::read_to_string(groups("regtest.toml")).unwrap();
    let all = "file = \"signing\"\ntrusted = true\ngrants = [\"chain/1\", \"mempool/1\", \"wallet/1\", \"signer/1\", \"log/1\"]";
    let some = all.replace("\"signer/1\"", "{ service = \"signer/1\", wallets = [\"hot\"] }");
    assert!(text.contains(all), "the configuration has changed");
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(config.path(), text.replace(all, &some)).unwrap();
    let host = Host::start_with(HostOptions { config: Some(config.path().to_owned()), ..HostOptions::default() });
    let signed = |wallet: &str| {
        let mut client = host.new_wallet(wallet);
        let address = client.call("getnewaddress", json!([]));
        client.call("generatetoaddress", json!([101, address]));
        let coin = client.call("listunspent", json!([]))[0].clone();
        let inputs = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
        let raw = client.call("createrawtransaction", json!([inputs, {address.as_str().unwrap(): "1.0"}]));
        client.try_call("signrawtransactionwithwallet", json!([raw]))
    };
    assert_eq!(signed("hot").unwrap()["complete"], json!(true));
    let error = signed("cold").unwrap_err();
    let message = "The plugin may not use the keys of the wallet \"cold\"";
    assert_eq!((error.code, error.message.as_str()), (-32603, message));
    let grants = plugin(&mut host.client(), "signing")["grants"].clone();
    assert!(grants.as_array().unwrap().contains(&json!("signer/1 (wallets: hot)")), "{grants}");
}

/// Leaves out what only the recording node says.
fn without_extras(reply: &Value) -> Value {
    let mut reply = reply.clone();
    if let Some(object) = reply.as_object_mut() {
        object.shift_remove("fee");
        object.shift_remove("feerate");
    }
    reply
}

/// A wallet that holds just these descriptors.
fn wallet_with(client: &mut Client, name: &str, descriptors: &Value) -> Client {
    client.call("createwallet", json!({"wallet_name": name, "blank": true}));
    let mut wallet = client.wallet(name);
    let requests: Vec<Value> = descriptors
        .as_array()
        .unwrap()
        .iter()
        .map(|descriptor| match descriptor {
            Value::String(text) => json!({"desc": text, "timestamp": "now"}),
            request => request.clone(),
        })
        .collect();
    for result in wallet.call("importdescriptors", json!([requests])).as_array().unwrap() {
        assert_eq!(result["success"], json!(true), "{name}: {result}");
    }
    wallet
}

fn differences(client: &mut Client, rows: &[Value], excused: impl Fn(&str) -> bool) -> Vec<String> {
    let mut differ = Vec::new();
    let mut wallets: Vec<(Value, String)> = Vec::new();
    for row in rows {
        let name = row["name"].as_str().unwrap();
        let descriptors = &row["wallet_descriptors"];
        let mut own = match descriptors {
            Value::Null => client.wallet(""),
            descriptors => match wallets.iter().find(|(known, _)| known == descriptors) {
                Some((_, wallet)) => client.wallet(wallet),
                None => {
                    let wallet = format!("w{}", wallets.len());
                    wallets.push((descriptors.clone(), wallet.clone()));
                    wallet_with(client, &wallet, descriptors)
                }
            },
        };
        let got = match own.try_call(row["method"].as_str().unwrap(), row["params"].clone()) {
            Ok(reply) => without_extras(&reply),
            Err(error) => json!({"code": error.code, "message": error.message}),
        };
        let wanted = if row["reply"].is_null() { row["error"].clone() } else { without_extras(&row["reply"]) };
        if got != wanted && !excused(name) {
            differ.push(format!("{name}:\n  got    {got}\n  wanted {wanted}"));
        }
    }
    differ
}

/// Where this host deliberately follows another rule than Bitcoin Core 29, by the row's name.
fn excused(name: &str) -> bool {
    // A given key also signs for the output that BIP 86 tweaks it into.
    name.contains("BIP 86 tweak")
        // A compressed key makes its P2WPKH script known, so that the nested form signs without a redeem script.
        || name == "chain sh-wpkh: keys, nothing else"
}

#[test]
fn signrawtransactionwithkey_and_withwallet_answer_recorded_rows_alike() {
    let host = Host::start();
    let mut client = host.client();
    chain::load(&mut client);
    let [mut recorded, texts] = ["signing.json", "signing-texts.json"].map(data_json);
    let rows = recorded["rows"].as_array_mut().unwrap();
    rows.extend(texts["rows"].as_array().unwrap().iter().cloned());
    let differ = differences(&mut client, rows, excused);
    assert!(differ.is_empty(), "{} of {} rows differ:\n{}", differ.len(), rows.len(), differ.join("\n"));
}

#[test]
fn signrawtransactionwithkey_and_withwallet_make_what_bitcoind_accepted() {
    let host = Host::start();
    let mut client = host.client();
    chain::load(&mut client);
    let recorded = data_json("signing-chain.json");
    let rows = recorded["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["accepted"] == json!(true)));
    let differ = differences(&mut client, rows, |_| false);
    assert!(differ.is_empty(), "{} of {} rows differ:\n{}", differ.len(), rows.len(), differ.join("\n"));
}
