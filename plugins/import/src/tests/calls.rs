use outrigger_sdk::{RpcError, RpcErrorCode};

use super::*;

fn address(address: &str, timestamp: Value) -> Value {
    json!({"scriptPubKey": {"address": address}, "timestamp": timestamp})
}

const ADDRESS: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";

#[test]
fn import_rpcs_and_abortrescan_need_a_wallet() {
    let harness = Harness::new();
    harness.host.wallet.set(None);
    for method in ["importmulti", "importdescriptors", "abortrescan"] {
        let error = harness.plugin.call(method, json!([[]])).unwrap_err();
        assert_eq!(error.code, RpcErrorCode::WALLET_NOT_FOUND);
    }
}

#[test]
fn import_rpcs_check_types_of_arguments_strictly() {
    let harness = Harness::new();
    harness.refused("importmulti", json!([{}]), -3, "Expected type array, got object");
    harness.refused("importmulti", json!([[], null]), -3, "Expected type object, got null");
    harness.refused("importmulti", json!([[], {"rescan": 1}]), -1, "JSON value is not a boolean as expected");
    harness.refused("importmulti", json!([[], {"rescan": null}]), -1, "JSON value is not a boolean as expected");
}

#[test]
fn import_rpcs_refuse_while_a_rescan_runs() {
    let harness = Harness::new();
    harness.wallet(|wallet| wallet.rescan = Some((99, Some(0))));
    let message = "Wallet is currently rescanning. Abort existing rescan or wait.";
    for (method, arguments) in [("importmulti", json!([[]])), ("importdescriptors", json!([[]]))] {
        assert_eq!(harness.plugin.call(method, arguments), Err(RpcError::new(RpcErrorCode(-4), message)));
    }
    assert_eq!(harness.wallet(|wallet| wallet.rescan), Some((99, Some(0))), "it is not ours to release");
    assert_eq!(harness.plugin.call("importmulti", json!([[], {"rescan": false}])), Ok(json!([])));
}

#[test]
fn import_rpcs_refuse_a_locked_wallet() {
    let harness = Harness::new();
    harness.wallet(|wallet| wallet.info.locked = true);
    let message = "Error: Please enter the wallet passphrase with walletpassphrase first.";
    harness.refused("importmulti", json!([[{}]]), -13, message);
    harness.refused("importdescriptors", json!([[{}]]), -13, message);
}

#[test]
fn importmulti_bad_timestamp_fails_before_anything_is_stored() {
    let harness = Harness::new();
    let requests = json!([[address(ADDRESS, json!(1)), {"scriptPubKey": "00"}]]);
    harness.refused("importmulti", requests, -3, "Missing required timestamp field for key");
    let requests = json!([[address(ADDRESS, json!("later"))]]);
    let message = "Expected number or \"now\" timestamp value for key. got type string";
    harness.refused("importmulti", requests, -3, message);
    harness.refused("importmulti", json!([[address(ADDRESS, json!(1.5))]]), -1, "JSON integer out of range");
    let message = "Expected number or \"now\" timestamp value for key. got type null";
    harness.refused("importmulti", json!([[address(ADDRESS, json!(null))]]), -3, message);
    assert_eq!(harness.stored_count(), 0);
}

#[test]
fn import_rpcs_answer_an_empty_list_with_an_empty_list() {
    let harness = Harness::new();
    assert_eq!(harness.plugin.call("importmulti", json!([[]])), Ok(json!([])));
    assert_eq!(harness.plugin.call("importdescriptors", json!([[]])), Ok(json!([])));
    assert_eq!(harness.wallet(|wallet| wallet.rescan), None);
}

#[test]
fn importmulti_failing_storage_fails_the_call_and_releases_the_rescan() {
    let harness = Harness::new();
    harness.answers([ImportOutcome::NotStored]);
    let answer = harness.plugin.call("importmulti", json!([[address(ADDRESS, json!(1))]])).unwrap();
    assert_eq!(answer[0]["error"]["message"], "Error adding address to wallet");
    assert_eq!(harness.wallet(|wallet| wallet.rescan), None);
}

#[test]
fn abortrescan_returns_whether_a_rescan_was_running() {
    let harness = Harness::new();
    assert_eq!(harness.plugin.call("abortrescan", json!([])), Ok(json!(false)));
    harness.wallet(|wallet| wallet.rescan = Some((1, Some(0))));
    assert_eq!(harness.plugin.call("abortrescan", json!([])), Ok(json!(true)));
}
