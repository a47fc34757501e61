//! Signatures that a real bitcoind made, byte for byte.

use outrigger_tests::{Client, Host, data_json};
use serde_json::{Value, json};

use crate::recorded_chain;

/// Leaves out what only the recording node says.
fn without_extras(reply: &Value) -> Value {
    let mut reply = reply.clone();
    if let Some(object) = reply.as_object_mut() {
        object.remove("fee");
        object.remove("feerate");
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
    // The wording of argument checks is that of 0.21 for the signing RPCs.
    let argument_checks = ["bad sighash", "hexstring null", "prevtxs text"];
    name.starts_with("error:")
        || (name.starts_with("wallet ") && argument_checks.iter().any(|check| name.ends_with(check)))
        // A given key also signs for the output that BIP 86 tweaks it into.
        || name.contains("BIP 86 tweak")
        // A compressed key makes its P2WPKH script known, so that the nested form signs without a redeem script.
        || name == "chain sh-wpkh: keys, nothing else"
}

#[test]
fn signatures_are_those_of_bitcoind() {
    let host = Host::start();
    let mut client = host.client();
    recorded_chain::load(&mut client);
    let recorded = data_json("signing.json");
    let rows = recorded["rows"].as_array().unwrap();
    let differ = differences(&mut client, rows, excused);
    assert!(differ.is_empty(), "{} of {} rows differ:\n{}", differ.len(), rows.len(), differ.join("\n"));
}

#[test]
fn what_we_sign_bitcoind_accepted() {
    let host = Host::start();
    let mut client = host.client();
    recorded_chain::load(&mut client);
    let recorded = data_json("signing-chain.json");
    let rows = recorded["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["accepted"] == json!(true)));
    let differ = differences(&mut client, rows, |_| false);
    assert!(differ.is_empty(), "{} of {} rows differ:\n{}", differ.len(), rows.len(), differ.join("\n"));
}
