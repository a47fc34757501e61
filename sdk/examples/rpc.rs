//! Wrapping a method: the node's feerate estimate, but at least a floor.
#![allow(clippy::unwrap_used, reason = "a broken expectation fails the example")]

use outrigger_sdk::bitcoin::Amount;
use outrigger_sdk::serde_json::{Value, json};
use outrigger_sdk::service::rpc::As;
use outrigger_sdk::service::{ErrorKind, Scope};
use outrigger_sdk::testing::StubHost;
use outrigger_sdk::{Host, RpcError, amount};

/// The answer of estimatesmartfee: the node's, with a feerate of at least `floor` for 1000 virtual bytes. The configuration must
/// grant `{ service = "rpc/1", methods = ["estimatesmartfee"] }`.
fn estimate(host: &Host, scope: Scope, params: &Value, floor: Amount) -> Result<Value, RpcError> {
    let mut answer = host.call(scope, "estimatesmartfee", params, As::Caller)?;
    let estimated = answer.get("feerate").map(amount::from_json).transpose()?;
    if estimated.is_none_or(|feerate| feerate < floor) {
        answer["feerate"] = amount::to_json(floor);
    }
    Ok(answer)
}

fn main() {
    let test = StubHost::new();
    let ask = || estimate(&test.handle(), Scope::NONE, &json!([6]), Amount::from_sat(1000));
    test.rpc.answer("estimatesmartfee", Ok(json!({"feerate": 0.00005, "blocks": 6})));
    assert_eq!(ask().unwrap()["feerate"], json!(0.00005));
    assert_eq!(test.rpc.asked(), [("estimatesmartfee".to_owned(), "[6]".to_owned())]);

    test.rpc.answer("estimatesmartfee", Ok(json!({"errors": ["Insufficient data or no feerate found"], "blocks": 6})));
    assert_eq!(ask().unwrap()["feerate"].to_string(), "0.00001000");

    // While the node is unavailable, clients get the code -28 and the reason.
    test.rpc.fail("estimatesmartfee", ErrorKind::NodeUnavailable, "Waiting for bitcoind at http://127.0.0.1:8332...");
    assert_eq!(ask().unwrap_err().code.0, -28);
}
