//! What an operator has of the host beside its answers: signals, a service manager's notices, standard output and the log.

use std::fs::File;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};

use outrigger_tests::{Client, Host, HostOptions, built, groups, wait_for, wait_until};
use serde_json::json;

/// A host whose log is kept, and all that it holds so far.
pub fn logged(set: &[&str]) -> (Host, impl Fn() -> String) {
    let log = tempfile::NamedTempFile::new().unwrap();
    let set = set.iter().map(|set| (*set).to_owned()).collect();
    let host = Host::start_with(HostOptions { log: Some(log.path().to_owned()), set, ..HostOptions::default() });
    (host, move || std::fs::read_to_string(log.path()).unwrap())
}

#[test]
fn signal_sighup_is_logged_and_the_host_goes_on() {
    let (mut host, log) = logged(&["log.level=info"]);
    let mut client = host.client();
    host.hang_up();
    wait_until("the log tells of SIGHUP", || log().contains("SIGHUP"));
    // Without an answer the host has ended.
    client.call("getblockcount", json!([]));
    assert!(host.terminate().success());
    assert!(!host.network_folder().join(".cookie").exists(), "the cookie outlives the host");
}

#[test]
fn service_manager_is_notified_of_readiness_and_of_the_stop() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let environment = vec![("NOTIFY_SOCKET".to_owned(), path.display().to_string())];
    let mut host = Host::start_with(HostOptions { environment, ..HostOptions::default() });
    let hear = || {
        let mut buffer = [0; 64];
        let len = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..len].to_vec()).unwrap()
    };
    assert_eq!(hear(), "READY=1");
    host.client().call("getblockcount", json!([]));
    assert!(host.terminate().success());
    assert_eq!(hear(), "STOPPING=1");
}

#[test]
fn output_that_takes_nothing_is_logged_and_the_host_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new(&built().binary);
    command.args(["run", "--rpc-listen", "127.0.0.1:0", "--set", "chain.map_gib=16", "--datadir"]).arg(folder.path());
    command.stdout(File::create("/dev/full").unwrap()).stderr(File::create(log.path()).unwrap());
    let mut child = command.spawn().unwrap();
    let text = wait_for("the host is ready, or ends", || {
        let text = std::fs::read_to_string(log.path()).unwrap();
        let over = text.contains("Outrigger is ready") || child.try_wait().unwrap().is_some();
        over.then_some(text)
    });
    let address = text.split("is ready: http://").nth(1).and_then(|rest| rest.split('/').next());
    let address = address.unwrap_or_else(|| panic!("{text}")).parse().unwrap();
    assert!(text.contains("standard output takes nothing"), "{text}");
    let cookie = std::fs::read_to_string(folder.path().join("regtest/.cookie")).unwrap();
    assert_eq!(Client::new(address, &cookie).call("stop", json!([])), json!("Outrigger stopping"));
    assert!(child.wait().unwrap().success());
}

#[test]
fn output_that_takes_nothing_fails_a_command_with_a_message() {
    for arguments in [&["auth", "alice"][..], &["completions", "bash"], &["plugin", "header"]] {
        let mut command = Command::new(&built().binary);
        let command = command.args(arguments).stdout(File::create("/dev/full").unwrap()).stderr(Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.starts_with("outrigger: cannot write to standard output: "), "{arguments:?}: {error}");
    }
}

#[test]
fn log_tells_once_of_calls_of_a_method_whose_group_is_off() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let set = vec!["log.format=json".to_owned()];
    let config = Some(groups("mining-only.toml"));
    let host =
        Host::start_with(HostOptions { config, set, log: Some(log.path().to_owned()), ..HostOptions::default() });
    let mut client = host.client();
    let unknown = (-32601, "Method not found".to_owned());
    for method in ["getbalance", "getbalance", "nosuchmethod", "importdescriptors"] {
        assert_eq!(client.refused(method, json!([])), unknown);
    }
    client.call("stopplugin", json!(["mining"]));
    assert_eq!(client.refused("submitblock", json!(["00"])), unknown);
    let text = std::fs::read_to_string(log.path()).unwrap();
    let told: Vec<_> = text.lines().filter(|line| line.contains("a call of a method whose")).collect();
    let fields = |line: &&str| serde_json::from_str::<serde_json::Value>(line).unwrap()["fields"].clone();
    let told: Vec<_> =
        told.iter().map(fields).map(|line| json!([line["method"], line["group"], line["plugin"]])).collect();
    let expected = [
        json!(["getbalance", "wallet", null]),
        json!(["importdescriptors", "import", null]),
        json!(["submitblock", null, "mining"]),
    ];
    assert_eq!(told, expected, "{text}");
}

#[test]
fn auth_prints_the_password_apart_from_the_lines_to_paste() {
    let output = Command::new(&built().binary).args(["auth", "alice"]).output().unwrap();
    assert!(output.status.success());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (lines, told) = (text(output.stdout), text(output.stderr));
    let password = told.trim_end().lines().last().unwrap();
    assert!(password.len() >= 40 && !lines.contains(password), "{lines}");
    // The lines are configuration as they stand.
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(config.path(), &lines).unwrap();
    let host = Host::start_with(HostOptions { config: Some(config.path().to_owned()), ..HostOptions::default() });
    Client::new(host.address, &format!("alice:{password}")).call("uptime", json!([]));
}
