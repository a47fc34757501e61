//! Start, stop, conditions that prevent a start, and answers before the host is up.

use std::path::{Path, PathBuf};

use outrigger_tests::{Client, Gate, Host, HostOptions, all_groups, built, plugin_section, skip};
use serde_json::json;

use crate::operator::logged;
use crate::users::ALICE;

const NOBODY: u32 = 65_534;

/// Runs with a configuration that must be refused. Returns the error, with FILE for the file's path.
#[track_caller]
fn refused(text: &str) -> String {
    let options = HostOptions::configured(text);
    Host::refused(&options).replace(&options.config_file().path().display().to_string(), "FILE")
}

#[test]
fn startup_names_a_plugin_file_that_is_no_plugin() {
    let text = tempfile::Builder::new().suffix(".so").tempfile().unwrap();
    std::fs::write(text.path(), "#!/bin/sh\n").unwrap();
    let error = refused(&format!("[[plugins]]\nfile = \"{}\"\n", text.path().display()));
    assert!(error.contains("FILE:2: plugins.file: ") && error.contains("is not an Outrigger plugin"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let library = system_library(folder.path());
    let error = refused(&format!("[[plugins]]\nfile = \"{}\"\n", library.display()));
    assert!(error.contains("it exports no symbol outrigger_manifest"), "{error}");
}

/// Copies a system library, which is no plugin, to a folder.
fn system_library(folder: &Path) -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let library = maps.lines().filter_map(|line| line.split(' ').next_back()).find(|path| path.contains("libc.so"));
    let copy = folder.join("no-plugin.so");
    std::fs::copy(library.unwrap(), &copy).unwrap();
    copy
}

#[test]
fn rpc_listen_takes_several_addresses_and_call_finds_the_first() {
    let listen = Some("127.0.0.1:0 127.0.0.2:0".to_owned());
    let host = Host::start_with(HostOptions { listen, ..HostOptions::default() });
    let told = std::fs::read_to_string(host.network_folder().join(".address")).unwrap();
    let bare = |line: &str| line.trim_start_matches("http://").trim_end_matches("/").parse().unwrap();
    let addresses: Vec<std::net::SocketAddr> = told.lines().map(bare).collect();
    assert_eq!((addresses.len(), addresses[0]), (2, host.address));
    for address in addresses {
        Client::new(address, &host.cookie()).call("uptime", json!([]));
    }
    let mut command = std::process::Command::new(&built().binary);
    assert!(command.args(["call", "--datadir"]).arg(host.datadir()).arg("uptime").output().unwrap().status.success());
}

#[test]
fn signal_right_after_the_ready_line_ends_the_host_in_order() {
    for _ in 0..3 {
        let mut host = Host::start();
        assert_eq!(host.terminate().code(), Some(0));
    }
}

#[test]
fn startup_makes_its_folders_in_a_data_directory_private() {
    use std::os::unix::fs::PermissionsExt;
    let allow = |folder: &Path, mode: u32| {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let (host, log) = logged(&[]);
    let folder = host.network_folder();
    allow(&folder, 0o775);
    allow(&folder.join("plugins"), 0o755);
    let _host = host.restart();
    for folder in [&folder, &folder.join("plugins")] {
        assert_eq!(std::fs::metadata(folder).unwrap().permissions().mode() & 0o7777, 0o700, "{}", folder.display());
    }
    let text = log();
    assert!(text.contains("its mode was 0775; it is 0700 now"), "{text}");
}

#[test]
fn binary_exports_nothing_that_plugins_could_bind_to() {
    let output = std::process::Command::new("nm").args(["-D", "--defined-only"]).arg(&built().binary).output().unwrap();
    assert!(output.status.success());
    let symbols = String::from_utf8(output.stdout).unwrap();
    assert_eq!(symbols.lines().count(), 0, "{symbols}");
}

/// Runs `outrigger run --check` on a configuration, with a missing data directory. Returns exit code, output and errors.
fn checked(text: &str) -> (Option<i32>, String, String) {
    let config = HostOptions::configured(text).config_file();
    let folder = tempfile::tempdir().unwrap();
    let datadir = folder.path().join("new/data");
    let mut command = std::process::Command::new(&built().binary);
    command.args(["run", "--check", "--rpc-listen", "127.0.0.1:0", "--config"]).arg(config.path());
    let output = command.arg("--datadir").arg(&datadir).output().unwrap();
    assert!(!datadir.exists(), "something was written");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn run_check_accepts_a_sound_configuration_and_lists_the_grants() {
    let (code, told, error) = checked(&all_groups());
    assert_eq!((code, error.as_str()), (Some(0), ""));
    assert!(told.starts_with("The configuration is valid: 7 plugins with "), "{told}");
    let grants = "grants = [{ service = \"rpc/1\", methods = [\"getblocktemplate\", \"getblock\"] }]";
    let (_, told, _) = checked(&plugin_section("outrigger_node_policy", &format!("isolated = false\n{grants}\n")));
    let expected = "plugin 'node-policy' is granted rpc/1 (methods: getblocktemplate, getblock)\n";
    assert!(told.ends_with(expected), "{told}");
    let (_, told, _) = checked(&plugin_section("outrigger_observer", "isolated = false\n"));
    let expected = "the plugin 'observer' wraps no methods: `wrap` in [routes] does not name it";
    assert!(told.contains(expected), "{told}");
    // The check does not create the audit file.
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit");
    let (code, _, error) = checked(&format!("[audit]\nfile = \"{}\"\n", audit.display()));
    assert_eq!((code, error.as_str(), audit.exists()), (Some(0), "", false));
}

#[test]
fn startup_names_a_system_limit_that_is_too_low_and_a_sufficient_value() {
    let cases = [
        ("-n 40", None, "limit on open files (ulimit -n, LimitNOFILE) is too low: it is 40, and the host needs 128"),
        (
            "-d 100000",
            None,
            "limit on memory for data (ulimit -d, LimitDATA) is too low: it is 97 MiB, and the host needs 1024 MiB",
        ),
        (
            "-v 2097152",
            None,
            "limit on address space (ulimit -v, LimitAS) is too low: it is 2048 MiB, and the host needs 4096 MiB",
        ),
        (
            "-v 8388608",
            None,
            "limit on address space (ulimit -v, LimitAS) is too low: it is 8192 MiB, and the host needs 24576 MiB",
        ),
        // Root is exempt from this limit.
        (
            "-u 1 2>/dev/null || ulimit -p 1",
            Some(NOBODY),
            "(RLIMIT_NPROC: ulimit -u, LimitNPROC) is 1, for all of the user's processes together",
        ),
    ];
    for (limit, user, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let user = user.filter(|_| rustix::process::geteuid().is_root());
        if user.is_some() {
            std::os::unix::fs::chown(folder.path(), user, user).unwrap();
        }
        let output = Host::fail_in(folder.path(), &HostOptions { limits: vec![limit], user, ..HostOptions::default() });
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{limit}: {told}");
        assert!(
            told.starts_with("outrigger: ") && told.contains(expected) && !told.contains("panic"),
            "{limit}: {told}"
        );
    }
    // The value suffices for one wallet. The error for another one names the value that it needs.
    let host = Host::start_with(HostOptions { limits: vec!["-v 25165824"], ..HostOptions::default() });
    host.new_wallet("one");
    let (code, reason) = host.client().refused("createwallet", json!(["two"]));
    let expected = "the limit on address space (ulimit -v, LimitAS) is too low: it is 24576 MiB, and the host needs ";
    assert!(code == -20 && reason.starts_with(expected), "{code} {reason}");
}

#[test]
fn startup_counts_the_threads_of_isolated_plugins() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root starts a host as a user without other processes");
    }
    let user = Some(61_234);
    let limited = |limit: u32| {
        let limit = format!("-u {limit} 2>/dev/null || ulimit -p {limit}").leak();
        let options = HostOptions::with(&["plugin_defaults.isolated='all'"]);
        HostOptions { limits: vec![limit], user, ..options }
    };
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(folder.path(), user, user).unwrap();
    let mut limit = 1;
    // The host checks once before it reads its configuration, and once afterwards.
    for _ in 0..2 {
        let told = String::from_utf8(Host::fail_in(folder.path(), &limited(limit)).stderr).unwrap();
        let (_, threads) = told.split_once("the system refuses the ").unwrap();
        // One more for the main thread.
        limit = threads.split(' ').next().unwrap().parse::<u32>().unwrap() + 1;
    }
    Host::start_with(limited(limit)).client().call("getblockcount", json!([]));
}

#[test]
fn run_and_call_without_a_home_directory_ask_for_the_data_directory() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, code) in [
        (&["run", "--rpc-listen", "127.0.0.1:0"][..], 2),
        (&["run", "--check"], 2),
        (&["call", "getblockcount"], 1),
        (&["run", "--datadir", "~/x"], 2),
    ] {
        for home in [None, Some(""), Some("relative")] {
            let mut command = std::process::Command::new(&built().binary);
            command.args(arguments).current_dir(folder.path()).env_remove("HOME");
            let output = command.envs(home.map(|home| ("HOME", home))).output().unwrap();
            let error = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
            assert!(error.contains("HOME does not name one: give an absolute path (--datadir for data)"), "{error}");
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "something was written");
}

#[test]
fn startup_answers_calls_with_minus_28_until_all_is_up() {
    let gate = Gate::new();
    let rest = format!("{}options = {{ gate_init = \"{}\" }}\n", Gate::reach(&[&gate]), gate.address());
    let plugin = plugin_section("outrigger_faulty", &format!("grants = [\"chain/1\", \"log/1\"]\n{rest}"));
    let options = HostOptions::with_groups(&format!("[[rpc.users]]\nrpcauth = \"{ALICE}\"\n{plugin}"));
    let log = tempfile::NamedTempFile::new().unwrap();
    let options = HostOptions { log: Some(log.path().to_owned()), ..options.and(&["log.level=info"]) };
    std::thread::scope(|scope| {
        let starting = scope.spawn(|| Host::start_with(options));
        let waiting = gate.wait();
        let text = std::fs::read_to_string(log.path()).unwrap();
        let address = text.split("listening address=").nth(1).and_then(|rest| rest.split_whitespace().next());
        let address = address.unwrap_or_else(|| panic!("{text}")).parse().unwrap();
        let mut alice = Client::new(address, "alice:pass:word");
        for method in ["getblockcount", "uptime", "stop", "nosuchmethod"] {
            let failure = alice.try_call(method, json!([])).unwrap_err();
            assert_eq!(
                (failure.code, failure.message.as_str(), failure.status),
                (-28, "Starting plugins…", 500),
                "{method}"
            );
        }
        assert_eq!(Client::new(address, "alice:wrong").post(r#"{"method":"uptime","id":1}"#).status, 401);
        drop(waiting);
        let host = starting.join().unwrap();
        assert_eq!(host.address, address);
        alice.call("getblockcount", json!([]));
    });
}
