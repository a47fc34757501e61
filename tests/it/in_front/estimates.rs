//! Payments without a feerate use the node's estimate in the requested mode.

use outrigger_tests::Client;
use outrigger_tests::bitcoind::{release, twin_named};
use serde_json::{Value, json};

use super::{ADDRESS, start};

const TARGET: u32 = 6;
const LOW: u32 = 2;
const HIGH: u32 = 100;
/// The blocks with only high feerates, the delay in blocks until a low one confirms, and the later blocks with all payments.
const DEAR: usize = 40;
const LATE: usize = 15;
const CHEAP: usize = 110;

/// Makes payments and blocks from which the node learns that low feerates were too low before but are enough now.
fn teach(node: &mut Client, payer: &mut Client) {
    payer.fund(60);
    let mut pay =
        |feerate| payer.call("sendtoaddress", json!([ADDRESS, 1, "", "", false, true, null, "unset", null, feerate]));
    let mut waiting: Vec<Value> = Vec::new();
    for number in 0..DEAR {
        waiting.push(pay(LOW));
        let mut confirmed = vec![pay(HIGH)];
        if number >= LATE {
            confirmed.push(waiting.remove(0));
        }
        node.call("generateblock", json!([ADDRESS, confirmed]));
    }
    for _ in 0..CHEAP {
        pay(LOW);
        node.call("generatetoaddress", json!([1, ADDRESS]));
    }
    node.call("syncwithvalidationinterfacequeue", json!([]));
}

#[test]
fn estimate_mode_works_as_in_bitcoind() {
    let Some(host) = start(&["-addresstype=bech32", "-fallbackfee=0.0001"]) else { return };
    let mut node = host.node_client();
    let mut payer = node.create_wallet("payer", json!({}));
    teach(&mut node, &mut payer);
    let [economical, conservative] = ["economical", "conservative"]
        .map(|mode| node.call("estimatesmartfee", json!([TARGET, mode]))["feerate"].as_f64().unwrap());
    // Since Bitcoin Core 32, the mempool's estimate caps the estimates of both modes.
    let is_capped = release(&mut node) >= 32;
    assert!(economical < conservative || is_capped, "{economical} and {conservative} of the node");

    let mut ours = host.new_wallet("w");
    let mut theirs = twin_named(&mut node, &mut ours, "w");
    let [address, same] = [&mut ours, &mut theirs].map(|wallet| wallet.call("getnewaddress", json!([])));
    assert_eq!(address, same);
    payer.call("sendtoaddress", json!([address, 10]));
    host.client().call("generatetoaddress", json!([1, ADDRESS]));
    let mut fees = |options: &Value| {
        let params = json!([[], {ADDRESS: 1}, 0, options]);
        let [ours, theirs] = [&mut ours, &mut theirs]
            .map(|wallet| wallet.call("walletcreatefundedpsbt", params.clone())["fee"].as_f64().unwrap());
        assert!((ours - theirs).abs() < 1e-8, "{ours}, the node's {theirs}: {options}");
        ours
    };
    let mode = |mode: &str| json!({"conf_target": TARGET, "estimate_mode": mode, "change_type": "bech32"});
    let (low, high) = (fees(&mode("Economical")), fees(&mode("CONSERVATIVE")));
    assert!(low < high || is_capped, "{low} and {high}");
    // Without a mode, a replaceable payment uses the lower estimate, since its fee can be bumped.
    for (replaceable, fee) in [(true, low), (false, high)] {
        let unset = json!({"conf_target": TARGET, "replaceable": replaceable, "change_type": "bech32"});
        assert!((fees(&unset) - fee).abs() < 1e-8, "{replaceable}");
    }

    // The other payment methods use the mode as well.
    let mut fee_of = |method: &str, params: Value| {
        let answer = ours.call(method, params);
        let txid = answer.get("txid").unwrap_or(&answer).clone();
        ours.call("gettransaction", json!([txid]))["fee"].as_f64().unwrap().abs()
    };
    let paid = |replaceable: Option<bool>, mode: Value| json!([ADDRESS, 1, "", "", false, replaceable, TARGET, mode]);
    let [by_default, dear, fixed] = [
        fee_of("sendtoaddress", paid(None, Value::Null)),
        fee_of("sendtoaddress", paid(None, json!("conservative"))),
        fee_of("sendmany", json!(["", {ADDRESS: 1}, 1, "", [], false, TARGET])),
    ];
    assert!(is_capped || by_default < dear && by_default < fixed, "{by_default} {dear} {fixed}");
    let [low, high] = ["economical", "conservative"].map(|mode| fee_of("send", json!([{ADDRESS: 1}, TARGET, mode])));
    assert!(low < high || is_capped, "{low} and {high}");
    let cheap = ours.call("sendtoaddress", json!([ADDRESS, 1, "", "", false, true, null, "unset", null, 1]));
    let bumped = ours.call("bumpfee", json!([cheap, {"conf_target": TARGET, "estimate_mode": "conservative"}]));
    assert!(is_capped || bumped["fee"].as_f64().unwrap() > 2.0 * low, "{bumped}, {low}");
}
