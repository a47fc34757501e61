//! The wallet group: wallets, their addresses, payments, passphrases and backups.

mod addresses;
mod at_once;
mod backups;
mod bumped;
mod chain_limits;
mod compared;
mod encryption;
mod funding;
mod hd_keys;
mod kept;
mod paths;
mod payments;
mod recorded;
mod sizes;
mod wallets;

use outrigger_tests::{Client, NOBODY};
use serde_json::{Value, json};

use crate::in_front::twins::Wallets;

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Imports active descriptors: the text without its checksum, and whether it is for change.
fn activate(client: &mut Client, descriptors: &[(&str, bool)]) {
    for (text, internal) in descriptors {
        let desc = client.with_checksum(text);
        let request =
            json!([{"desc": desc, "timestamp": "now", "active": true, "internal": internal, "range": [0, 9]}]);
        let imported = client.call("importdescriptors", json!([request]));
        assert_eq!(imported, json!([{"success": true}]), "{text}");
    }
}

/// Gives a wallet 50 BTC that can be spent, at an address of a type.
fn fund(client: &mut Client, kind: &str) {
    let address = client.call("getnewaddress", json!(["", kind]));
    client.call("generatetoaddress", json!([1, address]));
    client.call("generatetoaddress", json!([100, NOBODY]));
}

/// Checks that both wallets make a transaction with the same fee, or refuse it with the same text.
#[track_caller]
fn check_fee(wallets: &mut Wallets, method: &str, params: &Value, what: &str) -> Result<Value, (i64, String)> {
    // The inputs' order is random, so only the fee is compared.
    let [ours, theirs] = wallets.ask(method, params).map(|told| told.map(|answer| answer["fee"].clone()));
    assert_eq!(ours, theirs, "{method} {params} {what}");
    ours
}
