//! The metrics: what Prometheus reads.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use outrigger_tests::{Client, Host, HostOptions};
use serde_json::json;

/// What is answered to `request`, whole.
pub fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{request} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn metrics_tell_prometheus_of_calls_chain_wallets_and_plugins() {
    let host = Host::start_with(HostOptions::with(&["metrics.listen=127.0.0.1:0"]));
    let metrics = host.metrics.unwrap();
    let mut wallet = host.new_wallet("shop");
    wallet.mine(3);
    // A wallet follows behind the chain, and a call of it waits till it has.
    wallet.call("getwalletinfo", json!([]));
    wallet.refused("getblockhash", json!([9]));
    wallet.refused("nosuchmethod", json!([]));
    wallet.refused("nosuchmethodeither", json!([]));

    assert_eq!(Client::new(host.address, "alice:guess").post(r#"{"method":"uptime"}"#).status, 401);

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
        "outrigger_wrong_credentials_total 1.0",
        "outrigger_refused_attempts_total 0.0",
        "outrigger_connections_displaced_total 0.0",
        "outrigger_connections_cut_unread_total 0.0",
        "outrigger_unread_reply_bytes 0.0",
        "# EOF",
    ] {
        assert!(answer.lines().any(|found| found == line), "{line}\n{answer}");
    }
    // The test's own connection, and those that may not have been seen to end.
    let connections = answer.lines().find_map(|line| line.strip_prefix("outrigger_connections "));
    assert!(matches!(connections, Some("1.0" | "2.0" | "3.0")), "{answer}");
    assert!(ask(metrics, "GET /").starts_with("HTTP/1.1 404"));
    assert!(ask(metrics, "POST /metrics").starts_with("HTTP/1.1 405"));
    for page in ["/healthz", "/readyz"] {
        assert!(ask(metrics, &format!("GET {page}")).starts_with("HTTP/1.1 200"), "{page}");
    }
}

#[test]
fn health_is_told_on_the_rpc_port_too_without_credentials_and_nothing_else_is() {
    let host = Host::start_with(HostOptions::with(&["metrics.listen=127.0.0.1:0"]));
    let mut client = host.client();
    let mut asked = |request: &str| client.send(&format!("{request} HTTP/1.1\r\nHost: x\r\n\r\n"));
    for page in ["/healthz", "/readyz"] {
        let reply = asked(&format!("GET {page}"));
        assert_eq!((reply.status, reply.body.as_str()), (200, ""), "{page}");
        assert_eq!(asked(&format!("HEAD {page}")).status, 200, "{page}");
        let reply = asked(&format!("POST {page}"));
        assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, HEAD")), "{page}");
        assert!(ask(host.metrics.unwrap(), &format!("HEAD {page}")).starts_with("HTTP/1.1 200"), "{page}");
    }
    // As before: bitcoind's answers.
    for (request, status) in [
        ("GET /", 405),
        ("GET /metrics", 404),
        ("GET /healthz/", 404),
        ("GET /healthz?a", 404),
        ("GET http://x/healthz", 404),
        ("POST /", 401),
    ] {
        assert_eq!(asked(request).status, status, "{request}");
    }
}

#[test]
fn host_is_not_ready_while_a_wallet_of_its_start_is_missing() {
    let host = Host::start_with(HostOptions::with(&["metrics.listen=127.0.0.1:0"]));
    let is_ready = |host: &Host| ask(host.metrics.unwrap(), "GET /readyz").starts_with("HTTP/1.1 200");
    host.client().call("createwallet", json!({"wallet_name": "w", "load_on_startup": true}));
    assert!(is_ready(&host));
    let folder = host.network_folder().join("wallets");
    std::fs::rename(folder.join("w"), folder.join("elsewhere")).unwrap();
    let host = host.restart();
    assert!(!is_ready(&host));
    for (page, status) in [("/healthz", 200), ("/readyz", 503)] {
        let request = format!("HEAD {page} HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(host.client().send(&request).status, status, "{page}");
    }
    std::fs::rename(folder.join("elsewhere"), folder.join("w")).unwrap();
    host.client().call("loadwallet", json!(["w"]));
    assert!(is_ready(&host));
}

#[test]
fn metrics_count_wrong_passphrases_of_walletpassphrase_and_walletpassphrasechange() {
    let host = Host::start_with(HostOptions::with(&["metrics.listen=127.0.0.1:0", "wallet.keypool=5"]));
    let mut wallet = host.client().create_wallet("shop", json!({"passphrase": "right"}));
    assert_eq!(wallet.refused("walletpassphrase", json!(["wrong", 10])).0, -14);
    assert_eq!(wallet.refused("walletpassphrasechange", json!(["wrong", "new"])).0, -14);
    wallet.call("walletpassphrase", json!(["right", 10]));
    let answer = ask(host.metrics.unwrap(), "GET /metrics");
    let line = "outrigger_wallet_wrong_passphrases_total{wallet=\"shop\"} 2.0";
    assert!(answer.lines().any(|found| found == line), "{answer}");
}
