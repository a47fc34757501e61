//! The signing group on a real chain and wallet, compared byte for byte with signatures of a real bitcoind. `vault.rs` runs the tests of
//! a third party's signing group.

use outrigger_tests::{Client, Host, HostOptions, RECORDED, all_groups, is_same_text, recorded};
use serde_json::{Value, json};

use crate::chain;

#[test]
fn signrawtransactionwithkey_needs_no_grant_for_mempool_or_wallets() {
    let host = Host::start_with(HostOptions::configured("[[plugins]]\nfile = \"signing\"\ngrants = [\"chain/1\"]\n"));
    let mut client = host.client();
    let key = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA";
    let script = "0014751e76e8199196d454941c45d1b3a323f1433bd6";
    let txid = "11".repeat(32);
    let prevtxs = json!([{"txid": txid, "vout": 0, "scriptPubKey": script, "amount": "0.5"}]);
    // Version 2, one input, one output of 1 satoshi that anyone can spend.
    let raw = format!("0200000001{txid}0000000000ffffffff0101000000000000000151{}", "00000000");
    assert_eq!(client.call("signrawtransactionwithkey", json!([raw, [key], prevtxs]))["complete"], json!(true));
    let refused = client.refused("signrawtransactionwithwallet", json!([raw]));
    assert_eq!(refused, (-32603, "The plugin's grants lack wallet-read/1".into()));
}

#[test]
fn signrawtransactionwithwallet_signs_only_for_the_wallets_of_its_grant() {
    let text = all_groups();
    let all = "file = \"signing\"\ntrusted = true\ngrants = [\"chain/1\", \"mempool/1\", \"wallet-read/1\", \"signer/1\", \"log/1\"]";
    let some = all.replace("\"signer/1\"", "{ service = \"signer/1\", wallets = [\"hot\"] }");
    assert!(text.contains(all), "the configuration has changed");
    let host = Host::start_with(HostOptions::configured(&text.replace(all, &some)));
    let signed = |wallet: &str| {
        let mut client = host.new_wallet(wallet);
        let address = client.mine(101);
        let coin = client.call("listunspent", json!([]))[0].clone();
        let inputs = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
        let raw = client.call("createrawtransaction", json!([inputs, {address.as_str().unwrap(): "1.0"}]));
        client.try_call("signrawtransactionwithwallet", json!([raw]))
    };
    assert_eq!(signed("hot").unwrap()["complete"], json!(true));
    let error = signed("cold").unwrap_err();
    let message = "The plugin may not use signer/1 for the wallet \"cold\"";
    assert_eq!((error.code, error.message.as_str()), (-32603, message));
    let grants = host.client().plugin("signing")["grants"].clone();
    assert!(grants.as_array().unwrap().contains(&json!("signer/1 (wallets: hot)")), "{grants}");
}

#[test]
fn signrawtransactionwithwallet_signs_for_its_own_coins_as_they_are() {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    let address = wallet.mine(101);
    let coin = wallet.call("listunspent", json!([]))[0].clone();
    let inputs = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
    let raw = wallet.call("createrawtransaction", json!([inputs, {address.as_str().unwrap(): 1}]));
    let told = |amount: u32| json!([raw, [{"txid": coin["txid"], "vout": coin["vout"], "scriptPubKey": coin["scriptPubKey"], "amount": amount}]]);
    let txid = coin["txid"].as_str().unwrap();
    let differs = "The amount or script that was given for input 0 differs from output 0 of the wallet's transaction";
    let refused = format!("{differs} {txid}");
    assert_eq!(wallet.refused("signrawtransactionwithwallet", told(2)), (-4, refused));
    assert_eq!(wallet.call("signrawtransactionwithwallet", told(50))["complete"], true);

    // Without an amount, as in bitcoind: legacy signatures do not need it, and no signature of a witness verifies.
    let mut without_amount = |kind: &str| {
        let address = wallet.call("getnewaddress", json!(["", kind]));
        wallet.call("sendtoaddress", json!([address, 1]));
        let coin = wallet.call("listunspent", json!([0, 0, [address]]))[0].clone();
        let inputs = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
        let raw = wallet.call("createrawtransaction", json!([inputs, {address.as_str().unwrap(): 0.5}]));
        let prevtxs = json!([{"txid": coin["txid"], "vout": coin["vout"], "scriptPubKey": coin["scriptPubKey"]}]);
        wallet.try_call("signrawtransactionwithwallet", json!([raw, prevtxs]))
    };
    assert_eq!(without_amount("legacy").unwrap()["complete"], true);
    let error = without_amount("bech32").unwrap_err();
    assert!(error.code == -3 && error.message.starts_with("Missing amount for CTxOut("), "{}", error.message);
}

/// Removes the members that only the recording node has.
fn without_extras(reply: &Value) -> Value {
    let mut reply = reply.clone();
    if let Some(object) = reply.as_object_mut() {
        object.shift_remove("fee");
        object.shift_remove("feerate");
    }
    reply
}

/// A wallet with only these descriptors.
fn wallet_with(client: &mut Client, name: &str, descriptors: &Value) -> Client {
    let mut wallet = client.create_wallet(name, json!({"blank": true}));
    let requests: Vec<Value> = descriptors
        .as_array()
        .unwrap()
        .iter()
        .map(|descriptor| match descriptor {
            Value::String(text) => json!({"desc": text, "timestamp": "now"}),
            request => request.clone(),
        })
        .collect();
    wallet.import(&json!(requests));
    wallet
}

fn differences(client: &mut Client, rows: &[Value], release: u32) -> Vec<String> {
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
        if !is_same_text(&got, &wanted) && !excused(release, name) {
            differ.push(format!("{name}:\n  got    {got}\n  wanted {wanted}"));
        }
    }
    differ
}

/// Whether this host deliberately differs from the release in this row.
fn excused(release: u32, name: &str) -> bool {
    // A private key also signs for its BIP 86 output.
    name.contains("BIP 86 tweak")
        // A compressed key also makes its P2WPKH script known, so the nested form signs without a redeem script.
        || name == "chain sh-wpkh: keys, nothing else"
        // Core 32 signs this taproot input again, and has another message for OP_IF on an empty stack.
        || release > 29
            && (name.contains("tr") && name.ends_with(": signed again with another sighash")
                || name == "text: MINIMALIF, as far as it is kept")
}

#[test]
fn signrawtransactionwithkey_and_withwallet_answer_recorded_rows_alike() {
    for release in RECORDED {
        let host = Host::start_with(HostOptions::of_release(release));
        let mut client = host.client();
        chain::load(&mut client, release);
        let rows = |name: &str| recorded(release, name)["rows"].as_array().unwrap().clone();
        let accepted = rows("signing-chain.json");
        assert!(accepted.iter().all(|row| row["accepted"] == json!(true)));
        let rows = [rows("signing.json"), rows("signing-texts.json"), accepted].concat();
        let differ = differences(&mut client, &rows, release);
        assert!(differ.is_empty(), "{release}: {} of {} rows differ:\n{}", differ.len(), rows.len(), differ.join("\n"));
    }
}
