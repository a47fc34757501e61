//! A plugin whose code does not return holds up its own callers and nobody else, and `listplugins` shows it.

use outrigger_tests::{Gate, Host, HostOptions, Waiting, all_groups, built, isolated, skip};
use serde_json::{Value, json};

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
fn held_up_calls_that_were_abandoned_are_found_at_their_deadline() {
    let (host, gate) = start("");
    let mut client = host.client();
    let waiting = abandon(&host, &gate, "faultblocked", 5);
    await_told(&mut client, "stuck", &json!(5));
    assert_eq!(client.plugin("faulty")["state"], "stuck");
    check_others(&mut client);
    drop(waiting);
    await_told(&mut client, "stuck", &json!(0));
    assert_eq!(client.plugin("faulty")["state"], "running");
    client.call("faultwho", json!([]));
}

#[test]
fn held_up_inline_method_holds_no_connection_up() {
    let (host, gate) = start("");
    let mut client = host.client();
    // More than there are threads that serve connections on most machines.
    let waiting = abandon(&host, &gate, "faultquick", 5);
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

#[test]
fn held_up_long_running_calls_have_their_threads_replaced_and_are_answered() {
    let (host, gate) = start("");
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

#[test]
fn held_up_release_of_an_answer_costs_only_the_plugin_its_threads() {
    let (host, gate) = start("");
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
fn plugin_answers_that_are_long_and_no_json_reach_nobody() {
    let host = faults::start("");
    let mut client = host.client();
    for method in ["faultbraces", "faultinject"] {
        let broken = (INTERNAL, "The plugin's answer is not JSON".to_owned());
        assert_eq!(client.refused(method, json!([])), broken, "{method}");
        let batch = json!([
            {"method": "getblockcount", "id": 1}, {"method": method, "id": 2}, {"method": "getblockcount", "id": 3}
        ]);
        let answer: Value = serde_json::from_str(&client.post(&batch.to_string()).body).unwrap();
        let told: Vec<_> = answer.as_array().unwrap().iter().map(|one| (&one["id"], &one["error"]["code"])).collect();
        assert_eq!(told, [(&json!(1), &Value::Null), (&json!(2), &json!(INTERNAL)), (&json!(3), &Value::Null)]);
    }
    assert_eq!(client.plugin("faulty")["errors"], 4);
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
