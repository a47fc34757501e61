//! Inline calls of an isolated plugin, which one network thread runs one after another: the host answers each, and a crash loses only the
//! call in progress.

use std::io::{BufReader, Write};
use std::net::TcpStream;

use outrigger_tests::{Client, Gate, Host, HostOptions, all_groups, built, next_reply};
use serde_json::{Value, json};

use super::process;
use crate::faults::await_told;

/// A host with plugins in processes of their own and inline methods on the threads that serve connections.
fn start(gate: &Gate) -> Host {
    let rest = format!(
        "trusted = true\nsandbox = \"best-effort\"\ngrants = [\"chain/1\", \"log/1\"]\n{}",
        Gate::reach(&[gate])
    );
    let options = HostOptions::with_plugin(&all_groups(), built().library("outrigger_faulty"), &rest);
    Host::start_with(options.and(&["plugin_defaults.isolated='all'"]))
}

/// Connections on one thread of the host, which waits at the gate in the call of the first connection.
struct Held(Vec<BufReader<TcpStream>>);

impl Held {
    /// Opens `count` further connections.
    fn new(host: &Host, gate: &Gate, count: usize) -> Self {
        let client = host.client();
        let tasks = process(host.process_id()).join("task");
        let is_network = |task: &std::path::Path| {
            std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim_end() == "network")
        };
        let threads =
            std::fs::read_dir(tasks).unwrap().filter(|task| is_network(&task.as_ref().unwrap().path())).count();
        // The host gives a connection to the thread with the fewest, so every `threads`-th connection is on the same thread.
        let all = (0..=count * threads).map(|_| {
            let mut one = BufReader::new(client.connect());
            ask(&client, &mut one, &json!({"id": 0, "method": "uptime", "params": []}));
            assert!(answer(&mut one)["error"].is_null());
            one
        });
        let all: Vec<_> = all.collect();
        let mut held = Self(all.into_iter().step_by(threads).collect());
        ask(&client, &mut held.0[0], &json!({"id": 0, "method": "faultquick", "params": [gate.address()]}));
        held
    }

    /// The answers to these calls, one on each connection, once the thread continues.
    fn answers(mut self, client: &Client, gate: &Gate, calls: &[(&str, Value)]) -> Vec<Value> {
        let waiting = gate.wait();
        for (connection, (method, params)) in self.0.iter_mut().skip(1).zip(calls) {
            ask(client, connection, &json!({"id": 1, "method": method, "params": params}));
        }
        drop(waiting);
        let answers: Vec<Value> = self.0.iter_mut().take(calls.len() + 1).map(answer).collect();
        assert!(answers[0]["error"].is_null(), "{}", answers[0]);
        answers[1..].to_vec()
    }
}

fn ask(client: &Client, connection: &mut BufReader<TcpStream>, body: &Value) {
    connection.get_mut().write_all(client.request(&body.to_string()).as_bytes()).unwrap();
}

fn answer(connection: &mut BufReader<TcpStream>) -> Value {
    serde_json::from_str(&next_reply(connection).unwrap().body).unwrap()
}

#[test]
fn host_answers_every_inline_call_that_one_thread_has_read() {
    let gate = Gate::new();
    let host = start(&gate);
    let mut client = host.client();
    let best = client.call("getbestblockhash", json!([]));
    // Methods of several plugins, with and without calls to the host, some of which fail.
    let of_five = |_| {
        [
            (("getblockhash", json!([0])), Ok(best.clone())),
            (("faultwho", json!([])), Ok(Value::Null)),
            (("getblockhash", json!([1])), Err(-8)),
            (("getblockcount", json!([])), Ok(json!(0))),
            (("getrawtransaction", json!(["00"])), Err(-8)),
        ]
    };
    let (calls, expected): (Vec<_>, Vec<_>) = (0..9).flat_map(of_five).unzip();
    let held = Held::new(&host, &gate, calls.len());
    let answers = held.answers(&client, &gate, &calls);
    for ((answer, call), expected) in answers.iter().zip(&calls).zip(expected) {
        match expected {
            Ok(Value::Null) => assert_eq!(answer["result"]["instance"], 1, "{call:?}: {answer}"),
            Ok(result) => assert_eq!(answer["result"], result, "{call:?}"),
            Err(code) => assert_eq!(answer["error"]["code"], code, "{call:?}"),
        }
    }
    assert_eq!(client.plugin("faulty")["crashes"], 0);
}

#[test]
fn crash_loses_no_inline_call_answered_before_it_or_waiting_behind_it() {
    let gate = Gate::new();
    let host = start(&gate);
    let client = host.client();
    let (quick, ends) = (("faultwho", json!([])), ("faultabort", json!([])));
    // The thread takes them in any order. Few calls come before a crash: a method that was slow three times runs on the pool, beside it.
    let calls = [&quick, &ends, &quick, &ends, &quick].map(Clone::clone);
    let held = Held::new(&host, &gate, calls.len());
    let answers = held.answers(&client, &gate, &calls);
    for (answer, (method, _)) in answers.iter().zip(&calls) {
        let crashed = json!({"code": -32603, "message": "The plugin 'faulty' crashed"});
        let expected = if *method == "faultabort" { crashed } else { Value::Null };
        assert_eq!(answer["error"], expected, "{method}: {answers:#?}");
    }
    // Each ran once: a new process ran the calls that the crashed one had not begun.
    let firsts = answers.iter().filter(|answer| answer["result"]["calls"] == 1).count();
    assert!((1..=2).contains(&firsts), "{answers:#?}");
    let mut client = host.client();
    // The last answer may come before the process has ended.
    await_told(&mut client, "crashes", &json!(2));
    assert_eq!(client.plugin("faulty")["last_crash"]["method"], "faultabort");
}
