//! The refusals of the methods, on a host in memory. `host/testing/tests/histories` compares the answers with a naive model
//! byte for byte, and `tests/it` compares them with the answers of a bitcoind.

use outrigger_sdk::testing::{StubHost, TestPlugin, WalletState};
use serde_json::{Value, json};

use crate::HistoryPlugin;

const ADDRESS: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";

#[test]
fn history_rpcs_refuse_bad_arguments_in_order() {
    let host = StubHost::new();
    host.wallet.set(Some(WalletState::empty("w")));
    let plugin: TestPlugin<HistoryPlugin> = host.start(json!({}));
    let check = |method: &str, arguments: Value, code: i32, message: &str| {
        let error = plugin.call(method, arguments.clone()).unwrap_err();
        assert_eq!((error.code.0, error.message.as_str()), (code, message), "{method} {arguments}");
    };
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
    ] {
        check(method, arguments, code, message);
    }
    host.wallet.set(None);
    assert_eq!(plugin.call("gettransaction", json!([unknown])).unwrap_err().code.0, -18);
}
