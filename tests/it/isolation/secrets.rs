//! Nothing of a secret stays where host and plugin leave their messages.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use outrigger_tests::{Host, HostOptions, skip_unprivileged};
use serde_json::json;

use super::has_sandbox;

/// The memory that a process shares with its runners.
fn shared_memory(of: &Host) -> Vec<u8> {
    let process = format!("/proc/{}", of.process_id());
    let maps = fs::read_to_string(format!("{process}/maps")).unwrap();
    let memory = File::open(format!("{process}/mem")).unwrap();
    let mut all = Vec::new();
    for line in maps.lines().filter(|line| line.contains("memfd:outrigger")) {
        let range = line.split(' ').next().unwrap().split_once('-').unwrap();
        let [from, to] = [range.0, range.1].map(|address| u64::from_str_radix(address, 16).unwrap());
        let mut bytes = vec![0; usize::try_from(to - from).unwrap()];
        memory.read_exact_at(&mut bytes, from).unwrap();
        all.append(&mut bytes);
    }
    all
}

fn holds(memory: &[u8], secret: &str) -> bool {
    let first = secret.as_bytes()[0];
    memory.iter().enumerate().any(|(at, byte)| *byte == first && memory[at..].starts_with(secret.as_bytes()))
}

#[test]
fn secrets_are_wiped_from_the_memory_that_plugins_share() {
    if !has_sandbox() {
        return;
    }
    if !rustix::process::getuid().is_root() {
        skip_unprivileged("only root may read the memory of a host");
        return;
    }
    let set = ["plugin_defaults.isolated='all'"].map(str::to_owned).to_vec();
    let host = Host::start_with(HostOptions { set, ..HostOptions::default() });
    let mut wallet = host.new_wallet("w");
    let passphrase = "correct horse battery staple";
    wallet.call("encryptwallet", json!([passphrase]));
    wallet.call("walletpassphrase", json!([passphrase, 600]));
    let descriptors = wallet.call("listdescriptors", json!([true]))["descriptors"].clone();
    let text = descriptors[0]["desc"].as_str().unwrap().to_owned();
    let private = &text[text.find("tprv").unwrap()..][..100];
    let key = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA";
    let address = wallet.call("getnewaddress", json!(["", "legacy"]));
    wallet.call("signmessagewithprivkey", json!([key, "message"]));
    wallet.call("signmessage", json!([address, "message"]));
    // A message of several pieces.
    wallet.refused("signrawtransactionwithkey", json!(["00", vec![key; 4000]]));
    wallet.call("walletlock", json!([]));
    let memory = shared_memory(&host);
    assert!(memory.len() > 1 << 20, "there is such memory");
    for secret in [passphrase, private, key] {
        assert!(!holds(&memory, secret), "{} of a secret are left", secret.len());
    }
}
