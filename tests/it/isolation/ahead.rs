//! What an isolated plugin is told with a call is no older than the call.

use std::sync::atomic::{AtomicU64, Ordering};

use outrigger_tests::{Host, HostOptions};
use serde_json::{Value, json};

use super::has_sandbox;

const ADDRESS: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";

/// How many blocks are mined, and how many clients ask meanwhile.
const BLOCKS: u64 = 150;
const CLIENTS: usize = 3;

#[test]
fn tip_that_comes_with_a_call_is_no_older_than_what_any_client_was_shown_before() {
    if !has_sandbox() {
        return;
    }
    let set = vec!["plugin_defaults.isolated='all'".to_owned()];
    let host = Host::start_with(HostOptions { set, ..HostOptions::default() });
    // The highest block that a client has seen.
    let shown = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = host.client();
                while shown.load(Ordering::SeqCst) < BLOCKS {
                    let before = shown.load(Ordering::SeqCst);
                    let height = client.call("getblockcount", json!([])).as_u64().unwrap();
                    assert!(height >= before, "{height} after {before}");
                    shown.fetch_max(height, Ordering::SeqCst);
                }
            });
        }
        let mut miner = host.client();
        for height in 1..=BLOCKS {
            let mined: Value = miner.call("generatetoaddress", json!([1, ADDRESS]));
            let shown_before = shown.fetch_max(height, Ordering::SeqCst);
            assert!(shown_before <= height, "a client has seen {shown_before} when {height} was mined");
            assert_eq!(miner.call("getbestblockhash", json!([])), mined[0]);
            assert_eq!(miner.call("getblockcount", json!([])), json!(height));
        }
    });
}
