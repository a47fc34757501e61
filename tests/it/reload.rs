//! Reloads of the configuration while the host runs: `outrigger reload`, the method and SIGHUP.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use outrigger_tests::{Authority, Client, Gate, Host, HostOptions, Reply, built, plugin_section, wait_until};
use serde_json::{Value, json};

use crate::operator::{audited, logged_with};
use crate::reach::{ask, request_of};
use crate::users::ALICE;

/// How long a busy machine may take to end a connection.
const PATIENCE: Duration = Duration::from_secs(20);

const CHAIN: &str =
    "[[plugins]]\nfile = \"chain\"\nisolated = false\ngrants = [\"chain/1\", \"mempool/1\", \"events/1\", \"log/1\"]\n";

/// A host whose configuration file a test changes, and its log.
struct Reloaded {
    host: Host,
    log: Box<dyn Fn() -> String>,
}

/// The contents of a test's configuration.
#[derive(Clone, Default)]
struct Text {
    top: &'static str,
    /// Users, with further lines of their sections.
    users: Vec<(&'static str, &'static str)>,
    min_feerate: u64,
    faulty: &'static str,
    end: &'static str,
}

impl Text {
    fn of(users: &[(&'static str, &'static str)]) -> Self {
        Self { users: users.to_vec(), min_feerate: 1, ..Self::default() }
    }

    fn written(&self) -> String {
        let user = |(name, more): &(&str, &str)| {
            format!("[[rpc.users]]\nrpcauth = \"{}\"\n{more}\n", ALICE.replace("alice", name))
        };
        let users: String = self.users.iter().map(user).collect();
        let plugin = |library: &str, grant: &str, options: &str| {
            let grants = format!("grants = [\"chain/1\", \"{grant}\"]");
            plugin_section(library, &format!("isolated = false\n{grants}\noptions = {{ {options} }}\n"))
        };
        let acme = plugin("outrigger_acme_mining", "mempool/1", &format!("min_feerate = {}", self.min_feerate));
        let faulty = plugin("outrigger_faulty", "log/1", self.faulty);
        format!("{}\n{users}{CHAIN}{acme}{faulty}{}\n", self.top, self.end)
    }
}

impl Reloaded {
    fn start(text: &Text) -> Self {
        let options = HostOptions { level_of_file: true, ..HostOptions::configured(&text.written()) };
        let (host, log) = logged_with(options);
        Self { host, log: Box::new(log) }
    }

    fn write(&self, text: &Text) {
        std::fs::write(self.host.config_file().path(), text.written()).unwrap();
    }

    /// Runs `outrigger reload` with these arguments: the exit code, standard output and standard error.
    fn reload(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(&built().binary);
        command.arg("reload").arg("--datadir").arg(self.host.datadir()).args(arguments);
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    #[track_caller]
    fn reload_well(&self) -> String {
        let (code, told, error) = self.reload(&[]);
        assert_eq!((code, error.as_str()), (Some(0), ""));
        told
    }

    /// Runs `outrigger reload`, which must fail for this reason.
    #[track_caller]
    fn reload_in_vain(&self, arguments: &[&str], expected: &str) {
        let (code, told, error) = self.reload(arguments);
        assert_eq!((code, told.as_str()), (Some(2), ""), "{error}");
        assert!(error.contains(expected), "{expected}: {error}");
        assert!(self.log().contains("the configuration was not reloaded; nothing has changed"), "{}", self.log());
    }

    fn user(&self, name: &str) -> Client {
        Client::new(self.host.address, &format!("{name}:pass:word"))
    }

    fn log(&self) -> String {
        (self.log)()
    }

    fn min_feerate(&self) -> Value {
        self.host.client().call("getacmepolicy", json!([]))["min_feerate"].clone()
    }
}

/// Writes a certificate and its key into a folder, and returns the configuration that names them.
fn certified(folder: &Path) -> (Authority, &'static str) {
    let authority = Authority::new(&folder.join("authority.pem"));
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| folder.join(name));
    authority.issue(&["127.0.0.1"], "host").write(&certificate, &key);
    let (certificate, key) = (certificate.display(), key.display());
    (authority, format!("[rpc.tls]\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n").leak())
}

/// Makes a user's call over TLS, and returns the reply.
fn call_by_tls(host: &Reloaded, authority: &Authority, user: &str, method: &str) -> Reply {
    let stream = authority.connect(TcpStream::connect(host.host.address).unwrap(), None).unwrap();
    ask(stream, &request_of(&format!("{user}:pass:word"), "", &json!({"method": method, "id": 1}).to_string())).unwrap()
}

#[test]
fn reload_changes_nothing_without_a_good_certificate_and_needs_no_file_that_it_has_read() {
    let (folder, gate) = (tempfile::tempdir().unwrap(), Gate::new());
    let (authority, top) = certified(folder.path());
    let [certificate, key, ca] = ["certificate.pem", "key.pem", "authority.pem"].map(|name| folder.path().join(name));
    let trusting = ["--ca-file", ca.to_str().unwrap()];
    let faulty: &'static str = format!("gate_init = \"{}\"", gate.address()).leak();
    let host = Reloaded::start(&Text { top, ..Text::of(&[("alice", "")]) });
    let knows = |name: &str| call_by_tls(&host, &authority, name, "uptime").status;
    assert_eq!((knows("alice"), knows("bob")), (200, 401));
    host.write(&Text { top, faulty, ..Text::of(&[("bob", "")]) });
    host.host.hang_up();
    let waiting = gate.wait();
    std::fs::write(&certificate, "broken").unwrap();
    drop(waiting);
    wait_until("everything is reloaded", || knows("bob") == 200);
    assert_eq!(knows("alice"), 401);

    // This reload also finds the broken certificate. The host keeps the former certificate, user and plugin.
    host.write(&Text { top, faulty, min_feerate: 2, ..Text::of(&[("alice", "")]) });
    host.reload_in_vain(&trusting, "rpc.tls.certificate");
    assert_eq!((knows("alice"), knows("bob")), (401, 200));
    let policy = call_by_tls(&host, &authority, "bob", "getacmepolicy").body;
    assert_eq!(serde_json::from_str::<Value>(&policy).unwrap()["result"]["min_feerate"], json!(1), "{policy}");
    authority.issue(&["127.0.0.1"], "host").write(&certificate, &key);
    let (code, told, error) = host.reload(&trusting);
    assert_eq!(code, Some(0), "{told}{error}");
    assert_eq!((knows("alice"), knows("bob")), (200, 401));
}

fn status(client: &mut Client, method: &str) -> u16 {
    client.post(&json!({"method": method, "id": 1}).to_string()).status
}

#[test]
fn reload_applies_users_networks_level_and_options_and_names_settings_that_need_a_restart() {
    let host = Reloaded::start(&Text::of(&[("alice", ""), ("bob", "")]));
    assert_eq!(status(&mut host.user("alice"), "uptime"), 200);
    assert_eq!(host.reload_well(), "no changes\n");
    host.write(&Text {
        top: "[log]\nlevel = \"debug\"\n[rpc]\nthreads = 5\nallow_from = [\"10.0.0.0/8\"]",
        min_feerate: 2,
        ..Text::of(&[("bob", "methods = [\"uptime\"]"), ("carol", "")])
    });
    let told = host.reload_well();
    let lines: Vec<&str> = told.lines().collect();
    let changes = [
        "rpc.users: 'bob' was changed",
        "rpc.users: 'carol' was added",
        "rpc.users: 'alice' was removed",
        "rpc.allow_from: [10.0.0.0/8] (before: [])",
        "log.level: debug (before: info)",
        "plugins.options: the plugin 'acme-mining' was reloaded",
        "rpc.threads: needs a restart",
    ];
    assert_eq!(lines, changes);
    let log = host.log();
    for change in &changes[..6] {
        assert!(log.contains(&format!("reload: {change}")), "{change}\n{log}");
    }
    assert!(log.contains("a restart would apply this change") && log.contains("setting=\"rpc.threads\""), "{log}");
    assert_eq!(status(&mut host.user("alice"), "uptime"), 401);
    assert_eq!((status(&mut host.user("bob"), "uptime"), status(&mut host.user("bob"), "getblockcount")), (200, 403));
    assert_eq!(status(&mut host.user("carol"), "getblockcount"), 200);
    assert_eq!(host.min_feerate(), 2);
    // The log has calls, since the level is that of the file.
    assert!(host.log().contains("DEBUG"), "{}", host.log());
    let again = host.reload_well();
    assert_eq!(again, "rpc.threads: needs a restart\n");
    // SIGHUP reloads too, and a user needs the right to the method.
    host.write(&Text::of(&[("dave", "methods = [\"uptime\"]")]));
    assert_eq!(status(&mut host.user("bob"), "reload"), 403);
    host.host.hang_up();
    wait_until("dave can call", || status(&mut host.user("dave"), "uptime") == 200);
}

/// Whether the host ends this connection.
fn ends(mut stream: TcpStream) -> bool {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    !stream.read_to_end(&mut Vec::new()).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Whether this connection is open, after all that has arrived over it.
fn is_open(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    stream.read_to_end(&mut Vec::new()).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// The number of calls that wait for a block.
fn polls(operator: &mut Client) -> usize {
    let listed = operator.call("getrpcinfo", json!([]));
    let calls = listed["active_commands"].as_array().unwrap();
    calls.iter().filter(|call| call["method"] == "waitfornewblock").count()
}

#[test]
fn reload_ends_connections_and_long_polls_of_a_removed_user() {
    let host = Reloaded::start(&Text::of(&[("alice", ""), ("bob", "")]));
    let poll = |client: &Client| {
        let mut stream = client.connect();
        let request = client.request(&json!({"method": "waitfornewblock", "id": 1}).to_string());
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    let idle = |client: &Client| {
        let mut stream = client.connect();
        stream.write_all(client.request(r#"{"method":"uptime","id":1}"#).as_bytes()).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        stream
    };
    let (alice, bob) = (host.user("alice"), host.user("bob"));
    let (polling, staying) = (poll(&alice), poll(&bob));
    let (resting, idling) = (idle(&alice), idle(&bob));
    let mut socket = alice.websocket();
    assert!(socket.call("uptime", json!([])).is_ok());
    let mut operator = host.host.client();
    wait_until("both wait", || polls(&mut operator) == 2);
    host.write(&Text::of(&[("bob", "")]));
    host.reload_well();
    assert!(ends(polling), "the long poll goes on");
    assert!(ends(resting), "the idle connection stays");
    assert!(ends(socket.into_stream()), "the WebSocket stays");
    // Connections of other users and of the operator stay open.
    assert!(is_open(&idling) && is_open(&staying));
    drop(staying);
    assert!(operator.call_while_alive("uptime", json!([])).is_some());
}

#[test]
fn reload_applies_the_users_of_bitcoin_conf() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = ["one.conf", "other.conf"].map(|name| folder.path().join(name));
    let text = |file: &Path| {
        let top: &'static str = format!("[rpc]\nbitcoin_conf = \"{}\"\n", file.display()).leak();
        Text { top, ..Text::of(&[("bob", "")]) }
    };
    let entry = |name: &str| format!("rpcauth={}\n", ALICE.replace("alice", name));
    std::fs::write(&one, entry("carol")).unwrap();
    std::fs::write(&other, entry("erin")).unwrap();
    let host = Reloaded::start(&text(&one));
    let may = |name: &str| status(&mut host.user(name), "getblockcount");
    assert_eq!(["bob", "carol", "dave"].map(may), [200, 200, 401]);
    // The file gets other lines.
    let lists = "rpcwhitelist=carol:uptime\nrpcwhitelist=dave:getblockcount\n";
    std::fs::write(&one, entry("carol") + &entry("dave") + lists).unwrap();
    assert_eq!(host.reload_well(), "rpc.users: 'carol' was changed\nrpc.users: 'dave' was added\n");
    assert_eq!(["bob", "carol", "dave"].map(may), [200, 403, 200]);
    // The setting names another file.
    host.write(&text(&other));
    let removed = "rpc.users: 'carol' was removed\nrpc.users: 'dave' was removed\n";
    assert_eq!(host.reload_well(), format!("rpc.users: 'erin' was added\n{removed}"));
    assert_eq!(["bob", "carol", "erin"].map(may), [200, 401, 200]);
    // The file is invalid.
    std::fs::write(&other, entry("frank") + "rpcauth\n").unwrap();
    host.reload_in_vain(&[], "other.conf: line 2 is not a setting");
    assert_eq!(["bob", "erin", "frank"].map(may), [200, 200, 401]);
}

#[test]
fn reload_applies_changed_limits_of_a_user() {
    const UPTIME: &str = r#"{"method":"uptime","id":1}"#;
    let host = Reloaded::start(&Text::of(&[("alice", "max_concurrent_calls = 2")]));
    let (mut alice, mut operator) = (host.user("alice"), host.host.client());
    let limit = |limits: &'static str| {
        host.write(&Text::of(&[("alice", limits)]));
        assert_eq!(host.reload_well(), "rpc.users: 'alice' was changed\n");
    };
    let poll = alice.begin(r#"{"method":"waitfornewblock","id":1}"#);
    wait_until("a call waits", || polls(&mut operator) == 1);
    assert_eq!(alice.post(UPTIME).status, 200);
    // A call that began before the reload counts towards the new limit.
    limit("max_concurrent_calls = 1");
    let told = "The user may have 1 calls at a time (rpc.users.max_concurrent_calls)";
    wait_until("the call is the one allowed", || alice.post(UPTIME).body == told);
    limit("max_concurrent_calls = 2");
    wait_until("two calls are allowed", || alice.post(UPTIME).status == 200);
    drop(poll);
    let batch = format!("[{}]", [UPTIME; 50].join(","));
    let told = "The user may make 1 calls a second (rpc.users.max_calls_per_second)";
    limit("max_calls_per_second = 1");
    assert!(alice.post(&batch).body.contains(told));
    limit("");
    let body = alice.post(&batch).body;
    assert!(!body.contains(told) && body.matches("\"result\"").count() == 50, "{body}");
}

#[test]
fn reload_that_fails_changes_nothing_and_exits_2_with_the_reason() {
    let host = Reloaded::start(&Text::of(&[("alice", "")]));
    let unchanged = |expected: &str| {
        host.reload_in_vain(&[], expected);
        assert_eq!((status(&mut host.user("alice"), "uptime"), host.min_feerate()), (200, json!(1)));
        assert_eq!(status(&mut host.user("bob"), "uptime"), 401);
    };
    let bob = [("bob", "")];
    host.write(&Text { top: "[rpc]\nthread = 4", ..Text::of(&bob) });
    unchanged(":2: rpc.thread: unknown field `thread`; did you mean 'threads'?");
    host.write(&Text { min_feerate: 2, ..Text::of(&[("bob", "methods = [\"getblokcount\"]")]) });
    unchanged("there is no method 'getblokcount'");
    host.write(&Text { top: "[log]\nlevel = \"loud\"", min_feerate: 2, ..Text::of(&bob) });
    unchanged("'loud' is not a level");
    // One plugin accepts its new options, the next refuses: the host restores the first one's former options.
    host.write(&Text { min_feerate: 2, faulty: "refuse_init = true", ..Text::of(&bob) });
    unchanged("refuse_init was asked for");
    host.write(&Text { min_feerate: 2, ..Text::of(&bob) });
    host.reload_well();
    assert_eq!((status(&mut host.user("bob"), "uptime"), host.min_feerate()), (200, json!(2)));
    // The command fails if no host runs.
    let nowhere = tempfile::tempdir().unwrap();
    let output = Command::new(&built().binary).arg("reload").arg("--datadir").arg(nowhere.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn reload_under_load_loses_no_call() {
    const RELOADS: u64 = 20;
    let host = Reloaded::start(&Text::of(&[("alice", "")]));
    let (stop, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for method in ["getacmepolicy", "getblockcount", "getacmepolicy", "uptime"] {
            let (mut client, stop, calls) = (host.user("alice"), &stop, &calls);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let answer = client.call_while_alive(method, json!([])).expect("a connection was cut");
                    answer.unwrap_or_else(|error| panic!("{method}: {error:?}"));
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for round in 1..=RELOADS {
            let users = [("alice", ""), ("bob", "")];
            let users = if round % 2 == 0 { &users[..1] } else { &users[..] };
            host.write(&Text { min_feerate: round + 1, ..Text::of(users) });
            let told = host.reload_well();
            assert!(told.contains("'bob' was") && told.contains("'acme-mining' was reloaded"), "{told}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(host.min_feerate(), RELOADS + 1);
    assert!(calls.into_inner() > 100);
}

#[test]
fn reload_opens_the_audit_log_again_or_changes_nothing_and_exits_2() {
    let folder = tempfile::tempdir().unwrap();
    let [file, moved, again] = ["audit", "moved", "again"].map(|name| folder.path().join(name));
    let end: &'static str = format!("[audit]\nfile = \"{}\"\n", file.display()).leak();
    let host = Reloaded::start(&Text { end, ..Text::of(&[("alice", "")]) });
    let mut client = host.host.client();
    let stop = |file: &Path| audited(file).iter().filter(|line| line["method"] == "stopplugin").count();
    client.call("stopplugin", json!(["faulty"]));
    std::fs::rename(&file, &moved).unwrap();
    assert_eq!(host.reload_well(), "audit.file: opened again\n");
    client.refused("stopplugin", json!(["faulty"]));
    assert_eq!((stop(&moved), stop(&file)), (1, 1));

    std::fs::rename(&file, &again).unwrap();
    std::fs::create_dir(&file).unwrap();
    let top = "[log]\nlevel = \"debug\"";
    host.write(&Text { top, end, min_feerate: 2, ..Text::of(&[("bob", "")]) });
    host.reload_in_vain(&[], "audit.file: ");
    assert_eq!(["alice", "bob"].map(|name| status(&mut host.user(name), "uptime")), [200, 401]);
    assert_eq!(host.min_feerate(), 1);
    assert!(!host.log().contains("DEBUG"), "{}", host.log());
    // The host still writes to the former file.
    client.refused("stopplugin", json!(["faulty"]));
    wait_until("the call is in it", || stop(&again) == 2);
    std::fs::remove_dir(&file).unwrap();
    assert!(host.reload_well().ends_with("audit.file: opened again\n"));
    assert_eq!((status(&mut host.user("bob"), "uptime"), host.min_feerate()), (200, json!(2)));
}
