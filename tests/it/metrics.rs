//! The metrics: what Prometheus reads.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use outrigger_tests::{Host, HostOptions};
use serde_json::json;

/// What is answered to `request`, whole.
fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{request} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn prometheus_reads_how_the_host_fares() {
    let host =
        Host::start_with(HostOptions { set: vec!["metrics.listen=127.0.0.1:0".into()], ..HostOptions::default() });
    let metrics = host.metrics.unwrap();
    let mut wallet = host.new_wallet("shop");
    let address = wallet.call("getnewaddress", json!([]));
    wallet.call("generatetoaddress", json!([3, address]));
    // A wallet follows behind the chain, and a call of it waits till it has.
    wallet.call("getwalletinfo", json!([]));
    wallet.refused("getblockhash", json!([9]));
    wallet.refused("nosuchmethod", json!([]));
    wallet.refused("nosuchmethodeither", json!([]));

    let answer = ask(metrics, "GET /metrics");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(
        answer.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"),
        "{answer}"
    );
    for line in [
        "outrigger_calls_total{method=\"getblockhash\",outcome=\"Error\"} 1",
        "outrigger_calls_total{method=\"generatetoaddress\",outcome=\"Ok\"} 1",
        "outrigger_calls_total{method=\"(unknown)\",outcome=\"Error\"} 2",
        "outrigger_call_seconds_count{method=\"generatetoaddress\"} 1",
        "outrigger_calls_in_flight 0",
        "outrigger_calls_queued 0.0",
        "outrigger_chain_height 3.0",
        "outrigger_mempool_transactions 0.0",
        "outrigger_wallet_height{wallet=\"shop\"} 3.0",
        "outrigger_wallet_lagging{wallet=\"shop\"} 0.0",
        "outrigger_plugin_state{plugin=\"mining\",state=\"running\"} 1.0",
        "outrigger_plugin_faults_total{plugin=\"history\"} 0.0",
        "# EOF",
    ] {
        assert!(answer.lines().any(|found| found == line), "{line}\n{answer}");
    }
    // The test's own connection, and one that may not have been seen to end.
    let connections = answer.lines().find_map(|line| line.strip_prefix("outrigger_connections "));
    assert!(matches!(connections, Some("1.0" | "2.0")), "{answer}");
    assert!(ask(metrics, "GET /").starts_with("HTTP/1.1 404"));
    assert!(ask(metrics, "POST /metrics").starts_with("HTTP/1.1 405"));
}

#[test]
fn metrics_that_cannot_be_told_are_an_error_of_the_configuration() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let set = vec![format!("metrics.listen={}", taken.local_addr().unwrap())];
    let output = Host::fail(&HostOptions { set, ..HostOptions::default() });
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("metrics.listen: cannot listen on"), "{told}");
}
