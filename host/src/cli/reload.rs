//! `outrigger reload`: has a running host read its configuration again.

use std::process::ExitCode;

use serde_json::Value;

use super::call::place::HostAt;
use super::{EXIT_BAD_CONFIGURATION, EXIT_FAILED, refused, show};

/// Asks the host, and prints the changes, or the reason for a refusal.
pub fn reload(host: &HostAt) -> ExitCode {
    match host.connect(None, None).and_then(|connection| connection.call("reload", "[]")) {
        Ok(reply) if reply["error"].is_null() => show(&changes(&reply["result"])),
        Ok(reply) => {
            refused(&reply["error"]["message"].as_str().unwrap_or("the host did not say why"), EXIT_BAD_CONFIGURATION)
        }
        Err(error) => refused(&error, EXIT_FAILED),
    }
}

fn changes(result: &Value) -> String {
    let lines = |key: &str| result[key].as_array().into_iter().flatten().filter_map(Value::as_str);
    let restart = lines("restart").map(|setting| format!("{setting}: needs a restart"));
    let all: Vec<String> = lines("changes").map(str::to_owned).chain(restart).collect();
    if all.is_empty() { "no changes".to_owned() } else { all.join("\n") }
}
