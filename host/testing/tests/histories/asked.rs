//! Runs the history plugin on the wallet engine, in the test's process and without a network.

use outrigger_history::HistoryPlugin;
use outrigger_scripted_node::ScriptedNode;
use outrigger_sdk::testing::TestPlugin;
use outrigger_testing::TestHost;
use serde_json::{Value, json};

use super::world::WALLET;

pub struct Asked(TestPlugin<HistoryPlugin>);

impl Asked {
    pub fn of(host: &TestHost<ScriptedNode>) -> Self {
        Self(host.start(json!({})))
    }

    /// The answer as the client reads it, or the error's message.
    pub fn call(&self, method: &str, arguments: Value) -> Result<String, String> {
        let call = self.0.begin_for(Some(WALLET), method, arguments);
        let answer = call.json().unwrap_or_else(|| panic!("{method} gave no answer"));
        answer.map_err(|error| error.message)
    }
}
