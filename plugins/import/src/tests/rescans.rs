//! The rescan after an import, and the reply that waits for it.

use outrigger_sdk::service::events::{Event, RescanOutcome};
use outrigger_sdk::{RpcError, RpcErrorCode};

use super::*;

fn pkh(timestamp: Value) -> Value {
    json!({"scriptPubKey": K_PKH, "timestamp": timestamp})
}

fn broken(timestamp: Value) -> Value {
    json!({"scriptPubKey": "xyz", "timestamp": timestamp})
}

fn running(harness: &Harness) -> Option<(u64, Option<u64>)> {
    harness.wallet(|wallet| wallet.rescan)
}

#[test]
fn import_rescan_end_answers_only_its_own_call() {
    let harness = Harness::new();
    let call = harness.plugin.begin("importmulti", json!([[pkh(json!(7))]]));
    let (number, from_time) = running(&harness).unwrap();
    assert_eq!(from_time, Some(7));
    assert_eq!(call.answer(), None);
    let end = |wallet: &str, rescan| {
        harness.plugin.tell(Event::RescanFinished {
            wallet: wallet.to_owned(),
            rescan,
            outcome: RescanOutcome::Complete,
            last_height: None,
            widened: false,
        });
    };
    end("w", number + 1);
    end("other", number);
    assert_eq!(call.answer(), None);
    end("w", number);
    assert_eq!(call.json(), Some(Ok(r#"[{"success":true}]"#.to_owned())));
}

#[test]
fn import_rescan_begins_at_the_earliest_timestamp_even_of_a_failed_request() {
    for (requests, from_time) in [
        (json!([pkh(json!(500)), broken(json!(300))]), 300),
        (json!([pkh(json!(-9))]), 1),
        (json!([pkh(json!("now"))]), u64::from(MEDIAN_TIME)),
        (json!([pkh(json!(4_000_000_000_u64))]), u64::from(TIP_TIME)),
    ] {
        let harness = Harness::new();
        harness.plugin.begin("importmulti", json!([requests]));
        assert_eq!(running(&harness).unwrap().1, Some(from_time), "{requests}");
    }
}

#[test]
fn import_rescan_is_skipped_if_no_request_succeeded() {
    let harness = Harness::new();
    let answer = harness.plugin.call("importmulti", json!([[broken(json!(1))]])).unwrap();
    assert_eq!(answer[0]["success"], json!(false));
    assert_eq!(running(&harness), None);
}

#[test]
fn import_rescan_false_reserves_no_rescan() {
    let harness = Harness::new();
    let answer = harness.plugin.call("importmulti", json!([[pkh(json!(1))], {"rescan": false, "other": 1}]));
    assert_eq!(answer, Ok(json!([{"success": true}])));
    assert_eq!(running(&harness), None);
}

#[test]
fn import_rescan_that_is_aborted_fails_the_call() {
    let harness = Harness::new();
    let call = harness.plugin.begin("importmulti", json!([[pkh(json!(1))]]));
    harness.finish_rescan(RescanOutcome::Aborted);
    assert_eq!(call.answer(), Some(Err(RpcError::new(RpcErrorCode(-1), "Rescan aborted by user."))));
    assert_eq!(harness.stored_count(), 1, "the import stays");
}

#[test]
fn import_rescan_unreadable_block_fails_the_requests_that_it_may_affect() {
    let harness = Harness::new();
    harness.answers([
        ImportOutcome::Imported { missing_private_keys: false, unknown_output_type: false },
        ImportOutcome::AlreadyOwned { script: bitcoin::ScriptBuf::new() },
    ]);
    // The rescan certainly read the blocks from time 10_000 + 7200 + 1 on.
    let requests = json!([[pkh(json!(0)), pkh(json!(3)), pkh(json!(17_201)), broken(json!(2))]]);
    let call = harness.plugin.begin("importmulti", requests);
    harness.finish_rescan(RescanOutcome::Unreadable { block_time: 10_000 });
    let lines = harness.host.log.lines();
    assert!(lines.iter().any(|(_, line)| line.contains("'w'") && line.contains("10000")), "{lines:?}");
    let answer = call.answer().unwrap().unwrap();
    let text = "Rescan failed for key with creation timestamp 0. There was an error reading a block from time 10000, which is after or within 7200 seconds of key creation, and could contain transactions pertaining to the key. As a result, transactions and coins using this key may not appear in the wallet. This error could be caused by pruning or data corruption (see bitcoind log for details) and could be dealt with by downloading and rescanning the relevant blocks (see -reindex and -rescan options).";
    assert_eq!(answer[0], json!({"success": false, "error": {"code": -1, "message": text}}));
    assert_eq!(answer[1]["error"]["code"], json!(-4), "a request that failed keeps its error");
    assert_eq!(answer[2], json!({"success": true}), "its key is younger");
    assert_eq!(answer[3]["error"]["code"], json!(-5));
}

#[test]
fn import_rescan_unreadable_block_before_the_scanned_time_fails_no_request() {
    let harness = Harness::new();
    let call = harness.plugin.begin("importmulti", json!([[pkh(json!(20_000))]]));
    harness.finish_rescan(RescanOutcome::Unreadable { block_time: 10_000 });
    assert_eq!(call.answer(), Some(Ok(json!([{"success": true}]))));
}

#[test]
fn importdescriptors_rescan_failure_names_the_descriptor() {
    let harness = Harness::watch_only();
    let request = json!({"desc": with_checksum(&format!("wpkh({K})")), "timestamp": 4});
    let call = harness.plugin.begin("importdescriptors", json!([[request]]));
    assert_eq!(running(&harness).unwrap().1, Some(4));
    harness.finish_rescan(RescanOutcome::Unreadable { block_time: 9 });
    let answer = call.answer().unwrap().unwrap();
    let text = "Rescan failed for descriptor with timestamp 4. There was an error reading a block from time 9, which is after or within 7200 seconds of key creation, and could contain transactions pertaining to the desc. As a result, transactions and coins using this desc may not appear in the wallet. This error could be caused by pruning or data corruption (see bitcoind log for details) and could be dealt with by downloading and rescanning the relevant blocks (see -reindex option and rescanblockchain RPC).";
    assert_eq!(answer[0]["error"], json!({"code": -1, "message": text}));
}

#[test]
fn rescan_failures_during_background_validation_name_it_as_the_cause() {
    let harness = Harness::watch_only();
    harness.host.chain.validate_below(7);
    let request = json!({"desc": with_checksum(&format!("wpkh({K})")), "timestamp": 4});
    let call = harness.plugin.begin("importdescriptors", json!([[request]]));
    harness.finish_rescan(RescanOutcome::Unreadable { block_time: 9 });
    let answer = call.answer().unwrap().unwrap();
    let text = answer[0]["error"]["message"].as_str().unwrap();
    let end = "As a result, transactions and coins using this desc may not appear in the wallet. This error is likely caused by an in-progress assumeutxo background sync. Check logs or getchainstates RPC for assumeutxo background sync progress and try again later.";
    assert!(text.starts_with("Rescan failed for descriptor with timestamp 4.") && text.ends_with(end), "{text}");
    let call = harness.plugin.begin("rescanblockchain", json!([]));
    harness.finish_rescan(RescanOutcome::Unreadable { block_time: 9 });
    let text = "Failed to rescan unavailable blocks likely due to an in-progress assumeutxo background sync. Check logs or getchainstates RPC for assumeutxo background sync progress and try again later.";
    assert_eq!(call.answer(), Some(Err(RpcError::new(RpcErrorCode(-1), text))));
}

#[test]
fn import_rescan_is_answered_when_the_host_stops() {
    let harness = Harness::new();
    let call = harness.plugin.begin("importmulti", json!([[pkh(json!(1))]]));
    harness.plugin.tell(Event::ShuttingDown);
    let aborted = Err(RpcError::new(RpcErrorCode(-1), "Rescan aborted by user."));
    assert_eq!(call.answer(), Some(aborted.clone()));
    harness.wallet(|wallet| wallet.rescan = None);
    let late = harness.plugin.begin("importmulti", json!([[pkh(json!(1))]]));
    assert_eq!(late.answer(), Some(aborted), "nothing waits any more");
    assert_eq!(running(&harness), None, "and its rescan is given back");
    harness.plugin.stop();
}

#[test]
fn import_rescan_is_answered_by_quiesce() {
    let harness = Harness::new();
    let call = harness.plugin.begin("importmulti", json!([[pkh(json!(1))]]));
    harness.plugin.stop();
    assert_eq!(call.answer(), Some(Err(RpcError::new(RpcErrorCode(-1), "Rescan aborted by user."))));
}

#[test]
fn import_rescan_continues_when_its_client_disconnects() {
    let harness = Harness::new();
    let call = harness.plugin.begin("importmulti", json!([[pkh(json!(1))]]));
    harness.plugin.cancel(&call);
    assert!(running(&harness).is_some());
    harness.finish_rescan(RescanOutcome::Complete);
    assert!(!matches!(call.answer(), Some(Ok(_))));
}
