//! Signals, notices to a service manager, standard output and the log.

use std::fs::File;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};

use outrigger_tests::{Client, ELSEWHERE, Host, HostOptions, built, groups, wait_for, wait_until};
use serde_json::{Value, json};

/// A host whose log is kept, and a function that returns the log so far.
pub fn logged(set: &[&str]) -> (Host, impl Fn() -> String) {
    logged_with(HostOptions::with(set))
}

/// As [`logged`], with these options.
pub fn logged_with(options: HostOptions) -> (Host, impl Fn() -> String) {
    let log = tempfile::NamedTempFile::new().unwrap();
    let host = Host::start_with(HostOptions { log: Some(log.path().to_owned()), ..options });
    (host, move || std::fs::read_to_string(log.path()).unwrap())
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
fn host_logs_that_standard_output_is_unwritable_and_continues() {
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
    assert!(text.contains("standard output cannot be written"), "{text}");
    let cookie = std::fs::read_to_string(folder.path().join("regtest/.cookie")).unwrap();
    assert_eq!(Client::new(address, &cookie).call("stop", json!([])), json!("Outrigger stopping"));
    assert!(child.wait().unwrap().success());
}

#[test]
fn command_fails_with_a_message_if_its_output_is_unwritable() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    for arguments in [&["auth", "alice"][..], &["completions", "bash"], &["plugin", "header", folder]] {
        let mut command = Command::new(&built().binary);
        let command = command.args(arguments).stdout(File::create("/dev/full").unwrap()).stderr(Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.starts_with("outrigger: cannot write to standard output: "), "{arguments:?}: {error}");
    }
}

#[test]
fn log_reports_calls_of_a_method_once_if_its_group_is_off() {
    let config = Some(groups("mining-only.toml"));
    let (host, log) = logged_with(HostOptions { config, ..HostOptions::with(&["log.format=json"]) });
    let mut client = host.client();
    let unknown = (-32601, "Method not found".to_owned());
    for method in ["getbalance", "getbalance", "nosuchmethod", "importdescriptors"] {
        assert_eq!(client.refused(method, json!([])), unknown);
    }
    client.call("stopplugin", json!(["mining"]));
    assert_eq!(client.refused("submitblock", json!(["00"])), unknown);
    let text = log();
    let told: Vec<_> = text.lines().filter(|line| line.contains("a call of a method whose")).collect();
    let fields = |line: &&str| serde_json::from_str::<Value>(line).unwrap()["fields"].clone();
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
    // The lines are valid configuration without a change.
    let host = Host::start_with(HostOptions::configured(&lines));
    Client::new(host.address, &format!("alice:{password}")).call("uptime", json!([]));
}

/// The lines of an audit log. Only its owner may read the file.
pub fn audited(file: &Path) -> Vec<Value> {
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn audit_log_lists_calls_that_move_money_export_keys_touch_files_or_change_settings() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit");
    let backup = folder.path().join("backup");
    let users = format!("rpc.users=[{{ rpcauth = '{}', wallet = 'w' }}]", crate::users::ALICE);
    let host = Host::start_with(HostOptions::with(&[&format!("audit.file='{}'", file.display()), &users]));
    let passphrase = "correct horse";
    host.client().call("createwallet", json!({"wallet_name": "w", "passphrase": passphrase}));
    let mut alice = Client::new(host.address, "alice:pass:word");
    let mine = alice.call("getnewaddress", json!([]));
    host.client().call("generatetoaddress", json!([101, mine]));
    alice.refused("walletpassphrase", json!(["wrong", 60]));
    alice.call("walletpassphrase", json!([passphrase, 60]));
    let paid = alice.call("sendtoaddress", json!([mine, 1.25]));
    alice.call("listdescriptors", json!([true]));
    alice.call("backupwallet", json!([backup.display().to_string()]));
    alice.call("getbalances", json!([]));
    host.client().call("stopplugin", json!(["mining"]));
    let lines = audited(&file);
    let short: Vec<Value> = lines
        .iter()
        .map(|line| {
            json!([line["user"], line["wallet"], line["method"], line["outcome"], line["code"], line["txid"][0]])
        })
        .collect();
    let expected = [
        json!(["__cookie__", null, "createwallet", "ok", null, null]),
        json!(["alice", "w", "walletpassphrase", "error", -14, null]),
        json!(["alice", "w", "walletpassphrase", "ok", null, null]),
        json!(["alice", "w", "sendtoaddress", "ok", null, paid]),
        json!(["alice", "w", "listdescriptors", "ok", null, null]),
        json!(["alice", "w", "backupwallet", "ok", null, null]),
        json!(["__cookie__", null, "stopplugin", "ok", null, null]),
    ];
    assert_eq!(short, expected);
    let text = std::fs::read_to_string(&file).unwrap();
    for secret in [passphrase, "tprv", "1.25", mine.as_str().unwrap()] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    assert!(lines.iter().all(|line| line["time"].as_str().unwrap().ends_with('Z')), "{text}");
}

#[test]
fn log_at_info_holds_no_address_amount_txid_or_key_and_reports_sighup() {
    let (mut host, log) = logged(&["log.level=info"]);
    let mut wallet = host.new_wallet("w");
    let mine = wallet.call("getnewaddress", json!(["rent"]));
    wallet.call("generatetoaddress", json!([101, mine]));
    let paid = wallet.call("sendtoaddress", json!([mine, 1.23456789]));
    wallet.refused("sendtoaddress", json!([mine, 7654.32198765]));
    wallet.refused("gettransaction", json!(["5a".repeat(32)]));
    let coin = &wallet.call("listunspent", json!([0]))[0];
    let spent = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
    let raw = wallet.call("createrawtransaction", json!([spent, [{mine.as_str().unwrap(): 0.51234567}]]));
    let signed = wallet.call("signrawtransactionwithwallet", json!([raw]))["hex"].clone();
    let sent = wallet.call("sendrawtransaction", json!([signed, 0]));
    let key = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v";
    let imported = wallet.with_checksum(&format!("wpkh({key})"));
    wallet.call("importdescriptors", json!([[{"desc": imported, "timestamp": 0}]]));
    wallet.call("importmulti", json!([[{"scriptPubKey": {"address": ELSEWHERE}, "timestamp": 0, "watchonly": true}]]));
    // The host refuses it for a transaction in the mempool.
    wallet.refused("abandontransaction", json!([sent]));
    let text = log();
    assert!(text.contains("listening"), "{text}");
    let text_of = |value: &Value| value.as_str().unwrap().to_owned();
    for secret in [
        text_of(&mine),
        text_of(&paid),
        text_of(&sent),
        text_of(&signed),
        "5a".repeat(32),
        key.to_owned(),
        ELSEWHERE.to_owned(),
        "1.23456789".to_owned(),
        "123456789".to_owned(),
        "7654.32198765".to_owned(),
        "0.51234567".to_owned(),
        "rent".to_owned(),
    ] {
        assert!(!text.contains(&secret), "{secret}: {text}");
    }
    host.hang_up();
    wait_until("the log tells of SIGHUP", || log().contains("SIGHUP"));
    // No answer means that the host has ended.
    wallet.call("getblockcount", json!([]));
    assert!(host.terminate().success());
    assert!(!host.network_folder().join(".cookie").exists(), "the cookie outlives the host");
}
