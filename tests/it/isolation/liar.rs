//! A process that says on its lanes what no runner says is ended, and its calls are answered.

use outrigger_tests::{Client, Host, wait_until};
use serde_json::{Value, json};

use super::{alone, hostile, process};

/// The most by which the host's memory may grow meanwhile, in KiB.
const GROWTH: u64 = 64 << 10;

/// A call that lies in this way is answered, and the next one waits for another process.
fn lies(client: &mut Client, how: &str, endings: &[&str]) {
    let before = hostile(client)["crashes"].as_u64().unwrap();
    let answered = client.refused("hostilelie", json!([how]));
    assert_eq!(answered, (-32603, "The plugin 'hostile' crashed".to_owned()), "{how}");
    assert_eq!(client.call("hostilenothing", json!([])), Value::Null);
    let told = hostile(client);
    assert_eq!(told["crashes"], before + 1, "{how}");
    assert!(endings.iter().any(|ending| told["last_crash"]["ending"] == *ending), "{how}: {told:#}");
    assert_eq!(told["last_crash"]["method"], "hostilelie", "{how}");
}

/// The most memory that the host has used, in KiB.
fn memory(host: &Host) -> u64 {
    let status = std::fs::read_to_string(process(host.process_id()).join("status")).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    most.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A host whose calls have no deadline: what is not answered for its lie is not answered at all. Only out of a sandbox it finds the
/// memory that it shares with the host.
fn start(transport: &str, more: &str) -> Host {
    let (_config, mut options) = alone(&format!("sandbox = \"none\"\ndeadline_seconds = 0\n{more}"));
    options.set.push(format!("plugin_defaults.transport='{transport}'"));
    Host::start_with(options)
}

/// Lies in these ways, one after the other, and what they cost the host stays bounded.
fn all_lie(host: &Host, ways: &[&str]) {
    let mut client = host.client();
    client.call("hostilenothing", json!([]));
    let before = memory(host);
    for how in ways {
        let (no_end, not_so) = ("a message without an end", "a message that may not be");
        let endings: &[&str] = match *how {
            "length" => &[no_end],
            // The function of an earlier call may return after it: its message is no whole one then.
            "half" | "part" => &[no_end, not_so],
            _ => &[not_so],
        };
        lies(&mut client, how, endings);
    }
    assert!(memory(host) - before <= GROWTH, "{} KiB after {before}", memory(host));
}

#[test]
fn liar_that_says_what_cannot_be_or_falls_silent_within_a_message_is_ended() {
    for more in ["", "trusted = true\n"] {
        let host = start("memory", more);
        all_lie(&host, &["count", "kind", "turn", "token", "length", "word"]);
    }
}

#[test]
fn liar_that_says_what_cannot_be_or_falls_silent_within_a_message_is_ended_on_sockets() {
    let host = start("socket", "");
    all_lie(&host, &["kind", "turn", "token", "length", "half", "part", "word"]);
}

#[test]
fn liar_that_moves_sleeping_threads_of_its_host_elsewhere_keeps_none() {
    let host = start("memory", "");
    let mut client = host.client();
    client.call("hostilenothing", json!([]));
    let threads = || std::fs::read_dir(process(host.process_id()).join("task")).unwrap().count();
    let mut lie = |times: usize| (0..times).for_each(|_| lies(&mut client, "asleep", &["SIGABRT"]));
    // The host starts threads as they are needed.
    lie(2);
    let before = threads();
    lie(5);
    wait_until("the threads that served former processes are gone", || threads() <= before);
}

#[test]
fn liar_that_closes_its_lanes_is_ended() {
    let host = start("socket", "");
    // Without its host it ends by itself.
    lies(&mut host.client(), "closed", &["exit code 0"]);
}
