//! A process that sends messages which no runner sends is ended, and its calls are answered.

use outrigger_tests::{Client, Host};
use serde_json::{Value, json};

use super::alone;

/// The most by which the host's memory may grow meanwhile, in bytes.
const GROWTH: u64 = 64 << 20;

/// A call that lies in this way is answered, and the next one waits for another process.
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

/// Lies in these ways, one after the other, and what they cost the host stays bounded.
fn all_lie(host: &Host, ways: &[&str]) {
    let mut client = host.client();
    client.call("hostilenothing", json!([]));
    let before = host.peak_memory();
    for how in ways {
        let (no_end, not_so) = ("a message that it did not finish", "an invalid message");
        let endings: &[&str] = match *how {
            "length" => &[no_end],
            // The function of an earlier call may return after it: its message is no whole one then.
            "half" | "part" => &[no_end, not_so],
            _ => &[not_so],
        };
        lies(&mut client, how, endings);
    }
    let most = host.peak_memory();
    assert!(most <= before + GROWTH, "{most} bytes after {before}");
}

#[test]
fn liar_that_sends_an_impossible_message_or_pauses_within_one_or_closes_its_channels_is_ended() {
    for more in ["", "trusted = true\n"] {
        // Its calls have no deadline: without the host's check the lying call is never answered.
        let host = Host::start_with(alone(&format!("sandbox = \"none\"\ndeadline_seconds = 0\n{more}")));
        all_lie(&host, &["kind", "turn", "token", "length", "half", "part"]);
        if more.is_empty() {
            // Without its host it ends by itself.
            lies(&mut host.client(), "closed", &["exit code 0"]);
        }
    }
}
