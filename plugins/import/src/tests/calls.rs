//! The checks of whole calls, and their order.

use outrigger_sdk::{RpcError, RpcErrorCode};

use super::*;

#[track_caller]
fn refused(bench: &Bench, method: &str, arguments: Value, code: i32, message: &str) {
    assert_eq!(bench.plugin.call(method, arguments), Err(RpcError::new(RpcErrorCode(code), message)));
    assert_eq!(bench.wallet(|wallet| wallet.rescan), None, "the reservation is given back");
}

fn address(address: &str, timestamp: Value) -> Value {
    json!({"scriptPubKey": {"address": address}, "timestamp": timestamp})
}

const ADDRESS: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";

#[test]
fn without_a_wallet_there_is_nothing_to_import_to() {
    let bench = Bench::new();
    bench.host.wallet.set(None);
    for method in ["importmulti", "importdescriptors", "abortrescan"] {
        let error = bench.plugin.call(method, json!([[]])).unwrap_err();
        assert_eq!(error.code, RpcErrorCode::WALLET_NOT_FOUND);
    }
}

#[test]
fn types_of_arguments_are_checked_strictly() {
    let bench = Bench::new();
    refused(&bench, "importmulti", json!([{}]), -3, "Expected type array, got object");
    refused(&bench, "importmulti", json!([[], null]), -3, "Expected type object, got null");
    refused(&bench, "importmulti", json!([[], {"rescan": 1}]), -1, "JSON value is not a boolean as expected");
    refused(&bench, "importmulti", json!([[], {"rescan": null}]), -1, "JSON value is not a boolean as expected");
    refused(&bench, "importdescriptors", json!(["x"]), -3, "Expected type array, got string");
}

#[test]
fn a_wallet_of_one_kind_refuses_the_other_import() {
    let bench = Bench::new();
    bench.wallet(|wallet| wallet.info.kind = WalletKind::Descriptors);
    refused(&bench, "importmulti", json!([[]]), -4, "Only legacy wallets are supported by this command");
    bench.wallet(|wallet| wallet.info.kind = WalletKind::Legacy);
    let message = "importdescriptors is not available for non-descriptor wallets";
    refused(&bench, "importdescriptors", json!([{}]), -4, message);
}

#[test]
fn a_running_rescan_stands_in_the_way_of_another() {
    let bench = Bench::new();
    bench.wallet(|wallet| wallet.rescan = Some((99, Some(0))));
    let message = "Wallet is currently rescanning. Abort existing rescan or wait.";
    for (method, arguments) in [("importmulti", json!([[]])), ("importdescriptors", json!([[]]))] {
        assert_eq!(bench.plugin.call(method, arguments), Err(RpcError::new(RpcErrorCode(-4), message)));
    }
    assert_eq!(bench.wallet(|wallet| wallet.rescan), Some((99, Some(0))), "it is not ours to release");
    assert_eq!(bench.plugin.call("importmulti", json!([[], {"rescan": false}])), Ok(json!([])));
}

#[test]
fn a_locked_wallet_takes_nothing() {
    let bench = Bench::new();
    bench.wallet(|wallet| wallet.info.locked = true);
    let message = "Error: Please enter the wallet passphrase with walletpassphrase first.";
    refused(&bench, "importmulti", json!([[{}]]), -13, message);
    refused(&bench, "importdescriptors", json!([[{}]]), -13, message);
}

#[test]
fn a_bad_time_fails_importmulti_before_anything_is_stored() {
    let bench = Bench::new();
    let requests = json!([[address(ADDRESS, json!(1)), {"scriptPubKey": "00"}]]);
    refused(&bench, "importmulti", requests, -3, "Missing required timestamp field for key");
    let requests = json!([[address(ADDRESS, json!("later"))]]);
    let message = "Expected number or \"now\" timestamp value for key. got type string";
    refused(&bench, "importmulti", requests, -3, message);
    refused(&bench, "importmulti", json!([[address(ADDRESS, json!(1.5))]]), -1, "JSON integer out of range");
    assert_eq!(bench.stored_count(), 0);
}

#[test]
fn a_bad_time_fails_importdescriptors_after_the_earlier_ones_were_stored() {
    let bench = Bench::watch_only();
    let good = json!({"desc": with_checksum(&format!("wpkh({K})")), "timestamp": 1});
    let requests = json!([[good, good, {"desc": "x"}, good]]);
    refused(&bench, "importdescriptors", requests, -3, "Missing required timestamp field for key");
    assert_eq!(bench.stored_count(), 2);
}

#[test]
fn nothing_to_import_is_answered_with_nothing() {
    let bench = Bench::new();
    assert_eq!(bench.plugin.call("importmulti", json!([[]])), Ok(json!([])));
    assert_eq!(bench.plugin.call("importdescriptors", json!([[]])), Ok(json!([])));
    assert_eq!(bench.wallet(|wallet| wallet.rescan), None);
}

#[test]
fn a_failing_storage_fails_the_call_and_gives_the_rescan_back() {
    let bench = Bench::new();
    bench.answers([ImportOutcome::NotStored]);
    let answer = bench.plugin.call("importmulti", json!([[address(ADDRESS, json!(1))]])).unwrap();
    assert_eq!(answer[0]["error"]["message"], "Error adding address to wallet");
    assert_eq!(bench.wallet(|wallet| wallet.rescan), None);
}

#[test]
fn aborting_tells_whether_there_was_a_rescan() {
    let bench = Bench::new();
    assert_eq!(bench.plugin.call("abortrescan", json!([])), Ok(json!(false)));
    bench.wallet(|wallet| wallet.rescan = Some((1, Some(0))));
    assert_eq!(bench.plugin.call("abortrescan", json!([])), Ok(json!(true)));
}
