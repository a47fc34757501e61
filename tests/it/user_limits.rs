//! Limits of single users: calls a second, concurrent calls, and wallets.

use std::io::Read;

use outrigger_tests::{Client, Gate, Host, HostOptions, NOBODY, plugin_section, wait_until};
use serde_json::{Value, json};

use crate::users::ALICE;

/// A host whose users have these limits, and bob none; `rest` follows in the configuration.
fn start(limits: &[(&str, &str)], rest: &str) -> Host {
    let section = |(name, limits): &(&str, &str)| {
        format!("[[rpc.users]]\nrpcauth = \"{}\"\n{limits}\n", ALICE.replace("alice", name))
    };
    let users: String = limits.iter().chain(&[("bob", "")]).map(section).collect();
    Host::start_with(HostOptions::with_groups(&format!("{users}{rest}")))
}

fn user(host: &Host, name: &str) -> Client {
    Client::new(host.address, &format!("{name}:pass:word"))
}

const UPTIME: &str = r#"{"method":"uptime","id":1}"#;

#[test]
fn limits_of_calls_answer_429_to_the_user_alone() {
    let gate = Gate::new();
    let grants = "grants = [\"chain/1\", \"log/1\"]\n";
    let plugin = plugin_section("outrigger_faulty", &format!("{grants}{}", Gate::reach(&[&gate])));
    let limits = [
        ("alice", "max_calls_per_second = 5"),
        ("carol", "max_calls_per_second = 1\nmax_concurrent_calls = 1"),
        ("dave", "max_concurrent_calls = 2"),
        ("erin", "max_concurrent_calls = 1"),
    ];
    let host = start(&limits, &plugin);
    check_calls_a_second(&host);
    check_websocket(&host);
    check_calls_at_a_time(&host);
    check_code_whose_client_is_gone(&host, &gate);
}

/// Batches count each call.
fn check_calls_a_second(host: &Host) {
    let mut alice = user(host, "alice");
    let batch = |calls: usize| format!("[{}]", vec![UPTIME; calls].join(","));
    let reply = alice.post(&batch(6));
    assert_eq!(reply.status, 200, "{reply:?}");
    let told = "The user may make 5 calls a second (rpc.users.max_calls_per_second)";
    assert_eq!(reply.body.matches(told).count(), 1, "{}", reply.body);
    assert_eq!(reply.body.matches(r#""code":-32603"#).count(), 1, "{}", reply.body);
    let reply = alice.post(UPTIME);
    assert_eq!((reply.status, reply.body.as_str(), reply.header("content-type")), (429, told, Some("text/plain")));
    let mut bob = user(host, "bob");
    assert!((0..50).all(|_| bob.post(UPTIME).status == 200));
    assert_eq!(host.client().post(&batch(50)).status, 200);
    wait_until("calls come back", || alice.post(UPTIME).status == 200);
}

/// The limits hold over a WebSocket.
fn check_websocket(host: &Host) {
    let mut carol = user(host, "carol").websocket();
    wait_until("a call is one too many", || carol.call("uptime", json!([])) == Err(-32603));
    wait_until("calls come back", || carol.call("uptime", json!([])).is_ok());
    // The limits are per user, not per connection.
    wait_until("a call over HTTP is one too many", || user(host, "carol").post(UPTIME).status == 429);
}

fn check_calls_at_a_time(host: &Host) {
    let mut dave = user(host, "dave");
    let [mut waiting, leaving] = [(); 2].map(|()| dave.post_and_stay(r#"{"method":"waitfornewblock","id":1}"#));
    wait_until("two calls wait", || dave.post(UPTIME).status == 429);
    assert_eq!(dave.post(UPTIME).body, "The user may have 2 calls at a time (rpc.users.max_concurrent_calls)");
    assert_eq!(user(host, "bob").post(UPTIME).status, 200);
    // A reset connection frees its place.
    drop(leaving);
    wait_until("a place is free", || dave.post(UPTIME).status == 200);
    host.client().call("generatetoaddress", json!([1, NOBODY]));
    let mut answer = [0; 12];
    waiting.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
}

/// Sends a call, and resets the connection once the call runs.
fn leave(host: &Host, client: &Client, method: &str, params: Value, runs: impl FnOnce()) {
    let leaving = client.post_and_stay(&json!({"method": method, "params": params, "id": 1}).to_string());
    runs();
    drop(leaving);
    wait_until("the client is gone", || !is_active(host, method));
}

fn is_active(host: &Host, method: &str) -> bool {
    let listed = host.client().call("getrpcinfo", json!([]));
    listed["active_commands"].as_array().unwrap().iter().any(|call| call["method"] == method)
}

/// A call that runs counts until it ends, even if its client is gone.
fn check_code_whose_client_is_gone(host: &Host, gate: &Gate) {
    let mut erin = user(host, "erin");
    let mut running = None;
    leave(host, &erin, "faultblocked", json!([gate.address()]), || running = Some(gate.wait()));
    assert_eq!(erin.post(UPTIME).status, 429);
    drop(running);
    wait_until("the code has ended", || erin.post(UPTIME).status == 200);
}

#[test]
fn quota_of_wallets_counts_the_existing_wallets_that_the_user_made() {
    let host = start(&[("alice", "max_wallets = 2"), ("carol", "max_wallets = 1")], "");
    let (mut alice, mut carol) = (user(&host, "alice"), user(&host, "carol"));
    host.client().call("createwallet", json!(["others"]));
    alice.call("createwallet", json!(["a"]));
    alice.call("createwallet", json!(["b"]));
    // A failed createwallet with a name that exists does not count.
    let quota = (-4, "The user has made or is making 2 wallets, and may make 2 (rpc.users.max_wallets)".to_owned());
    assert_eq!(alice.refused("createwallet", json!(["c"])), quota);
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("backup").display().to_string();
    alice.wallet("a").call("backupwallet", json!([backup]));
    assert_eq!(alice.refused("restorewallet", json!(["c", backup])), quota);
    // A wallet whose client is gone counts too. The passphrase slows its creation down.
    let params = json!(["abandoned", false, false, "secret"]);
    leave(&host, &carol, "createwallet", params, || wait_until("it runs", || is_active(&host, "createwallet")));
    let mut operator = host.client();
    wait_until("the wallet is made", || {
        operator.call("listwallets", json!([])).as_array().unwrap().contains(&json!("abandoned"))
    });
    assert_eq!(carol.refused("createwallet", json!(["more"])).0, -4);
    // The count survives a restart.
    let host = host.restart();
    let mut alice = user(&host, "alice");
    assert_eq!(alice.refused("createwallet", json!(["c"])), quota);
    user(&host, "bob").call("createwallet", json!(["d"]));
    std::fs::remove_dir_all(host.network_folder().join("wallets/b")).unwrap();
    alice.call("restorewallet", json!(["c", backup]));
    assert_eq!(alice.refused("createwallet", json!(["e"])), quota);
}

/// A plugin calls methods for its user within a call of that user.
#[test]
fn limits_of_a_user_let_plugins_call_methods_for_its_call() {
    let grants = r#"grants = [{ service = "rpc/1", methods = ["createwallet", "getblockcount"] }]"#;
    let plugin = plugin_section(
        "outrigger_chained",
        &format!("{grants}\noptions = {{ again_as_caller = [\"createwallet\"] }}\n"),
    );
    let routes = "[routes]\nwrap = [{ plugin = \"chained\", methods = [\"createwallet\"] }]\n";
    let limits = [("alice", "max_wallets = 3"), ("carol", "max_concurrent_calls = 1")];
    let host = start(&limits, &(plugin + routes));
    let mut alice = user(&host, "alice");
    for name in ["a", "b"] {
        assert_eq!(alice.call("createwallet", json!([name]))["name"], name);
    }
    // The wrapper's own call would make the third and the fourth one at a time.
    assert_eq!(alice.refused("createwallet", json!(["c"])).0, -4);
    assert_eq!(user(&host, "carol").call("callmethod", json!(["getblockcount", [], false])), 0);
}
