//! A plugin whose code does not return delays only its own callers, and `listplugins` shows it.

use outrigger_tests::{Gate, Host, HostOptions, Waiting, all_groups, built, isolated, skip};
use serde_json::json;

use crate::faults::{self, await_told, check_others};

const INTERNAL: i64 = -32603;

/// A host with all groups and `faulty` with a deadline of one second, and a gate; `rest` belongs to its section.
fn start(rest: &str) -> (Host, Gate) {
    faults::start_with_gate(&format!("deadline_seconds = 1\n{rest}"))
}

/// Makes `count` concurrent calls that wait at a gate, and disconnects their clients once all calls wait there.
fn abandon(host: &Host, gate: &Gate, method: &str, count: usize) -> Vec<Waiting> {
    let calls: Vec<_> = (0..count).map(|_| host.client().begin_call(method, json!([gate.address()]))).collect();
    let waiting = (0..count).map(|_| gate.wait()).collect();
    drop(calls);
    waiting
}

#[test]
fn held_up_calls_use_only_the_threads_of_their_plugin() {
    let (host, gate) = start("");
    let mut client = host.client();
    // The host detects abandoned calls at their deadline.
    let waiting = abandon(&host, &gate, "faultblocked", 5);
    await_told(&mut client, "stuck", &json!(5));
    assert_eq!(client.plugin("faulty")["state"], "stuck");
    check_others(&mut client);
    drop(waiting);
    await_told(&mut client, "stuck", &json!(0));
    assert_eq!(client.plugin("faulty")["state"], "running");
    client.call("faultwho", json!([]));
    // The host replaces the threads of long-running calls and answers the calls.
    let calls: Vec<_> = (0..6).map(|_| host.client().begin_call("faultlong", json!([gate.address()]))).collect();
    let waiting: Vec<_> = (0..6).map(|_| gate.wait()).collect();
    await_told(&mut client, "long_calls", &json!(6));
    // The host replaced the threads, so the plugin has its full share again.
    client.call("faultwho", json!([]));
    assert_eq!(client.plugin("faulty")["state"], "running");
    check_others(&mut client);
    drop(waiting);
    for call in calls {
        assert_eq!(call.finish().status, 200);
    }
    await_told(&mut client, "long_calls", &json!(0));
    // A plugin may also block while it releases an answer.
    for _ in 0..5 {
        assert_eq!(client.call("faultunreleased", json!([gate.address()])), json!(1));
    }
    let waiting: Vec<_> = (0..5).map(|_| gate.wait()).collect();
    await_told(&mut client, "stuck", &json!(5));
    check_others(&mut client);
    drop(waiting);
    await_told(&mut client, "stuck", &json!(0));
    // An inline method blocks no connection.
    // Most machines have fewer threads that serve connections.
    let waiting = abandon(&host, &gate, "faultquick", 5);
    check_others(&mut client);
    let (code, message) = client.refused("faultquick", json!([gate.address()]));
    assert_eq!((code, message.as_str()), (INTERNAL, "faultquick was not answered within 1 s"));
    check_others(&mut client);
    drop((waiting, gate.wait()));
    await_told(&mut client, "state", &json!("running"));
}

#[test]
fn held_up_inline_method_of_a_trusted_plugin_blocks_only_one_thread() {
    let (host, gate) = start("trusted = true\n");
    let mut client = host.client();
    // The client is connected now; the next connection gets another thread.
    check_others(&mut client);
    let waiting = abandon(&host, &gate, "faultquick", 1);
    await_told(&mut client, "stuck", &json!(1));
    // Further calls of the plugin block no more of these threads, and new connections go to free threads.
    let further = abandon(&host, &gate, "faultquick", 5);
    for _ in 0..10 {
        check_others(&mut host.client());
    }
    drop((waiting, further));
    await_told(&mut client, "state", &json!("running"));
}

#[test]
fn held_up_cancellation_is_reported_as_stuck() {
    let (gate, kept) = (Gate::new(), Gate::new());
    let option = format!("options = {{ gate_cancel = \"{}\" }}\n", gate.address());
    let host = faults::start(&format!("deadline_seconds = 1\n{}{option}", Gate::reach(&[&gate, &kept])));
    let mut client = host.client();
    let call = host.client().begin_call("faultlate", json!([kept.address()]));
    let answering = kept.wait();
    drop(call);
    let waiting = gate.wait();
    await_told(&mut client, "state", &json!("stuck"));
    check_others(&mut client);
    drop((waiting, answering));
    await_told(&mut client, "state", &json!("running"));
}

#[test]
fn reloadplugin_with_a_slow_new_instance_holds_up_no_call() {
    if isolated() {
        skip("what slows an instance down is kept by the library, of which each process has its own");
        return;
    }
    let grants = "grants = [\"chain/1\", \"log/1\"]\n";
    let host = Host::start_with(HostOptions::with_plugin(&all_groups(), built().library("outrigger_faulty"), grants));
    let mut client = host.client();
    let gate = Gate::new();
    client.call("faultslowcreate", json!([gate.address()]));
    let reload = host.client().begin(r#"{"method":"reloadplugin","params":["faulty"],"id":1}"#);
    let waiting = gate.wait();
    assert_eq!(client.call("faultwho", json!([]))["instance"], 1);
    check_others(&mut client);
    drop(waiting);
    assert_eq!(reload.finish().status, 200);
    assert_eq!(client.call("faultwho", json!([]))["instance"], 2);
    // The host stops on request even while it creates a plugin's instance.
    let _reload = host.client().begin(r#"{"method":"reloadplugin","params":["faulty"],"id":1}"#);
    let waiting = gate.wait();
    let mut host = host;
    assert!(host.terminate().success());
    drop(waiting);
}
