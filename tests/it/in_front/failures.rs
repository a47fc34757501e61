//! The node is away, returns, or is replaced by another one.

use std::time::Duration;

use outrigger_tests::{Bitcoind, Client, Point, comes_within, wait_for, wait_until};
use serde_json::{Value, json};

use super::{ADDRESS, start_behind_relay, start_set};
use crate::metrics::ask;

pub fn until_answered(client: &mut Client, method: &str) -> Value {
    wait_for(method, || match client.try_call(method, json!([])) {
        Ok(answer) => Some(answer),
        Err(error) => {
            assert_eq!(error.code, -28, "{method}: {error:?}");
            None
        }
    })
}

#[test]
fn calls_fail_with_28_while_the_node_is_away_and_the_host_finds_its_new_cookie() {
    let Some(mut host) = start_set(&[], &["metrics.listen=127.0.0.1:0"]) else { return };
    let metrics = host.metrics.unwrap();
    assert!(ask(metrics, "GET /readyz").starts_with("HTTP/1.1 200"));
    let page = ask(metrics, "GET /metrics");
    assert!(page.contains("outrigger_node_reached 1.0") && page.contains("what=\"passed\""), "{page}");
    let mut wallet = host.new_wallet("w");
    let mut client = host.client();
    let mine = wallet.mine(2);
    let url = format!("http://{}", host.node.as_ref().unwrap().address);
    for kill in [false, true] {
        if kill {
            host.bitcoind().kill()
        } else {
            host.bitcoind().stop()
        }
        let refused = client.refused("getblockcount", json!([]));
        assert_eq!(refused, (-28, format!("Waiting for bitcoind at {url}...")));
        assert_eq!(client.refused("sendrawtransaction", json!(["00"])), refused);
        let batch =
            client.post(&json!([{"id": 1, "method": "getblockcount"}, {"id": 2, "method": "uptime"}]).to_string());
        assert!(batch.body.contains("\"code\":-28") && batch.body.contains("\"id\":2"), "{}", batch.body);
        wait_until("the node is missed", || ask(metrics, "GET /readyz").starts_with("HTTP/1.1 503"));
        assert!(ask(metrics, "GET /metrics").contains("outrigger_node_reached 0.0"));
        assert!(ask(metrics, "GET /healthz").starts_with("HTTP/1.1 200"));
        // The host answers calls that need no node.
        wallet.call("getnewaddress", json!([]));
        wallet.call("setlabel", json!([mine, "label"]));
        assert_eq!(client.call("listwallets", json!([])), json!(["w"]));
        host.bitcoind().start_again();
        wait_until("the node is reached", || ask(metrics, "GET /readyz").starts_with("HTTP/1.1 200"));
        until_answered(&mut client, "getblockcount");
        host.node_client().call("generatetoaddress", json!([1, mine]));
        until_answered(&mut client, "getblockcount");
        assert_eq!(client.call("getbestblockhash", json!([])), wallet.call("listsinceblock", json!([]))["lastblock"]);
    }
    // A killed node may have lost its last block and replaced it by one with the same coinbase.
    let blocks = client.call("getblockcount", json!([]));
    assert_eq!(wallet.call("getwalletinfo", json!([]))["txcount"], blocks);
    // The host starts while the node is away, and follows the node later.
    let node = host.node.as_mut().unwrap();
    node.client().call("generatetoaddress", json!([1, ADDRESS]));
    let blocks = node.client().call("getblockcount", json!([]));
    node.stop();
    let mut host = host.restart();
    let mut client = host.client();
    assert_eq!(client.refused("getblockcount", json!([])).0, -28);
    client.call("loadwallet", json!(["w"]));
    let mut wallet = client.wallet("w");
    assert_eq!(wallet.call("getaddressinfo", json!([mine]))["ismine"], json!(true));
    host.bitcoind().start_again();
    assert_eq!(until_answered(&mut client, "getblockcount"), blocks);
    assert_eq!(wallet.call("getwalletinfo", json!([]))["lastprocessedblock"]["height"], blocks);
}

#[test]
fn wallets_answer_until_the_patience_with_the_node_ends() {
    let Some(mut host) = start_set(&[], &["backend.patience_seconds=1"]) else { return };
    let mut wallet = host.new_wallet("w");
    wallet.call("listsinceblock", json!([]));
    host.bitcoind().stop();
    wait_until("the patience ends", || {
        wallet.try_call("listsinceblock", json!([])).is_err_and(|error| {
            assert_eq!((error.code, error.message.starts_with("Waiting for bitcoind at ")), (-28, true), "{error:?}");
            true
        })
    });
    host.bitcoind().start_again();
    until_answered(&mut wallet, "listsinceblock");
}

#[test]
fn payment_undone_by_a_reorganisation_is_not_pending_once_the_node_has_lost_it() {
    let Some((mut host, relay)) = start_behind_relay(&["-fallbackfee=0.0001"]) else { return };
    let mut wallet = host.new_wallet("w");
    let mine = wallet.call("getnewaddress", json!([]));
    let mut node = host.node_client();
    node.call("createwallet", json!(["theirs"]));
    let theirs = node.mine(101);
    let paid = node.call("sendtoaddress", json!([mine, 1]));
    let block = node.call("generatetoaddress", json!([1, theirs]))[0].clone();
    let mut confirmations =
        || wallet.try_call("gettransaction", json!([paid])).map(|found| found["confirmations"].clone());
    wait_until("the wallet has the payment", || confirmations() == Ok(json!(1)));
    // The payment returns to the node's mempool, and the node loses all data while the host requests the mempool.
    let mut found = relay.hold("getrawmempool", Point::Request);
    node.call("invalidateblock", json!([block]));
    let held = loop {
        let held = found.recv().unwrap();
        // A request from before the host saw the disconnected block delays the host; release it.
        if comes_within(Duration::from_secs(5), || confirmations() == Ok(json!(0))) {
            break held;
        }
        found = relay.hold("getrawmempool", Point::Request);
        drop(held);
    };
    host.bitcoind().kill_and_restart(Bitcoind::lose_data);
    drop(held);
    wait_until("the wallet follows again", || {
        let told = wallet.call("getbalances", json!([]));
        told["lastprocessedblock"]["height"] == 0 && told["mine"]["untrusted_pending"].as_f64() == Some(0.0)
    });
}
