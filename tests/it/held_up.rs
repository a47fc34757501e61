//! A plugin whose code does not return holds up its own callers and nobody else, and `listplugins` shows it.

use outrigger_tests::{Gate, Host, HostOptions, Waiting, all_groups, built, isolated, skip};
use serde_json::json;

use crate::faults::{self, await_told, check_others};

const INTERNAL: i64 = -32603;

/// A host with all groups and `faulty`, whose calls may take a second, and a gate for them; `rest` belongs to its section.
fn start(rest: &str) -> (Host, Gate) {
    faults::start_with_gate(&format!("deadline_seconds = 1\n{rest}"))
}

/// Calls a method that waits at a gate, so many times at once, from clients that go away when all have come there.
fn abandon(host: &Host, gate: &Gate, method: &str, count: usize) -> Vec<Waiting> {
    let body = json!({"method": method, "params": [gate.address()], "id": 1}).to_string();
    let calls: Vec<_> = (0..count).map(|_| host.client().begin(&body)).collect();
    let waiting = (0..count).map(|_| gate.wait()).collect();
    drop(calls);
    waiting
}

#[test]
fn held_up_calls_cost_only_the_plugin_its_threads() {
    let (host, gate) = start("");
    check_abandoned_calls(&host, &gate);
    check_long_calls(&host, &gate);
    check_releases(&host, &gate);
    check_inline_calls(&host, &gate);
}

/// Calls that were abandoned are found at their deadline.
fn check_abandoned_calls(host: &Host, gate: &Gate) {
    let mut client = host.client();
    let waiting = abandon(host, gate, "faultblocked", 5);
    await_told(&mut client, "stuck", &json!(5));
    assert_eq!(client.plugin("faulty")["state"], "stuck");
    check_others(&mut client);
    drop(waiting);
    await_told(&mut client, "stuck", &json!(0));
    assert_eq!(client.plugin("faulty")["state"], "running");
    client.call("faultwho", json!([]));
}

/// An inline method holds no connection up.
fn check_inline_calls(host: &Host, gate: &Gate) {
    let mut client = host.client();
    // More than there are threads that serve connections on most machines.
    let waiting = abandon(host, gate, "faultquick", 5);
    check_others(&mut client);
    let (code, message) = client.refused("faultquick", json!([gate.address()]));
    assert_eq!((code, message.as_str()), (INTERNAL, "faultquick was not answered within 1 s"));
    check_others(&mut client);
    drop((waiting, gate.wait()));
    await_told(&mut client, "state", &json!("running"));
}

#[test]
fn held_up_inline_method_of_a_trusted_plugin_takes_one_thread_and_only_once() {
    let (host, gate) = start("trusted = true\n");
    let mut client = host.client();
    // It has a connection by now, which the next one does not share a thread with.
    check_others(&mut client);
    let waiting = abandon(&host, &gate, "faultquick", 1);
    await_told(&mut client, "stuck", &json!(1));
    // Further calls of the plugin leave such threads alone, and new connections go to those that are free.
    let further = abandon(&host, &gate, "faultquick", 5);
    for _ in 0..10 {
        check_others(&mut host.client());
    }
    drop((waiting, further));
    await_told(&mut client, "state", &json!("running"));
}

/// Long-running calls have their threads replaced, and are answered.
fn check_long_calls(host: &Host, gate: &Gate) {
    let mut client = host.client();
    let body = json!({"method": "faultlong", "params": [gate.address()], "id": 1}).to_string();
    let calls: Vec<_> = (0..6).map(|_| host.client().begin(&body)).collect();
    let waiting: Vec<_> = (0..6).map(|_| gate.wait()).collect();
    await_told(&mut client, "long_calls", &json!(6));
    // Their threads were replaced: the plugin itself has its whole share again.
    client.call("faultwho", json!([]));
    assert_eq!(client.plugin("faulty")["state"], "running");
    check_others(&mut client);
    drop(waiting);
    for call in calls {
        assert_eq!(call.finish().status, 200);
    }
    await_told(&mut client, "long_calls", &json!(0));
}

#[test]
fn held_up_cancellation_is_told_as_stuck() {
    let (gate, kept) = (Gate::new(), Gate::new());
    let option = format!("options = {{ gate_cancel = \"{}\" }}\n", gate.address());
    let host = faults::start(&format!("deadline_seconds = 1\n{}{option}", Gate::reach(&[&gate, &kept])));
    let mut client = host.client();
    let body = json!({"method": "faultlate", "params": [kept.address()], "id": 1}).to_string();
    let call = host.client().begin(&body);
    let answering = kept.wait();
    drop(call);
    let waiting = gate.wait();
    await_told(&mut client, "state", &json!("stuck"));
    check_others(&mut client);
    drop((waiting, answering));
    await_told(&mut client, "state", &json!("running"));
}

/// The release of an answer may be held up, too.
fn check_releases(host: &Host, gate: &Gate) {
    let mut client = host.client();
    for _ in 0..5 {
        assert_eq!(client.call("faultunreleased", json!([gate.address()])), json!(1));
    }
    let waiting: Vec<_> = (0..5).map(|_| gate.wait()).collect();
    await_told(&mut client, "stuck", &json!(5));
    check_others(&mut client);
    drop(waiting);
    await_told(&mut client, "stuck", &json!(0));
}

#[test]
fn reloadplugin_that_is_long_in_making_an_instance_holds_up_no_call() {
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
    // A host that is told to stop does so, though a plugin is being made.
    let _reload = host.client().begin(r#"{"method":"reloadplugin","params":["faulty"],"id":1}"#);
    let waiting = gate.wait();
    let mut host = host;
    assert!(host.terminate().success());
    drop(waiting);
}
