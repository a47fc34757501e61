//! The errors of the methods, on an in-memory host. `host/testing/tests/histories` compares the answers with a naive model
//! byte for byte, and `tests/it` compares them with the answers of a bitcoind.

use bitcoin::hashes::Hash;
use bitcoin::{SignedAmount, Txid};
use outrigger_sdk::RpcError;
use outrigger_sdk::service::events::Event;
use outrigger_sdk::service::wallet::{LogCategory, LogEntry, LogKind, LogPayment};
use outrigger_sdk::testing::{PendingCall, StubHost, TestPlugin, WalletState};
use serde_json::{Value, json};

use crate::HistoryPlugin;

const ADDRESS: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";

#[test]
fn history_rpcs_refuse_bad_arguments_in_order() {
    let host = StubHost::new();
    host.wallet.set(Some(WalletState::empty("w")));
    let plugin: TestPlugin<HistoryPlugin> = host.start(json!({}));
    let (unknown, long) = ("ab".repeat(32), "x".repeat(16_385));
    for (method, arguments, code, message) in [
        ("gettransaction", json!([unknown]), -5, "Invalid or non-wallet transaction id"),
        ("gettransaction", json!(["ab"]), -8, "txid must be of length 64 (not 2, for 'ab')"),
        ("listsinceblock", json!([unknown]), -5, "Block not found"),
        ("listsinceblock", json!(["", 0]), -8, "Invalid parameter"),
        ("listsinceblock", json!(["", 1.5]), -1, "JSON integer out of range"),
        ("listsinceblock", json!(["", 1, null, true, true, "*"]), -11, "Invalid label name"),
        ("listtransactions", json!([""]), -8, "Label argument must be a valid label name or \"*\"."),
        ("listtransactions", json!(["*", -1]), -8, "Negative count"),
        ("listtransactions", json!(["*", 1, -1]), -8, "Negative from"),
        ("abandontransaction", json!([unknown]), -5, "Invalid or non-wallet transaction id"),
        ("setcomment", json!([unknown, "rent"]), -5, "Invalid or non-wallet transaction id"),
        ("setcomment", json!([unknown, long]), -8, "A comment has at most 16384 bytes, this one has 16385"),
        ("getreceivedbylabel", json!(["*"]), -11, "Invalid label name"),
        ("getreceivedbylabel", json!(["none"]), -4, "Label not found in wallet"),
        ("getreceivedbyaddress", json!([ADDRESS]), -4, "Address not found in wallet"),
        ("getreceivedbyaddress", json!(["x"]), -5, "Invalid Bitcoin address"),
        ("listreceivedbyaddress", json!([1, true, true, "x"]), -4, "address_filter parameter was invalid"),
        ("waitevents", json!([0, -1]), -1, "Negative timeout"),
        ("waitevents", json!([-1]), -1, "JSON integer out of range"),
        ("waitevents", json!(["0"]), -3, "JSON value of type string is not of expected type number"),
        ("waitevents", json!([{"other": 0}]), -18, "Requested wallet does not exist or is not loaded"),
        ("waitevents", json!([0, 0, ["w", "other"]]), -18, "Requested wallet does not exist or is not loaded"),
        ("waitevents", json!([0, 0, []]), -8, "A call names between 1 and 1000 wallets"),
    ] {
        plugin.refuses(method, &[(arguments, code, message)]);
    }
    host.wallet.set(None);
    assert_eq!(plugin.call("gettransaction", json!([unknown])).unwrap_err().code.0, -18);
}

fn entry(number: u64) -> LogEntry {
    let payment = LogPayment {
        vout: 1,
        script: bitcoin::ScriptBuf::new(),
        address: Some(ADDRESS.into()),
        label: Some("rent".into()),
        category: LogCategory::Send,
        amount: SignedAmount::from_sat(-7),
    };
    LogEntry {
        number,
        kind: LogKind::Seen,
        txid: Txid::from_byte_array([1; 32]),
        block: None,
        height: None,
        time: 5,
        fee: Some(SignedAmount::from_sat(-2)),
        payments: vec![payment],
    }
}

/// Waits for an answer at a timeout. The plugin's thread checks for timeouts once a second.
fn wait_for(call: &PendingCall) -> Result<Value, RpcError> {
    loop {
        if let Some(answer) = call.answer() {
            return answer;
        }
        std::thread::yield_now();
    }
}

#[test]
fn waitevents_answers_with_the_entries_after_a_number_and_waits_for_the_first() {
    let host = StubHost::new();
    host.wallet.set(Some(WalletState::empty("w")));
    let plugin: TestPlugin<HistoryPlugin> = host.start(json!({}));
    let nothing = |next: Value| json!({"events": [], "next": next, "missed": []});
    assert_eq!(plugin.call("waitevents", json!([])), Ok(nothing(json!(0))));
    // A number beyond the end does not wait.
    assert_eq!(plugin.call("waitevents", json!([8])), Ok(nothing(json!(0))));
    let [waiting, canceled] = [(); 2].map(|()| plugin.begin("waitevents", json!([0])));
    plugin.cancel(&canceled);
    host.wallet.with(|state| state.log.push(entry(7))).unwrap();
    plugin.tell(Event::WalletLogged { wallet: "w".into(), last: 7 });
    let answer = waiting.answer().unwrap().unwrap();
    let payment = r#"{"category":"send","amount":-0.00000007,"vout":1,"address":"ADDRESS","label":"rent"}"#;
    let event: Value = serde_json::from_str(&format!(
        r#"{{"number":7,"wallet":"w","kind":"seen","txid":"{}","time":5,"fee":-0.00000002,"payments":[{}]}}"#,
        "01".repeat(32),
        payment.replace("ADDRESS", ADDRESS)
    ))
    .unwrap();
    assert_eq!(answer, json!({"events": [event], "next": 7, "missed": []}));
    let [later, timed] = [json!([7]), json!([7, 1])].map(|params| plugin.begin("waitevents", params));
    assert_eq!(wait_for(&timed), Ok(nothing(json!(7))));
    assert_eq!((later.answer(), canceled.answer()), (None, None));
    // If `since` is an object by wallet name, so is `next`.
    let answer = plugin.call("waitevents", json!([{"w": 6}])).unwrap();
    assert_eq!((&answer["next"], &answer["events"][0]["number"]), (&json!({"w": 7}), &json!(7)));
    assert_eq!(plugin.call("waitevents", json!([null, 0, ["w"]])), Ok(nothing(json!({"w": 7}))));
    plugin.tell(Event::ShuttingDown);
    plugin.stop();
}

#[test]
fn waitevents_fails_when_its_wallet_is_unloaded_and_is_answered_at_a_shutdown() {
    let host = StubHost::new();
    host.wallet.set(Some(WalletState::empty("w")));
    let plugin: TestPlugin<HistoryPlugin> = host.start(json!({}));
    let waiting = plugin.begin("waitevents", json!([0]));
    host.wallet.set(None);
    assert_eq!(wait_for(&waiting).unwrap_err().code.0, -18);
    host.wallet.set(Some(WalletState::empty("w")));
    let waiting = plugin.begin("waitevents", json!([0]));
    plugin.tell(Event::ShuttingDown);
    assert_eq!(waiting.answer(), Some(Ok(json!({"events": [], "next": 0, "missed": []}))));
    plugin.stop();
}
