//! Wallets of host and node answer importdescriptors alike with each field absent, null, of each type and at its bounds.

use outrigger_tests::XPRV;
use serde_json::{Value, json};

use super::{answer, start};

const FIELDS: [&str; 7] = ["desc", "active", "range", "next_index", "timestamp", "internal", "label"];

/// The values that each field takes in turn.
fn values() -> Vec<Value> {
    let numbers = json!([5, -1, 1.5, 0, 2_147_483_647, 2_147_483_648_u64, 9_223_372_036_854_775_808_u64]);
    let texts = json!(["x", "", "*", "now"]);
    let lists = json!([[], [0, 5], [5, 1], [0], [0, 5, 6], [-1, 5], ["a", 5], [0, 2_147_483_648_u64]]);
    let others = json!([null, true, false, {}, {"a": 1}]);
    [numbers, texts, lists, others].iter().flat_map(|list| list.as_array().unwrap().clone()).collect()
}

#[test]
fn importdescriptors_answers_each_field_of_each_type_as_the_node() {
    let Some(host) = start(&["-keypool=20"]) else { return };
    let mut node = host.node_client();
    let mut number = 0;
    for (name, watches) in [("private", false), ("watched", true)] {
        for client in [&mut host.client(), &mut node] {
            client.call("createwallet", json!([name, watches, true]));
        }
        let mut wallets = [host.client().wallet(name), node.wallet(name)];
        for (form, field) in ["/*", ""].into_iter().flat_map(|form| FIELDS.map(|field| (form, field))) {
            for value in values().into_iter().map(Some).chain([None]) {
                // Use a fresh descriptor, which conflicts with no earlier one.
                number += 1;
                let private = format!("wpkh({XPRV}/{number}{form})");
                let told = node.call("getdescriptorinfo", json!([private]));
                let text = match watches {
                    true => told["descriptor"].clone(),
                    false => json!(format!("{private}#{}", told["checksum"].as_str().unwrap())),
                };
                let mut request = json!({"desc": text, "timestamp": "now"});
                match &value {
                    Some(value) => request[field] = value.clone(),
                    None => drop(request.as_object_mut().unwrap().remove(field)),
                }
                let [ours, theirs] =
                    wallets.each_mut().map(|wallet| answer(wallet, "importdescriptors", &json!([[request]])));
                assert_eq!(ours, theirs, "{request}");
            }
        }
    }
}
