//! A plugin that takes all the resources it can get: the host limits it, and still answers other calls.

use outrigger_tests::{Client, Host, wait_until};
use serde_json::{Value, json};

use super::alone;
use crate::operator::logged_with;

/// The plugin's limits in these tests.
const BOUNDS: &str = "sandbox = \"best-effort\"\nmax_memory_mib = 200\nmax_threads = 100\ndeadline_seconds = 2\n";

/// The lines of a flood.
const LINES: u64 = 100_000;

/// Checks that the call ends the plugin's process, and for which reason.
fn ends(client: &mut Client, method: &str, arguments: Value, reason: &str) {
    let (code, message) = client.refused(method, arguments);
    assert_eq!((code, message.as_str()), (-32603, "The plugin 'hostile' crashed"), "{method}");
    // The next call waits for the new process.
    client.call("hostilenothing", json!([]));
    assert_eq!(client.plugin("hostile")["last_crash"]["ending"], json!(reason), "{method}");
}

#[test]
fn host_kills_a_greedy_plugin_over_its_limits_and_truncates_a_flood_of_lines() {
    let options = alone(&BOUNDS.replace("deadline_seconds = 2", "deadline_seconds = 60"));
    let (host, log) = logged_with(options.and(&["rpc.call_deadline_seconds=60"]));
    let mut client = host.client();
    let bounded = client.call("hostilememory", json!([20]));
    assert!(bounded.as_u64().unwrap() > 0);
    ends(&mut client, "hostilememory", json!([10_000]), "it used more memory than max_memory_mib");
    // Page tables of 800 MiB for a mapping that takes no memory itself.
    ends(&mut client, "hostiletables", json!([400]), "it used more memory than max_memory_mib");
    ends(&mut client, "hostilethreads", json!([10_000]), "it started more threads than max_threads");
    client.call("getrpcinfo", json!([]));

    client.call("hostileflood", json!([LINES]));
    let lines = || log().lines().filter(|line| line.contains("of a flood")).count();
    wait_until("some of it is in the log", || lines() > 0);
    client.call("hostilenothing", json!([]));
    assert!((lines() as u64) < LINES / 10, "{} lines", lines());
}

#[test]
fn greedy_plugin_that_computes_for_ever_does_not_block_others() {
    let host = Host::start_with(alone(BOUNDS));
    let spinning: Vec<_> = (0..3)
        .map(|_| {
            let mut client = host.client();
            std::thread::spawn(move || client.refused("hostilespin", json!([])))
        })
        .collect();
    let mut client = host.client();
    while !spinning.iter().all(std::thread::JoinHandle::is_finished) {
        client.call("uptime", json!([]));
    }
    // Ended by the deadline, or with the process when it had too many threads.
    spinning.into_iter().for_each(|call| assert_eq!(call.join().unwrap().0, -32603));
}
