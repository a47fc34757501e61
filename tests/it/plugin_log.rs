//! Reports on plugins to the operator: failures to open them, actions on them, and discarded answers.

use std::process::Command;

use outrigger_tests::{CPlugin, Gate, Host, HostOptions, built, c_plugin, wait_for};
use serde_json::{Value, json};

use crate::abi::source_of_the_c_page;
use crate::operator::logged_with;

const INTERNAL: i64 = -32603;

/// The plugin of the C author's page, with `old` replaced by `new`.
fn c_page(old: &str, new: &str) -> CPlugin {
    let source = source_of_the_c_page();
    assert!(source.contains(old), "{old}");
    c_plugin(&source.replacen(old, new, 1))
}

/// The error of a host that cannot start with this plugin as its only one.
fn refusal(plugin: &CPlugin) -> String {
    Host::refused(&plugin.options("", "grants = [\"chain/1\"]\n"))
}

#[test]
fn host_refuses_a_plugin_file_that_cannot_be_linked_with_the_linkers_reason() {
    let create = "static void *create(void) {";
    let plugin = c_page(create, &format!("extern void outrigger_nowhere(void);\n{create} outrigger_nowhere();"));
    let error = refusal(&plugin);
    assert!(error.contains("cannot be opened: ") && error.contains("undefined symbol: outrigger_nowhere"), "{error}");
    let checked = Command::new(&built().binary).args(["plugin", "check"]).arg(plugin.library()).output().unwrap();
    let report = String::from_utf8(checked.stdout).unwrap();
    assert!(!checked.status.success() && report.contains("undefined symbol: outrigger_nowhere"), "{report}");
}

#[test]
fn plugin_with_a_method_of_the_host_is_refused() {
    for method in ["stop", "rpc.discover", "generate"] {
        let plugin = c_page(
            "{\\\"name\\\": \\\"hello\\\", \\\"category\\\"",
            &format!("{{\\\"name\\\": \\\"{method}\\\", \\\"category\\\""),
        );
        let error = refusal(&plugin);
        let expected = format!("the method '{method}' is reserved for the host; 'hello' cannot have it");
        assert!(error.contains(&expected) && !error.contains("[routes]"), "{error}");
    }
}

/// The configuration of `faulty` alone; `rest` is added to its section.
fn faulty(rest: &str) -> HostOptions {
    let rest = format!("grants = [\"chain/1\", \"log/1\"]\n{rest}");
    HostOptions::with_plugin("", built().library("outrigger_faulty"), &rest)
}

/// A host with `faulty` alone, and its log as JSON.
struct Logged {
    host: Host,
    log: Box<dyn Fn() -> String>,
}

impl Logged {
    fn start(rest: &str) -> Self {
        Self::start_at("info", rest)
    }

    fn start_at(level: &str, rest: &str) -> Self {
        let (host, log) = logged_with(faulty(rest).and(&["log.format=json", &format!("log.level={level}")]));
        Self { host, log: Box::new(log) }
    }

    /// Replaces the configuration.
    fn configure(&self, rest: &str) {
        std::fs::copy(faulty(rest).config_file().path(), self.host.config_file().path()).unwrap();
    }

    /// The log's lines so far with this message.
    fn whole_lines(&self, message: &str) -> Vec<Value> {
        let text = (self.log)();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let lines = whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["fields"]["message"].as_str().is_some_and(|told| told.contains(message))).collect()
    }

    /// The fields of these lines.
    fn lines(&self, message: &str) -> Vec<Value> {
        self.whole_lines(message).into_iter().map(|line| line["fields"].clone()).collect()
    }

    /// Waits for the log's only line with this message.
    fn line(&self, message: &str) -> Value {
        wait_for(&format!("one line of the log says: {message}"), || match self.lines(message).as_slice() {
            [line] => Some(line.clone()),
            _ => None,
        })
    }
}

#[test]
fn plugin_log_has_one_line_for_each_start_stop_and_reload() {
    let mut logged = Logged::start("");
    let mut client = logged.host.client();
    let hash = client.call("listplugins", json!([]))[0]["hash"].clone();
    let check = |line: &Value, asked_by: &str| {
        let told = [&line["plugin"], &line["version"], &line["hash"], &line["asked_by"]];
        assert_eq!(told, [&json!("faulty"), &json!("0.1.0"), &hash, &json!(asked_by)], "{line}");
    };
    let check_failed = |line: &Value| {
        let told = (&line["plugin"], &line["asked_by"]);
        assert_eq!(told, (&json!("faulty"), &json!("the user __cookie__")), "{line}");
    };
    check(&logged.line("started the plugin"), "the configuration");
    client.call("reloadplugin", json!(["faulty"]));
    check(&logged.line("reloaded the plugin"), "the user __cookie__");
    logged.configure("options = { refuse_init = true }\n");
    client.refused("reloadplugin", json!(["faulty"]));
    let failed = logged.line("the plugin was not reloaded; the old instance continues");
    check_failed(&failed);
    assert_eq!(failed["reason"], json!("plugin 'faulty' refused to start: refuse_init was asked for"));
    client.call("stopplugin", json!(["faulty"]));
    check(&logged.line("stopped the plugin"), "the user __cookie__");
    client.refused("stopplugin", json!(["faulty"]));
    check_failed(&logged.line("the plugin was not stopped"));
    client.refused("startplugin", json!(["faulty"]));
    check_failed(&logged.line("the plugin was not started"));
    client.refused("startplugin", json!(["nosuch\nplugin"]));
    let unknown = &logged.lines("the plugin was not started")[1];
    assert_eq!(unknown["plugin"], "nosuch\\nplugin");
    logged.configure("");
    client.call("startplugin", json!(["faulty"]));
    check(&logged.lines("started the plugin")[1], "the user __cookie__");
    assert!(logged.host.terminate().success());
    check(&logged.lines("stopped the plugin")[1], "the host, which stops");
}

#[test]
fn plugin_log_has_a_panics_call_and_restart_and_its_text_unless_the_plugin_may_hold_secrets() {
    let logged = Logged::start_at("debug", "");
    let config = logged.host.config_file();
    let text = std::fs::read_to_string(config.path()).unwrap();
    let mut client = logged.host.client();
    let call = json!({"id": "a\nb", "method": "faultpanic", "params": []}).to_string();
    for (at, (grants, has_text)) in [
        ("\"log/1\"]", true),
        ("\"log/1\", \"wallet-keys/1\"]", false),
        ("\"log/1\", \"wallet-keys/1\"]\npanic_text = true", true),
    ]
    .into_iter()
    .enumerate()
    {
        std::fs::write(config.path(), text.replace("\"log/1\"]", grants)).unwrap();
        client.call("reloadplugin", json!(["faulty"]));
        client.post(&call);
        let next = |message: &str| wait_for(message, || logged.lines(message).get(at).cloned());
        let restart = next("started the plugin again");
        assert_eq!((&restart["plugin"], &restart["asked_by"]), (&json!("faulty"), &json!("the host, after a fault")));
        let line = next("panic at ");
        let message = line["message"].as_str().unwrap();
        assert!(line["plugin"] == "faulty" && message.contains("lib.rs:"), "{line}");
        assert_eq!(message.ends_with(": faultpanic was called"), has_text, "{grants}: {message}");
        assert_eq!(message.contains("called"), has_text, "{grants}: {message}");
    }
    let of_call = |line: &Value| line["span"]["method"] == "faultpanic";
    let messages = ["call", "panic at "].map(|message| logged.whole_lines(message).into_iter().find(of_call));
    for line in messages {
        let span = json!({"name": "call", "id": "\"a\\nb\"", "method": "faultpanic", "user": "__cookie__"});
        assert_eq!(line.unwrap()["span"], span);
    }
}

#[test]
fn plugin_log_names_the_method_of_bad_second_and_late_answers() {
    let gate = Gate::new();
    let logged = Logged::start(&format!("deadline_seconds = 1\n{}", Gate::reach(&[&gate])));
    let mut client = logged.host.client();
    client.refused("faultgarbage", json!([]));
    let bad = logged.line("the plugin's answer was refused");
    let told = (&bad["plugin"], &bad["method"], &bad["reason"]);
    assert_eq!(told, (&json!("faulty"), &json!("faultgarbage"), &json!("The plugin's answer is not JSON on one line")));
    client.call("faulttwice", json!([]));
    let second = logged.line("a second answer was dropped: the call was answered before");
    assert_eq!((&second["plugin"], &second["method"]), (&json!("faulty"), &json!("faulttwice")));
    client.refused("faultlate", json!([gate.address()]));
    let missed = logged.line("a call was not answered by its deadline");
    assert_eq!((&missed["plugin"], &missed["method"]), (&json!("faulty"), &json!("faultlate")));
    drop(gate.wait());
    let late = logged.line("an answer came late and was dropped: its deadline had passed");
    assert_eq!((&late["plugin"], &late["method"]), (&json!("faulty"), &json!("faultlate")));
    client.refused("faultblocked", json!([gate.address()]));
    let stuck = logged.line("a call has not returned by its deadline");
    assert_eq!((&stuck["plugin"], &stuck["method"]), (&json!("faulty"), &json!("faultblocked")));
    drop(gate.wait());
}

#[test]
fn plugin_answer_longer_than_max_answer_bytes_is_an_error() {
    let logged = Logged::start("max_answer_bytes = 65536\n");
    let mut client = logged.host.client();
    let too_long =
        "The plugin's answer is too long: it has 70000 bytes, and at most 65536 are allowed (max_answer_bytes)";
    assert_eq!(client.refused("faultbraces", json!([])), (INTERNAL, too_long.to_owned()));
    assert_eq!(logged.line("the plugin's answer was refused")["method"], json!("faultbraces"));
    logged.configure("max_answer_bytes = 65536\ntrusted = true\n");
    client.call("reloadplugin", json!(["faulty"]));
    let answer = client.post(r#"{"method": "faultbraces", "params": [], "id": 1}"#);
    assert!(answer.body.len() > 70_000, "what is trusted is sent as it is");
}
