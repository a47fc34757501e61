//! The host ends a plugin process that sends messages which no runner sends, and answers its calls.

use outrigger_tests::{Client, Host};
use serde_json::{Value, json};

use super::alone;

/// The allowed growth of the host's memory meanwhile, in bytes.
const GROWTH: u64 = 64 << 20;

/// Checks that the host answers the call that breaks the protocol in this way; the next call waits for the new process.
fn lies(client: &mut Client, how: &str, endings: &[&str]) {
    let before = client.plugin("hostile")["crashes"].as_u64().unwrap();
    let answered = client.refused("hostilelie", json!([how]));
    assert_eq!(answered, (-32603, "The plugin 'hostile' crashed".to_owned()), "{how}");
    assert_eq!(client.call("hostilenothing", json!([])), Value::Null);
    let told = client.plugin("hostile");
    assert_eq!(told["crashes"], before + 1, "{how}");
    assert!(endings.iter().any(|ending| told["last_crash"]["ending"] == *ending), "{how}: {told:#}");
    assert_eq!(told["last_crash"]["method"], "hostilelie", "{how}");
}

/// Breaks the protocol in each of these ways, and checks that the host's memory stays bounded.
fn all_lie(host: &Host, ways: &[&str]) {
    let mut client = host.client();
    client.call("hostilenothing", json!([]));
    let before = host.peak_memory();
    for how in ways {
        let (no_end, not_so) = ("a message that it did not finish", "an invalid message");
        let endings: &[&str] = match *how {
            "length" => &[no_end],
            // The function of an earlier call may return afterwards, so that its message is invalid.
            "half" | "part" => &[no_end, not_so],
            _ => &[not_so],
        };
        lies(&mut client, how, endings);
    }
    let most = host.peak_memory();
    assert!(most <= before + GROWTH, "{most} bytes after {before}");
}

#[test]
fn host_kills_a_plugin_process_that_breaks_the_message_protocol() {
    for more in ["", "trusted = true\n"] {
        // Calls have no deadline here: without the host's check this call would never get an answer.
        let host = Host::start_with(alone(&format!("sandbox = \"none\"\ndeadline_seconds = 0\n{more}")));
        all_lie(&host, &["kind", "turn", "token", "length", "half", "part"]);
        if more.is_empty() {
            // The process ends by itself once its channels to the host are closed.
            lies(&mut host.client(), "closed", &["exit code 0"]);
        }
    }
}
