//! Programs that the host starts on blocks, payments, startup and shutdown.

use std::path::Path;

use outrigger_tests::{Host, HostOptions, NOBODY, bitcoind, wait_until};
use serde_json::json;

/// Each program creates a file in a folder, named after its arguments.
fn with_hooks(folder: &Path) -> HostOptions {
    let hooks = [
        ("blocknotify", "block %s"),
        ("walletnotify", "%w %s %b %h"),
        ("startupnotify", "start"),
        ("shutdownnotify", "stop $(%s)"),
    ];
    let set = hooks.map(|(key, name)| format!("notify.{key}=[\"touch\", \"{}/{name}\"]", folder.display()));
    HostOptions { set: set.to_vec(), ..HostOptions::default() }
}

fn check(options: HostOptions, folder: &Path) {
    let has = |name: String| move || folder.join(&name).exists();
    let mut host = Host::start_with(options);
    wait_until("the program at the start ran", has("start".to_owned()));
    let mut wallet = host.new_wallet("a;$(b)");
    let address = wallet.call("getnewaddress", json!([]));
    let mined = wallet.call("generatetoaddress", json!([1, address]));
    // Make the coinbase mature.
    let last = wallet.call("generatetoaddress", json!([100, NOBODY]))[99].clone();
    wait_until("the program at a block ran", has(format!("block {}", last.as_str().unwrap())));
    let block = wallet.call("getblock", json!([mined[0]]));
    let coinbase = block["tx"][0].as_str().unwrap();
    wait_until("that at a payment ran", has(format!("a;$(b) {coinbase} {} 1", mined[0].as_str().unwrap())));
    let payment = wallet.call("sendtoaddress", json!([address, 1, "", "", false, true, null, "unset", false, 5]));
    wait_until("without a block too", has(format!("a;$(b) {} unconfirmed -1", payment.as_str().unwrap())));
    assert!(host.terminate().success());
    assert!(folder.join("stop $(%s)").exists());
}

#[test]
fn blocknotify_and_similar_options_start_programs_without_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    check(with_hooks(folder.path()), folder.path());
}

#[test]
fn blocknotify_and_similar_options_start_programs_in_front_of_a_bitcoind() {
    if bitcoind::installed().is_some() {
        let folder = tempfile::tempdir().unwrap();
        check(HostOptions { bitcoind: Some(Vec::new()), ..with_hooks(folder.path()) }, folder.path());
    }
}
