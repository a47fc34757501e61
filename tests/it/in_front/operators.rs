//! Operation of the host in front of a bitcoind: the check before the start, REST, the audit log, metrics and the log.

use std::io::Write;
use std::net::{Shutdown, SocketAddr};
use std::process::Output;

use outrigger_tests::{Bitcoind, Client, Host, HostOptions, Point, bitcoind, configuration, wait_until};
use serde_json::{Value, json};

use super::users::{client_of, status, users};
use super::{ADDRESS, start_behind_relay_with, start_set};
use crate::metrics::ask;
use crate::operator::audited;

/// The exit code of `run --check` for a node, and its output.
pub fn checked(node: &Bitcoind) -> (Option<i32>, String) {
    checked_at(node, node.address)
}

/// The same for a node behind a relay at this address.
pub fn checked_at(node: &Bitcoind, address: SocketAddr) -> (Option<i32>, String) {
    let output = check(node, address, &[]);
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

/// Runs `run --check` with these settings. Returns the exit code, and standard output followed by standard error.
pub fn checked_with(node: &Bitcoind, address: SocketAddr, set: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = check(node, address, set);
    (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

fn check(node: &Bitcoind, address: SocketAddr, set: &[&str]) -> Output {
    let url = format!("backend.url=http://{address}");
    Host::check(&HostOptions::configured(&configuration(node)).and(&[&url]).and(set))
}

#[test]
fn run_check_fails_if_the_node_denies_required_methods() {
    let Some(path) = bitcoind::installed() else { return };
    let (bare, _) = Bitcoind::start_with(path.clone(), &["-rpcwhitelist=__cookie__:getblockcount,getblock,stop"]);
    let output = check(&bare, bare.address, &[]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{told}");
    let expected = "rpcwhitelist: the node does not allow its user '__cookie__' to call getbestblockhash, getblockchaininfo, getblockhash, \
                    getblockheader (the chain)";
    assert!(told.contains(expected) && told.contains(" gettxout (unspent outputs)"), "{told}");
    assert!(!told.contains("getblock (blocks)"), "{told}");
    let line = told.lines().find(|line| line.starts_with("rpcwhitelist=__cookie__:")).unwrap().to_owned();
    // The suggested line allows all methods that the host needs.
    let (whole, _) = Bitcoind::start_with(path.clone(), &[&format!("-{line},stop")]);
    let (code, told) = checked(&whole);
    assert!(code == Some(0) && !told.contains("rpcwhitelist: "), "{told}");
    // The check reports missing optional methods without failing.
    let without = line.replace(",submitblock", "").replace(",gettxout", "");
    let (most, _) = Bitcoind::start_with(path, &[&format!("-{without},stop")]);
    let (code, told) = checked(&most);
    let lines: Vec<&str> =
        told.lines().filter(|line| line.starts_with("rpcwhitelist: the node does not allow")).collect();
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(
        lines,
        [
            "rpcwhitelist: the node does not allow its user '__cookie__' to call gettxout (unspent outputs)",
            "rpcwhitelist: the node does not allow its user '__cookie__' to call submitblock (templates and mining)"
        ]
    );
}

#[test]
fn run_check_reports_the_nodes_features_and_possible_improvements() {
    let Some(path) = bitcoind::installed() else { return };
    let (mut bare, _) = Bitcoind::start_with(&path, &["-disablewallet"]);
    let (code, told) = checked(&bare);
    assert_eq!(code, Some(0), "{told}");
    for line in [
        "The configuration is valid: 5 plugins with ".to_owned(),
        format!("The node at http://{} answers: /Satoshi:", bare.address),
        "prune: no".to_owned(),
        "blockfilterindex: none; ".to_owned(),
        "txindex: none; ".to_owned(),
        "rest: off; ".to_owned(),
        "zmqpubsequence: not published; ".to_owned(),
        "rpcthreads, rpcworkqueue: the node does not tell; it gets at most 10 connections, ".to_owned(),
        "wallets of the node: disabled; ".to_owned(),
    ] {
        assert!(told.lines().any(|found| found.starts_with(&line)), "{line}\n{told}");
    }
    assert!(told.contains(", regtest, block 0 of 0"), "{told}");
    bare.stop();
    let (code, told) = checked(&bare);
    let unreachable = format!("Cannot query the node at http://{}: ", bare.address);
    assert!(code == Some(0) && told.contains(&unreachable), "{told}");

    let folder = tempfile::tempdir().unwrap();
    let socket = format!("{}/sequence", folder.path().display());
    let zmq = format!("-zmqpubsequence=unix:{socket}");
    let (node, _) = Bitcoind::start_with(&path, &["-blockfilterindex=1", "-txindex=1", "-rest=1", &zmq]);
    let mut client = node.client();
    client.call("generatetoaddress", json!([3, ADDRESS]));
    client.call("createwallet", json!(["w"]));
    wait_until("the indexes are built", || {
        let index = client.call("getindexinfo", json!([]));
        ["txindex", "basic block filter index"].iter().all(|name| index[name]["synced"] == true)
    });
    let told = checked(&node).1;
    for line in ["blockfilterindex: built", "txindex: built", "rest: on", &format!("zmqpubsequence: ipc://{socket}")] {
        assert!(told.lines().any(|found| found == line), "{line}\n{told}");
    }
    assert!(told.contains("wallets of the node: 1 loaded"), "{told}");
}

/// A path of the node's REST interface.
const CHAIN: &str = "/rest/chaininfo.json";

/// A request for a path with a client's credentials.
fn get(client: &Client, path: &str) -> String {
    client.request("").replacen("POST /", &format!("GET {path}"), 1)
}

/// The same without credentials.
fn bare(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")
}

#[test]
fn rest_is_passed_on_with_credentials_if_configured() {
    let users = users(&[("alice", "methods = ['@rest']"), ("bob", "methods = ['@read']")]);
    let set = ["backend.rest_passthrough=true", "metrics.listen=127.0.0.1:0", &users];
    let Some(mut host) = start_set(&["-rest=1"], &set) else { return };
    let (mut client, mut direct) = (client_of(&host, "alice"), host.node_client());
    direct.call("generatetoaddress", json!([200, ADDRESS]));
    assert_eq!(status(&mut client, "getblockcount"), 403);
    let first = direct.call("getblockhash", json!([0]));
    let paths = [CHAIN, "/rest/mempool/info.json", "/rest/blockhashbyheight/3.hex", "/rest/nothing", "/rest/"];
    let headers = format!("/rest/headers/{}.hex?count=200", first.as_str().unwrap());
    for path in paths.into_iter().chain([headers.as_str()]) {
        let (ours, nodes) = (client.send(&get(&client, path)), direct.send(&bare(path)));
        assert_eq!((ours.status, &ours.body), (nodes.status, &nodes.body), "{path}");
        assert_eq!(ours.header("content-type"), nodes.header("content-type"), "{path}");
    }
    let body = client.send(&get(&client, &headers)).body;
    assert_eq!(body.trim().len(), 200 * 160);
    // Bob's methods exclude REST; the host refuses requests without credentials and other verbs as for calls.
    assert_eq!(client.send(&get(&client_of(&host, "bob"), &headers)).status, 403);
    assert_eq!(client.send(&get(&Client::new(host.address, "bob:pass"), &headers)).status, 401);
    assert_eq!(client.send(&bare(&headers)).status, 401);
    let post = "POST /rest/chaininfo.json HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(client.send(post).status, 405);
    let page = ask(host.metrics.unwrap(), "GET /metrics");
    assert!(page.contains("outrigger_calls_total{method=\"@rest\",outcome=\"Ok\"} 7"), "{page}");
    host.bitcoind().stop();
    let away = client.send(&get(&client, CHAIN));
    assert_eq!(away.status, 503);
    assert!(away.body.starts_with("Waiting for bitcoind at "), "{}", away.body);
}

#[test]
fn rest_is_off_by_default_and_needs_no_credentials_if_configured() {
    let users = users(&[("alice", "methods = ['@read']")]);
    let Some(host) = start_set(&["-rest=1"], &[&users]) else { return };
    assert_eq!(host.client().send(&bare(CHAIN)).status, 404);
    let set = ["backend.rest_passthrough=true", "backend.rest_anonymous=true"].map(str::to_owned);
    let host = host.restart_otherwise(|options| options.set.extend(set));
    let mut client = host.client();
    let direct = host.node_client().send(&bare(CHAIN));
    let ours = client.send(&bare(CHAIN));
    assert_eq!((ours.status, ours.body), (200, direct.body));
    // The host still checks calls, and credentials if given.
    assert_eq!(client.send(&get(&Client::new(host.address, "alice:wrong"), CHAIN)).status, 401);
    assert_eq!(client.send(&get(&client_of(&host, "alice"), CHAIN)).status, 403);
    assert_eq!(client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}").status, 401);
    assert_eq!(client.send(&bare("/")).status, 405);
    let error = Host::refused(&HostOptions::with(&["backend.url='http://127.0.0.1:1'", "backend.rest_anonymous=true"]));
    assert!(error.contains("needs backend.rest_passthrough"), "{error}");
}

#[test]
fn rest_replies_without_a_length_are_passed_on_whole_or_refused() {
    let Some((host, relay)) = start_behind_relay_with(&[], &["backend.rest_passthrough=true"]) else { return };
    let mut client = host.client();
    let get = get(&client, CHAIN);
    // The node's REST interface is off, so the node answers 404.
    assert_eq!(client.send(&get).status, 404);
    let long = "0123456789abcdef".repeat(100_000);
    for (head, body, expected) in [
        // These replies end with their connection.
        ("HTTP/1.0 200 OK", long.clone(), (200, &*long)),
        ("HTTP/1.1 200 OK\r\nConnection: close", long.clone(), (200, &*long)),
        ("HTTP/1.0 404 Not Found", "Block not found".into(), (404, "Block not found")),
        ("HTTP/1.0 200 OK", String::new(), (200, "")),
        // Chunked replies, with and without the last chunk.
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", "4\r\nabcd\r\n2\r\nef\r\n0\r\n\r\n".into(), (200, "abcdef")),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", "4\r\nabcd\r\n".into(), (502, "The node's reply broke off")),
    ] {
        let held = relay.hold(CHAIN, Point::Request);
        let reply = format!("{head}\r\nContent-Type: application/json\r\n\r\n{body}");
        std::thread::scope(|scope| {
            let answer = scope.spawn(|| client.send(&get));
            held.recv().unwrap().answer(move |stream| {
                stream.write_all(reply.as_bytes())?;
                stream.shutdown(Shutdown::Both)
            });
            let answer = answer.join().unwrap();
            assert_eq!((answer.status, &*answer.body), expected, "{head}");
            let told = if answer.status == 502 { "text/plain" } else { "application/json" };
            assert_eq!(answer.header("content-type"), Some(told), "{head}");
        });
    }
}

#[test]
fn audit_log_lists_passed_calls_and_those_of_batches() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit");
    let Some(host) = start_set(&[], &[&format!("audit.file='{}'", file.display())]) else { return };
    let mut client = host.client();
    let mut wallet = host.new_wallet("w");
    let mine = wallet.mine(101);
    let paid = wallet.call("sendtoaddress", json!([mine, 1]));
    let coin = &wallet.call("listunspent", json!([0]))[0];
    let spent = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
    let raw = client.call("createrawtransaction", json!([spent, [{mine.as_str().unwrap(): 0.5}]]));
    let signed = wallet.call("signrawtransactionwithwallet", json!([raw]));
    let sent = client.call("sendrawtransaction", json!([signed["hex"], 0]));
    client.post(
        &json!([{"id": 1, "method": "savemempool"}, {"id": 2, "method": "getblockcount"},
                {"id": 3, "method": "setban", "params": ["10.0.0.1", "add"]}])
        .to_string(),
    );
    client.refused("dumpprivkey", json!(["no address"]));
    client.refused("sendrawtransaction", json!(["00"]));
    let lines = audited(&file);
    let short: Vec<Value> = lines
        .iter()
        .map(|line| json!([line["wallet"], line["method"], line["outcome"], line["code"], line["txid"][0]]))
        .collect();
    let expected = [
        json!([null, "createwallet", "ok", null, null]),
        json!(["w", "sendtoaddress", "ok", null, paid]),
        json!(["w", "signrawtransactionwithwallet", "ok", null, sent]),
        json!([null, "sendrawtransaction", "ok", null, sent]),
        json!([null, "savemempool", "ok", null, null]),
        json!([null, "setban", "ok", null, null]),
        json!([null, "dumpprivkey", "error", -5, null]),
        json!([null, "sendrawtransaction", "error", -22, null]),
    ];
    assert_eq!(short, expected);
    assert!(lines.iter().all(|line| line["user"] == "__cookie__" && line["peer"] == "127.0.0.1"));
}

#[test]
fn metrics_of_passed_calls_label_only_known_methods() {
    let Some(host) = start_set(&[], &["metrics.listen=127.0.0.1:0"]) else { return };
    let mut client = host.client();
    // A method that the host knows itself, and one that the node's help hides.
    client.call("getblockcount", json!([]));
    client.call("waitforblockheight", json!([0]));
    for number in 0..20 {
        client.refused(&format!("madeup{number}"), json!([]));
        let path = format!("madeup{number}");
        client.wallet(&path).refused("getbalances", json!([]));
    }
    let page = ask(host.metrics.unwrap(), "GET /metrics");
    assert!(page.contains("outrigger_calls_total{method=\"getblockcount\",outcome=\"Ok\"} 1"), "{page}");
    assert!(page.contains("outrigger_calls_total{method=\"waitforblockheight\",outcome=\"Ok\"} 1"), "{page}");
    assert!(page.contains("outrigger_calls_total{method=\"(unknown)\",outcome=\"Error\"} 20"), "{page}");
    assert!(!page.contains("madeup"), "{page}");
}
