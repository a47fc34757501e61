//! A node behind a proxy that closes each connection after its answer.

use std::io::{BufReader, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use outrigger_tests::{Bitcoind, Host, HostOptions, Relay, bitcoind, configuration, read_message};
use serde_json::json;

use super::failures::until_answered;
use super::operators::{checked_at, checked_with};
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
    let address = wallet.call("getnewaddress", json!([]));
    for (blocks, address) in [(1, address), (100, json!(ADDRESS))] {
        host.node_client().call("generatetoaddress", json!([blocks, address]));
    }
    let payment = json!([1, ADDRESS]);
    assert_eq!(client.refused("generatetoaddress", payment.clone()), (-1, reason.clone()));
    // The wallet keeps no payment that the node cannot get.
    let balances = wallet.call("getbalances", json!([]));
    assert_eq!(balances["mine"]["trusted"], 50.0);
    let sent = wallet.refused("sendtoaddress", json!({"address": ADDRESS, "amount": 1, "fee_rate": 2}));
    assert_eq!((sent, wallet.call("getbalances", json!([]))), ((-4, reason), balances));
    assert!(ask(metrics, "GET /readyz").starts_with("HTTP/1.1 503"));
    relay.end_silently();
    for _ in 0..5 {
        let told = checked_at(host.node.as_ref().unwrap(), relay.address).1;
        assert!(told.contains(", block 101 of 101"), "{told}");
    }

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

#[test]
fn proxies_that_do_not_reach_the_node_count_as_its_absence_and_other_servers_are_refused() {
    let Some(path) = bitcoind::installed() else { return };
    let (node, _) = Bitcoind::start_with(path, &[]);
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, status) = (server.local_addr().unwrap(), Arc::new(AtomicU32::new(0)));
    let answered = status.clone();
    std::thread::spawn(move || {
        for stream in server.incoming().map_while(Result::ok) {
            let mut stream = BufReader::new(stream);
            while read_message(&mut stream).is_ok_and(|request| !request.is_empty()) {
                let head =
                    format!("HTTP/1.1 {} Told\r\nContent-Length: 6\r\n\r\n<html>", answered.load(Ordering::Relaxed));
                let _ = stream.get_mut().write_all(head.as_bytes());
            }
        }
    });
    for absent in [502, 503, 504] {
        status.store(absent, Ordering::Relaxed);
        let (code, told) = checked_at(&node, address);
        assert!(code == Some(0) && told.contains("Cannot query the node"), "{absent}: {told}");
        let url = format!("backend.url=http://{address}");
        let host = Host::start_with(HostOptions::configured(&configuration(&node)).and(&[&url]));
        for method in ["getblockcount", "clearbanned"] {
            assert_eq!(host.client().refused(method, json!([])).0, -28, "{absent}: {method}");
        }
    }
    for other in [200, 301, 404] {
        status.store(other, Ordering::Relaxed);
        let (code, told) = checked_with(&node, address, &[]);
        assert!(code == Some(2) && told.contains("does not answer like bitcoind"), "{other}: {told}");
    }
}
