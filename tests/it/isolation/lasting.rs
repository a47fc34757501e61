//! Isolated plugins over a long time: upgrades of the program, reloads, and the end of the host.

use std::fs;

use outrigger_tests::{Host, wait_until};
use serde_json::json;

use super::{Installed, children, has_sandbox, process};

#[test]
fn lasting_plugin_is_started_again_after_its_program_was_replaced() {
    let installed = Installed::new();
    let host = Host::start_with(installed.options(None, "sandbox = \"best-effort\"\n"));
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

#[test]
fn lasting_host_that_is_killed_leaves_no_process_behind() {
    // The groups' processes require a sandbox.
    if !has_sandbox() {
        return;
    }
    let installed = Installed::new();
    let mut options = installed.options(None, "sandbox = \"best-effort\"\n");
    options.set.push("plugin_defaults.isolated=all".to_owned());
    let mut host = Host::start_with(options);
    let pids = children(&host);
    // The groups' and one more.
    assert_eq!(pids.len(), super::GROUPS.len() + 1);
    host.kill();
    wait_until("the processes of a host that was killed are gone", || !pids.iter().any(|pid| process(*pid).exists()));
}
