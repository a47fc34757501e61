//! A node behind a proxy that closes each connection after its answer.

use outrigger_tests::{Bitcoind, Relay, bitcoind};
use serde_json::json;

use super::failures::until_answered;
use super::operators::checked_at;
use super::{ADDRESS, start_before};
use crate::metrics::ask;

#[test]
fn node_behind_a_proxy_without_keep_alive_gets_only_calls_without_effects() {
    let Some(path) = bitcoind::installed() else { return };
    let (node, _) = Bitcoind::start_with(path, &[]);
    let relay = Relay::to(node.address);
    relay.end_connections(true);
    let mut host = start_before(node, &relay, &["metrics.listen=127.0.0.1:0"]);
    let metrics = host.metrics.unwrap();
    let reason = format!(
        "Each connection to http://{} ends after one answer, as through a proxy without keep-alive: the host cannot tell to which \
         node the next one leads, and passes on only methods without effects",
        relay.address
    );
    let told = checked_at(host.node.as_ref().unwrap(), relay.address).1;
    assert!(told.lines().any(|line| line == format!("connections: {reason}")), "{told}");

    let (mut client, mut wallet) = (host.client(), host.new_wallet("w"));
    for _ in 0..10 {
        assert_eq!(client.call("getblockcount", json!([])), 0);
    }
    wallet.call("getnewaddress", json!([]));
    wallet.call("getbalances", json!([]));
    let payment = json!([1, ADDRESS]);
    assert_eq!(client.refused("generatetoaddress", payment.clone()), (-1, reason));
    assert!(ask(metrics, "GET /readyz").starts_with("HTTP/1.1 503"));

    // Another node replaces the first behind the proxy, which keeps running.
    let node = host.node.as_mut().unwrap();
    node.stop();
    assert_eq!(client.refused("getblockcount", json!([])).0, -28);
    node.start_again_on("signet");
    let foreign = (-1, "the node is on signet, but the host is configured for regtest".to_owned());
    let asked = relay.count("getblockcount");
    for _ in 0..10 {
        assert_eq!(client.refused("getblockcount", json!([])), foreign);
        assert_eq!(client.refused("generatetoaddress", payment.clone()), foreign);
    }
    assert_eq!((relay.count("getblockcount"), relay.count("generatetoaddress")), (asked, 0));

    host.bitcoind().stop();
    host.bitcoind().start_again_on("regtest");
    until_answered(&mut client, "getblockcount");
    relay.end_connections(false);
    // The first answer on a connection that stays open shows that the proxy keeps connections.
    until_answered(&mut client, "getblockcount");
    assert_eq!(client.call("generatetoaddress", payment).as_array().unwrap().len(), 1);
}
