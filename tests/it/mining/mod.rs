//! The mining group: getblocktemplate, submitblock and related methods.

mod blocks;
mod long_polls;
mod templates;

use bitcoin::ScriptBuf;
use outrigger_tests::Client;
use serde_json::{Value, json};

fn request() -> Value {
    json!([{"rules": ["segwit"], "capabilities": ["coinbasetxn", "coinbasevalue", "longpoll", "workid"]}])
}

fn anyone() -> ScriptBuf {
    ScriptBuf::from_bytes(vec![0x51])
}

/// The number of calls that the group has answered or keeps.
fn calls_of_mining(client: &mut Client) -> u64 {
    client.plugin("mining")["calls"].as_u64().unwrap()
}
