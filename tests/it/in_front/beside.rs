//! Payments of two wallets at the same time, on a node that takes its time.

use outrigger_tests::Point;
use serde_json::json;

use super::{ADDRESS, start_behind_relay};

#[test]
fn payments_of_two_wallets_do_not_wait_for_each_other() {
    let Some((host, relay)) = start_behind_relay(&[]) else { return };
    let mut node = host.client();
    let mut wallets = ["one", "two"].map(|name| host.new_wallet(name));
    for wallet in &mut wallets {
        let mine = wallet.call("getnewaddress", json!([]));
        node.call("generatetoaddress", json!([2, mine]));
    }
    node.call("generatetoaddress", json!([100, ADDRESS]));
    let [mut one, mut two] = wallets;
    let begin = || host.client().wallet("one").begin_call("sendtoaddress", json!([ADDRESS, 1]));
    let caught = relay.hold("sendrawtransaction", Point::Request);
    let first = begin();
    let held = caught.recv().unwrap();
    // While the node has not answered that one, it takes the other wallet's; another of the same wallet waits.
    let other = two.call("sendtoaddress", json!([ADDRESS, 1]));
    assert_eq!(node.call("getrawmempool", json!([])), json!([other]));
    let second = begin();
    held.pass();
    let spent = [first, second].map(|pending| {
        let payment = one.call("gettransaction", json!([pending.answer()["result"], true, true]));
        let inputs = payment["decoded"]["vin"].as_array().unwrap().iter();
        inputs.map(|input| (input["txid"].clone(), input["vout"].clone())).collect::<Vec<_>>()
    });
    assert!(spent[0].iter().all(|coin| !spent[1].contains(coin)), "{spent:?}");
    assert_eq!(node.call("getrawmempool", json!([])).as_array().unwrap().len(), 3);
}
