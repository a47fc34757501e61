//! Isolated plugins after an upgrade of the program.

use std::fs;

use outrigger_tests::{Host, wait_until};
use serde_json::json;

use super::Installed;

#[test]
fn isolated_plugin_restarts_after_the_program_was_replaced() {
    let installed = Installed::new(&[]);
    let host = Host::start_with(installed.options("", None, "sandbox = \"best-effort\"\n"));
    let mut client = host.client();
    client.call("hostilenothing", json!([]));
    let upgrade = installed.program().with_extension("new");
    fs::write(&upgrade, "of another version").unwrap();
    fs::rename(&upgrade, installed.program()).unwrap();
    for crashes in 1..=3 {
        let (code, message) = client.refused("hostilecrash", json!([]));
        assert_eq!((code, message.as_str()), (-32603, "The plugin 'hostile' crashed"));
        client.call("hostilenothing", json!([]));
        wait_until("it has ended", || client.plugin("hostile")["crashes"] == json!(crashes));
        assert_eq!(client.plugin("hostile")["last_crash"], json!({"ending": "SIGSEGV", "method": "hostilecrash"}));
    }
}
