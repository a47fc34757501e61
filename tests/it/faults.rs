//! A plugin's faults affect only the plugin: its caller gets an error, the host and other plugins continue, and
//! `listplugins` reports the fault.

use outrigger_tests::{
    Client, Gate, Host, HostOptions, NOBODY, Pending, Waiting, all_groups, built, isolated, wait_until,
};
use serde_json::{Value, json};

/// A host with all groups and `faulty`; `rest` belongs to its section.
pub fn start(rest: &str) -> Host {
    let rest = format!("grants = [\"chain/1\", \"wallet-read/1\", \"log/1\"]\n{rest}");
    Host::start_with(HostOptions::with_plugin(&all_groups(), built().library("outrigger_faulty"), &rest))
}

/// The same with a gate that the plugin can also reach from a separate process.
pub fn start_with_gate(rest: &str) -> (Host, Gate) {
    let gate = Gate::new();
    (start(&(Gate::reach(&[&gate]) + rest)), gate)
}

/// Blocks all threads that one plugin may use; returns the calls and the handles that release them.
pub fn block_all_threads(host: &Host, gate: &Gate) -> (Vec<Pending>, Vec<Waiting>) {
    /// A plugin's share of the eight threads.
    const SHARE: usize = 6;
    let block = |_| host.client().begin_call("faultblocked", json!([gate.address()]));
    ((0..SHARE).map(block).collect(), (0..SHARE).map(|_| gate.wait()).collect())
}

/// Waits until `listplugins` shows this value for the plugin.
#[track_caller]
pub fn await_told(client: &mut Client, key: &str, value: &Value) {
    wait_until(&format!("{key} of the plugin is {value}"), || client.plugin("faulty")[key] == *value);
}

/// Checks that the other plugins answer calls that use their services.
#[track_caller]
pub fn check_others(client: &mut Client) {
    client.call("getblockchaininfo", json!([]));
    client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
    client.call("listwallets", json!([]));
    assert_eq!(client.refused("signrawtransactionwithkey", json!(["00", []])).0, -22);
}

const INTERNAL: i64 = -32603;

/// The number of an instance, which the library counts per process.
pub fn instance(number: u64) -> Value {
    json!(if isolated() { 1 } else { number })
}

#[test]
fn panics_restart_the_plugin_until_it_is_unhealthy() {
    let host = start("");
    let mut client = host.client();
    assert_eq!(client.call("faultwho", json!([]))["instance"], json!(1));
    assert_eq!(client.refused("faultpanic", json!([])), (INTERNAL, "Internal error".into()));
    check_others(&mut client);
    // The new instance starts beside the old one; either may answer meanwhile.
    await_told(&mut client, "restarts", &json!(1));
    assert_eq!(client.call("faultwho", json!([]))["instance"], instance(2));
    let state = client.plugin("faulty");
    assert_eq!((&state["state"], &state["faults"], &state["restarts"]), (&json!("running"), &json!(1), &json!(1)));
    let fault = state["last_fault"].as_str().unwrap();
    assert!(fault.starts_with("the call of faultpanic returned status 18: the plugin panicked, "), "{fault}");
    for restarts in 2..=5 {
        client.refused("faultpanic", json!([]));
        await_told(&mut client, "restarts", &json!(restarts));
    }
    client.refused("faultpanic", json!([]));
    // The client may get its answer before the host records the fault.
    await_told(&mut client, "faults", &json!(6));
    assert_eq!(client.call("faultwho", json!([]))["instance"], instance(6));
    let state = client.plugin("faulty");
    assert_eq!((&state["state"], &state["faults"]), (&json!("unhealthy"), &json!(6)));
    check_others(&mut client);
    // With the call above, the plugin answers 16 calls after the last fault.
    for _ in 1..16 {
        assert_eq!(client.plugin("faulty")["state"], "unhealthy");
        client.call("faultwho", json!([]));
    }
    // The client gets the last answer before the host counts it towards recovery.
    await_told(&mut client, "state", &json!("running"));
    client.call("reloadplugin", json!(["faulty"]));
    assert_eq!(client.plugin("faulty")["last_fault"], Value::Null);
}

#[test]
fn each_call_of_a_plugin_is_counted_once_by_its_outcome() {
    let (host, gate) = start_with_gate("deadline_seconds = 1\n");
    let mut client = host.client();
    client.call("faultwho", json!([]));
    client.refused("faultgarbage", json!([]));
    // A call that panics; the host starts another instance.
    client.refused("faultpanic", json!([]));
    await_told(&mut client, "restarts", &json!(1));
    // A call that exceeds its deadline.
    let slow = host.client().begin_call("faultblocked", json!([gate.address()]));
    let waiting = gate.wait();
    slow.refused();
    drop(waiting);
    let counts =
        |state: &Value| ["calls", "answers", "errors", "timeouts", "gone"].map(|key| state[key].as_u64().unwrap());
    assert_eq!(counts(&client.plugin("faulty")), [4, 1, 2, 1, 0]);
    // A call whose client disconnects.
    let call = json!({"id": 1, "method": "faultblocked", "params": [gate.address()]}).to_string();
    let leaving = host.client().post_and_stay(&call);
    let waiting = gate.wait();
    drop(leaving);
    await_told(&mut client, "gone", &json!(1));
    drop(waiting);
    assert_eq!(counts(&client.plugin("faulty")), [5, 1, 2, 1, 1]);
}

#[test]
fn faults_in_answers_and_forged_tokens_reach_no_client() {
    let host = start("");
    let mut client = host.client();
    let no_json = (INTERNAL, "The plugin's answer is not JSON on one line".to_owned());
    assert_eq!(client.refused("faultdrop", json!([])), (INTERNAL, "The plugin gave no answer".into()));
    assert_eq!(client.refused("faultgarbage", json!([])), no_json);
    assert_eq!(client.refused("faultnewline", json!([])), no_json);
    assert_eq!(client.refused("faultempty", json!([])), (-1, String::new()));
    assert_eq!(client.refused("faultbadtext", json!([])), (-1, "\u{fffd}\u{fffd}".into()));
    assert_eq!(client.call("faulttwice", json!([])), json!(1));
    // The plugin gives a second answer after the first was sent.
    await_told(&mut client, "stale_answers", &json!(1));
    let state = client.plugin("faulty");
    assert_eq!((&state["errors"], &state["stale_answers"], &state["faults"]), (&json!(5), &json!(1), &json!(0)));
    // The host drops long answers that are not JSON, and answers the other calls of the batch.
    for method in ["faultbraces", "faultinject"] {
        assert_eq!(client.refused(method, json!([])), no_json, "{method}");
        let batch = json!([
            {"method": "getblockcount", "id": 1}, {"method": method, "id": 2}, {"method": "getblockcount", "id": 3}
        ]);
        let answer: Value = serde_json::from_str(&client.post(&batch.to_string()).body).unwrap();
        let told: Vec<_> = answer.as_array().unwrap().iter().map(|one| (&one["id"], &one["error"]["code"])).collect();
        assert_eq!(told, [(&json!(1), &Value::Null), (&json!(2), &json!(INTERNAL)), (&json!(3), &Value::Null)]);
    }
    assert_eq!(client.plugin("faulty")["errors"], 9);
    // A plugin cannot answer another plugin's call with a forged token.
    let template = client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
    let request = json!([{"rules": ["segwit"], "longpollid": template["longpollid"]}]);
    let poll = client.begin_call("getblocktemplate", request);
    wait_until("the long poll waits", || client.plugin("mining")["waiting"] == json!(1));
    const STALE: i64 = 1;
    for token in 1..100 {
        assert_eq!(client.call("faultforge", json!([token])), json!(STALE), "token {token}");
    }
    assert_eq!(client.plugin("mining")["waiting"], json!(1));
    client.call("generatetoaddress", json!([1, NOBODY]));
    assert_eq!(poll.answer()["result"]["height"], json!(2));
}

#[test]
fn endless_calls_are_answered_at_the_deadline_and_other_plugins_keep_their_threads() {
    let (host, gate) = start_with_gate("deadline_seconds = 1\n");
    let mut client = host.client();
    let late = |method: &str| (INTERNAL, format!("{method} was not answered within 1 s"));
    // A call that checks for cancellation ends.
    assert_eq!(client.refused("faultendless", json!([gate.address()])), late("faultendless"));
    gate.wait().gone();
    assert_eq!(client.refused("faultsilent", json!([])), late("faultsilent"));
    await_told(&mut client, "stuck", &json!(0));
    // A call that does not check keeps its thread.
    assert_eq!(client.refused("faultblocked", json!([gate.address()])), late("faultblocked"));
    let blocked = gate.wait();
    let state = client.plugin("faulty");
    assert_eq!((&state["state"], &state["stuck"], &state["timeouts"]), (&json!("stuck"), &json!(1), &json!(3)));
    check_others(&mut client);
    assert_eq!(client.call("faultwho", json!([]))["instance"], json!(1));
    drop(blocked);
    await_told(&mut client, "state", &json!("running"));
    // When calls block all threads of a plugin, the other plugins keep their threads.
    let (calls, blocked) = block_all_threads(&host, &gate);
    check_others(&mut client);
    for call in calls {
        assert_eq!(call.refused().0, INTERNAL);
    }
    // No thread returned, so the host starts another instance, or another process if isolated.
    await_told(&mut client, if isolated() { "crashes" } else { "restarts" }, &json!(1));
    assert_eq!(client.call("faultwho", json!([]))["instance"], instance(2));
    check_others(&mut client);
    drop(blocked);
}

#[test]
fn faults_at_the_start_name_the_plugin() {
    for (option, reason) in [
        ("refuse_init = true", "plugin 'faulty' refused to start: refuse_init was asked for"),
        ("panic_start = true", "plugin 'faulty' refused to start: status 18"),
    ] {
        let rest = format!("grants = [\"chain/1\", \"log/1\"]\noptions = {{ {option} }}\n");
        let error = Host::refused(&HostOptions::with_plugin("", built().library("outrigger_faulty"), &rest));
        assert!(error.contains(reason), "{option}: {error}");
        let line = error.lines().find(|line| line.contains("the plugin was not started")).unwrap_or_default();
        assert!(line.contains("faulty.so\" asked_by=\"the configuration\" reason=\""), "{error}");
    }
}

#[test]
fn faults_while_stopping_do_not_keep_the_host_running() {
    for option in ["panic_quiesce", "panic_stop", "block_stop"] {
        let mut host = start(&format!("options = {{ {option} = true }}\n"));
        assert!(host.terminate().success(), "{option}");
    }
}
