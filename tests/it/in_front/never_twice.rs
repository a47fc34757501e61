//! A payment with a lost answer is made once, despite cuts and kills: a client that retries after each error, and looks for
//! its payment if it got no answer, never pays twice.

use outrigger_tests::{Bitcoind, Client, Held, Host, NOBODY, Pending, Point, Relay, Reply, wait_until};
use serde_json::{Value, json};

use super::start_behind_relay_with;
use crate::isolation::has_sandbox;
use crate::metrics::ask;

/// The node calls of a payment once it is stored, and the point at which the relay holds each.
const POINTS: [(&str, Point); 4] = [
    ("testmempoolaccept", Point::Request),
    ("testmempoolaccept", Point::Reply),
    ("sendrawtransaction", Point::Request),
    ("sendrawtransaction", Point::Reply),
];

/// A host behind a relay, with a funded wallet that is loaded at the start.
struct Fixture {
    host: Host,
    relay: Relay,
    paid: usize,
}

impl Fixture {
    fn new(arguments: &[&'static str], coins: usize, set: &[&str]) -> Option<Self> {
        let (host, relay) = start_behind_relay_with(arguments, set)?;
        let mut client = host.client();
        client.create_wallet("w", json!({"load_on_startup": true})).fund(coins as u32);
        client.call("gettxoutsetinfo", json!([]));
        Some(Self { host, relay, paid: 0 })
    }

    fn node(&mut self) -> &mut Bitcoind {
        self.host.bitcoind()
    }

    /// Mines a block, which the node flushes to disk, so that a kill does not lose it.
    fn mine(&self) {
        let mut node = self.host.node_client();
        node.call("generatetoaddress", json!([1, NOBODY]));
        node.call("gettxoutsetinfo", json!([]));
    }

    fn begin(&self, (method, point): (&'static str, Point)) -> (Pending, Held) {
        let held = self.relay.hold(method, point);
        let pending = self.host.client().begin_call("sendtoaddress", json!([NOBODY, 1, "rent"]));
        (pending, held.recv().unwrap())
    }

    /// Kills the host, releases the held call, and restarts the host.
    fn kill_and_restart(mut self, held: Held) -> Self {
        self.host.kill();
        drop(held);
        self.host = self.host.start_again();
        let mut client = self.host.client();
        wait_until("the wallet is loaded", || client.call("listwallets", json!([])) == json!(["w"]));
        self
    }

    /// The payments of the wallet, the newest last.
    fn payments(&self) -> Vec<Value> {
        let listed = self.host.client().call("listtransactions", json!(["*", 100]));
        listed.as_array().unwrap().iter().filter(|entry| entry["category"] == "send").cloned().collect()
    }

    /// Checks that the node gets exactly one more payment and confirms it.
    fn check_paid_once(&mut self, expected: Option<&Value>) {
        self.paid += 1;
        let payments = self.payments();
        assert_eq!(payments.len(), self.paid, "{payments:?}");
        let newest = &payments[self.paid - 1];
        let txid = &newest["txid"];
        assert!(expected.is_none_or(|expected| expected == txid) && newest["comment"] == "rent", "{newest}");
        let mut node = self.node().client();
        wait_until("the node has it", || node.call("getrawmempool", json!([])) == json!([txid]));
        self.mine();
        let mut client = self.host.client();
        wait_until("it is confirmed", || client.call("gettransaction", json!([txid]))["confirmations"] == 1);
        assert_eq!(node.call("getrawmempool", json!([])), json!([]));
        assert_eq!(self.payments().len(), self.paid);
    }

    /// Checks that a block confirms one payment, and that the other with the same coin conflicts with it.
    fn check_conflicted(&self, confirmed: &Value, other: &Value) {
        self.mine();
        let mut client = self.host.client();
        wait_until("it is confirmed", || client.call("gettransaction", json!([confirmed]))["confirmations"] == 1);
        assert_eq!(client.call("gettransaction", json!([other]))["confirmations"], json!(-1));
    }
}

fn result(reply: Reply) -> Value {
    let answer: Value = serde_json::from_str(&reply.body).unwrap();
    assert!(answer["error"].is_null(), "{answer}");
    answer["result"].clone()
}

#[test]
fn sendtoaddress_pays_once_despite_cuts_reloads_and_kills() {
    let Some(mut test) = Fixture::new(&[], 3 * POINTS.len() + 2, &[]) else { return };
    // The client gets the txid even if the connection to the node is cut.
    for point in POINTS {
        let (pending, held) = test.begin(point);
        // The pending payment is stored as unconfirmed and holds its coin.
        let payments = test.payments();
        assert_eq!(payments.len(), test.paid + 1, "{point:?}");
        assert_eq!(payments[test.paid]["confirmations"], json!(0), "{point:?}");
        drop(held);
        let txid = result(pending.finish());
        test.check_paid_once(Some(&txid));
    }
    // The client gets the txid even if the plugin is reloaded.
    let (pending, held) = test.begin(("sendrawtransaction", Point::Request));
    test.host.client().call("reloadplugin", json!(["wallet"]));
    drop(held);
    let txid = result(pending.finish());
    test.check_paid_once(Some(&txid));
    // The host offers the payment to a killed node again once the node is back.
    for point in POINTS {
        let (pending, held) = test.begin(point);
        test.node().kill();
        held.pass();
        let txid = result(pending.finish());
        // While the node is known to be away, the host refuses payments and stores nothing.
        let refused = test.host.client().refused("sendtoaddress", json!([NOBODY, 1]));
        assert_eq!(refused.0, -28, "{refused:?}");
        assert_eq!(test.payments().len(), test.paid + 1);
        test.node().start_again();
        test.check_paid_once(Some(&txid));
    }
    // If the host is killed, the payment is stored once or not at all.
    for point in POINTS {
        let (_pending, held) = test.begin(point);
        test = test.kill_and_restart(held);
        test.check_paid_once(None);
    }
    // Before the payment is stored, the client finds none and pays again.
    let (_pending, held) = test.begin(("gettxspendingprevout", Point::Reply));
    test = test.kill_and_restart(held);
    assert_eq!(test.payments().len(), test.paid);
    let txid = test.host.client().call("sendtoaddress", json!([NOBODY, 1, "rent"]));
    test.check_paid_once(Some(&txid));
}

#[test]
fn sendtoaddress_pays_once_when_its_isolated_plugin_is_killed() {
    if !has_sandbox() {
        return;
    }
    let Some(mut test) = Fixture::new(&[], POINTS.len(), &["plugin_defaults.isolated='all'"]) else { return };
    for point in POINTS {
        let (pending, held) = test.begin(point);
        test.host.client().kill_plugin("wallet");
        let told = pending.answer();
        assert_eq!(told["error"]["message"], "The plugin 'wallet' crashed", "{point:?}: {told}");
        held.pass();
        // The host completes the payment; the plugin's next process does not repeat it.
        test.check_paid_once(None);
    }
}

#[test]
fn payment_not_accepted_by_the_node_is_kept_until_it_is_abandoned() {
    let Some(mut test) = Fixture::new(&["-dustrelayfee=0.01"], 1, &["metrics.listen=127.0.0.1:0"]) else { return };
    let mut client = test.host.client();
    let refused = client.call("sendtoaddress", json!([NOBODY, 0.0001]));
    check_unsent(&mut client, &refused);
    let metrics = test.host.metrics.unwrap();
    let page = ask(metrics, "GET /metrics");
    assert!(page.contains("outrigger_wallet_payments_unsent{wallet=\"w\"} 1.0\n"), "{page}");
    assert!(ask(metrics, "GET /readyz").starts_with("HTTP/1.1 200"));
    assert_eq!(test.node().client().call("getrawmempool", json!([])), json!([]));
    // The host does not spend the payment's coin again.
    assert_eq!(client.refused("sendtoaddress", json!([NOBODY, 1])).0, -6);
    let warnings = |client: &mut Client| client.call("getwalletinfo", json!([])).get("warnings").cloned();
    let words = "Payments that are not in the mempool, and are offered to the node again: 1:";
    let told = warnings(&mut client).unwrap();
    let expected = format!("{words} {} (dust", refused.as_str().unwrap());
    assert!(told[0].as_str().unwrap().starts_with(&expected), "{told}");
    client.call("abandontransaction", json!([refused]));
    assert_eq!(warnings(&mut client), None);
    let txid = client.call("sendtoaddress", json!([NOBODY, 1]));
    test.check_conflicted(&txid, &refused);
}

#[test]
fn payment_is_not_abandoned_while_the_node_may_have_it() {
    let Some(mut test) = Fixture::new(&[], 2, &[]) else { return };
    let not_eligible = (-5, "Transaction not eligible for abandonment".to_owned());
    // The answer of a killed node is lost.
    let (pending, held) = test.begin(("sendrawtransaction", Point::Request));
    test.node().kill();
    drop(held);
    let txid = result(pending.finish());
    let mut client = test.host.client();
    check_unsent(&mut client, &txid);
    assert_eq!(client.refused("abandontransaction", json!([txid])), (-28, "Waiting for bitcoind...".to_owned()));
    test.node().start_again();
    test.check_paid_once(Some(&txid));
    // The node has accepted the payment, and the host starts before it.
    let txid = client.call("sendtoaddress", json!([NOBODY, 1, "rent"]));
    assert_eq!(client.refused("abandontransaction", json!([txid])), not_eligible);
    test.node().stop();
    test.host.kill();
    test.host = test.host.start_again();
    let mut client = test.host.client();
    wait_until("the wallet is loaded", || client.call("listwallets", json!([])) == json!(["w"]));
    check_unsent(&mut client, &txid);
    assert_eq!(client.refused("abandontransaction", json!([txid])).0, -28);
    test.node().start_again();
    wait_until("calls are passed on", || client.try_call("getblockcount", json!([])).is_ok());
    assert_eq!(client.refused("abandontransaction", json!([txid])), not_eligible);
    test.check_paid_once(Some(&txid));
}

fn check_unsent(client: &mut Client, txid: &Value) {
    let shown = client.call("gettransaction", json!([txid]));
    assert_eq!((&shown["confirmations"], &shown["trusted"]), (&json!(0), &json!(false)), "{shown}");
}
