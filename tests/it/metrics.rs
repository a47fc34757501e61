//! The metrics for Prometheus.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use outrigger_tests::{Client, Host, HostOptions};
use serde_json::json;

use crate::alerts::missing;

/// The whole answer to `request`.
pub fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{request} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn metrics_report_calls_chain_wallets_wrong_passphrases_and_plugins() {
    let backups = tempfile::tempdir().unwrap();
    let folder = format!("backup.folder={}", backups.path().display());
    let host = Host::start_with(HostOptions::with(&["metrics.listen=127.0.0.1:0", "wallet.keypool=5", &folder]));
    let metrics = host.metrics.unwrap();
    let mut wallet = host.new_wallet("shop");
    wallet.mine(3);
    // A wallet lags behind the chain. A call of the wallet waits until it has caught up.
    wallet.call("getwalletinfo", json!([]));
    wallet.refused("getblockhash", json!([9]));
    wallet.refused("nosuchmethod", json!([]));
    wallet.refused("nosuchmethodeither", json!([]));
    let mut safe = wallet.create_wallet("safe", json!({"passphrase": "right"}));
    assert_eq!(safe.refused("walletpassphrase", json!(["wrong", 10])).0, -14);
    assert_eq!(safe.refused("walletpassphrasechange", json!(["wrong", "new"])).0, -14);
    safe.call("walletpassphrase", json!(["right", 10]));

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
        "outrigger_wallet_wrong_passphrases_total{wallet=\"safe\"} 2.0",
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
    // The test's own connections, and closed ones that the host may not have noticed.
    let connections = answer.lines().find_map(|line| line.strip_prefix("outrigger_connections "));
    assert!(matches!(connections, Some("1.0" | "2.0" | "3.0" | "4.0")), "{answer}");
    // The alerts and the dashboard use no other metrics, except those of a host in front of a bitcoind.
    let missing = missing(&answer).into_iter().filter(|name| !name.starts_with("outrigger_node_"));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
    assert!(ask(metrics, "GET /").starts_with("HTTP/1.1 404"));
    assert!(ask(metrics, "POST /metrics").starts_with("HTTP/1.1 405"));
    for page in ["/healthz", "/readyz"] {
        assert!(ask(metrics, &format!("GET {page}")).starts_with("HTTP/1.1 200"), "{page}");
    }
}

#[test]
fn health_needs_no_credentials_on_the_rpc_port_and_fails_while_a_startup_wallet_is_missing() {
    let host = Host::start_with(HostOptions::with(&["metrics.listen=127.0.0.1:0", "rpc.console=false"]));
    host.client().call("createwallet", json!({"wallet_name": "w", "load_on_startup": true}));
    let mut client = host.client();
    let mut asked = |request: &str| client.send(&format!("{request} HTTP/1.1\r\nHost: x\r\n\r\n"));
    for page in ["/healthz", "/readyz"] {
        let reply = asked(&format!("GET {page}"));
        assert_eq!((reply.status, reply.body.as_str()), (200, ""), "{page}");
        for request in [format!("HEAD {page}"), format!("GET {page}?a=1")] {
            assert_eq!(asked(&request).status, 200, "{request}");
            assert!(ask(host.metrics.unwrap(), &request).starts_with("HTTP/1.1 200"), "{request}");
        }
        let reply = asked(&format!("POST {page}"));
        assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, HEAD")), "{page}");
    }
    // Other requests get bitcoind's answers as before.
    for (request, status) in [
        ("GET /", 405),
        ("GET /metrics", 404),
        ("GET /console", 404),
        ("GET /healthz/", 404),
        ("GET http://x/healthz", 404),
        ("POST /", 401),
    ] {
        assert_eq!(asked(request).status, status, "{request}");
    }

    let is_ready = |host: &Host| ask(host.metrics.unwrap(), "GET /readyz").starts_with("HTTP/1.1 200");
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
    // A call takes a lost wallet off the list.
    std::fs::remove_dir_all(folder.join("w")).unwrap();
    let host = host.restart();
    let mut client = host.client();
    for other in [json!(["w"]), json!(["w", true]), json!(["x", false])] {
        assert_eq!(client.refused("unloadwallet", other.clone()).0, -18, "{other}");
    }
    assert!(!is_ready(&host));
    let warning = "The wallet was not loaded. It is no longer on the list of wallets to load at the start.";
    assert_eq!(client.call("unloadwallet", json!(["w", false])), json!({"warnings": [warning]}));
    assert!(is_ready(&host) && is_ready(&host.restart()));
}
