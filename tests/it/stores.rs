//! Data that plugins keep in stores and folders, and its transfer from one instance to the next.

use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger_tests::{Host, HostOptions, built, plugin_section};
use serde_json::{Value, json};

use super::metrics::ask;
use super::operator::logged_with;

/// Settings for the host's process, and for a process of its own.
const PLACES: [&str; 2] = ["isolated = false\n", "isolated = true\nsandbox = \"best-effort\"\n"];

/// The clients that call while the plugin is replaced, and the number of reloads.
const CLIENTS: u64 = 4;
const RELOADS: u64 = 6;

/// The configuration of the plugin alone; `rest` is added to its section.
fn keeper(rest: &str) -> String {
    plugin_section("outrigger_keeper", &format!("grants = [\"store/1\"]\n{rest}"))
}

fn start(rest: &str) -> Host {
    Host::start_with(HostOptions::configured(&keeper(rest)))
}

/// Replaces the configuration of a running host.
fn configure(host: &Host, rest: &str) {
    std::fs::write(host.config_file().path(), keeper(rest)).unwrap();
}

fn own_folder(host: &Host) -> PathBuf {
    host.network_folder().join("plugins/keeper")
}

#[test]
fn a_plugin_knows_itself_and_its_folder_and_a_durable_commit_outlives_a_killed_host() {
    for isolated in PLACES {
        let host = start(&format!("{isolated}deadline_seconds = 77\nmax_answer_bytes = 70000\nmax_store_mib = 3\n"));
        let mut about = host.client().call("keeperabout", json!([]));
        let folder = own_folder(&host).join("folder").canonicalize().unwrap();
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        let used = about.as_object_mut().unwrap().remove("used").unwrap();
        assert!(used.as_u64().unwrap() <= 8192, "{used}");
        let release = about.as_object_mut().unwrap().remove("release").unwrap();
        assert!(release.as_u64().unwrap() >= 29, "{release}");
        let expected = json!({"plugin": "keeper", "network": "regtest", "folder": folder, "deadline": 77,
            "max_answer": 70000, "version": 1, "bound": 3 << 20});
        assert_eq!(about, expected);

        assert_eq!(host.client().call("keeperadd", json!([])), json!([1, 1]), "{isolated}");
        let host = host.kill_and_restart();
        assert_eq!(host.client().call("keeperadd", json!([])), json!([2, 2]), "{isolated}");
        assert_eq!(host.client().plugin("keeper")["state"], json!("running"));
    }
}

#[test]
fn host_refuses_and_reports_a_write_beyond_the_limit_of_a_store() {
    let options = HostOptions::configured(&keeper("max_store_mib = 1\n"));
    let (host, log) = logged_with(options.and(&["metrics.listen='127.0.0.1:0'"]));
    let mut client = host.client();
    client.call("keeperput", json!(["large", 900 << 10]));
    let refused = client.refused("keeperput", json!(["more", 200 << 10]));
    let text = "the store of the plugin 'keeper' may take 1 MiB (max_store_mib), so nothing was stored";
    assert_eq!(refused, (-4, text.to_owned()));
    assert_eq!(client.call("keeperget", json!(["more"])), Value::Null);
    assert_eq!(client.call("keeperget", json!(["large"])), json!(900 << 10));
    let told = log();
    assert!(told.contains("the plugin's store is 80 % full (max_store_mib)"), "{told}");
    let page = ask(host.metrics.unwrap(), "GET /metrics");
    assert!(page.contains("plugin_store_bound_bytes{plugin=\"keeper\"} 1048576"), "{page}");
    assert!(page.contains("plugin_store_bytes{plugin=\"keeper\"} 9"), "{page}");
}

#[test]
fn a_value_damaged_on_disk_is_an_error_that_names_the_file() {
    let options = HostOptions::configured(&keeper(""));
    let mut host = Host::start_with(options.clone());
    let mut client = host.client();
    client.call("keeperput", json!(["key", 3000]));
    let path = own_folder(&host).join("store/data.mdb");
    let bytes = std::fs::read(&path).unwrap();
    let begin = bytes.windows(1000).position(|window| window == [0x5a; 1000]).unwrap();
    // Damages each copy of the value on disk, without the host.
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    for (at, _) in bytes.windows(64).enumerate().skip(begin).filter(|(_, window)| *window == [0x5a; 64]) {
        file.write_all_at(&[0x5b], at as u64).unwrap();
    }
    let (code, message) = client.refused("keeperget", json!(["key"]));
    assert!(code == -20 && message.contains("store/data.mdb is damaged: table \"rows\""), "{code} {message}");
    let (code, message) = client.refused("keeperput", json!(["other", 1]));
    assert!(code == -20 && message.contains("is damaged"), "{code} {message}");
    // The plugin does not start on the damaged store either.
    host.terminate();
    let failed = Host::fail_in(host.datadir(), &options);
    let told = String::from_utf8_lossy(&failed.stderr);
    assert!(
        !failed.status.success() && told.contains("plugin 'keeper' refused to start") && told.contains("is damaged"),
        "{told}"
    );
}

#[test]
fn reloadplugin_after_the_old_instance_loses_no_call() {
    for isolated in PLACES {
        let host = start(&format!("reload = \"after\"\n{isolated}"));
        let (reloads, calls) = (Arc::new(AtomicU64::new(0)), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                let (mut client, reloads, calls) = (host.client(), &reloads, &calls);
                scope.spawn(move || {
                    while reloads.load(Ordering::SeqCst) < RELOADS {
                        client.call("keeperadd", json!([]));
                        calls.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            let mut client = host.client();
            while reloads.load(Ordering::SeqCst) < RELOADS {
                let before = calls.load(Ordering::SeqCst);
                client.call("reloadplugin", json!(["keeper"]));
                reloads.fetch_add(1, Ordering::SeqCst);
                // Each instance answers calls before the next reload.
                while calls.load(Ordering::SeqCst) <= before + CLIENTS && reloads.load(Ordering::SeqCst) < RELOADS {
                    std::thread::yield_now();
                }
            }
        });
        let all = calls.into_inner() + 1;
        assert_eq!(host.client().call("keeperadd", json!([])), json!([all, all]), "{isolated}");
        let keeper = host.client().plugin("keeper");
        assert_eq!((&keeper["state"], &keeper["errors"]), (&json!("running"), &json!(0)));
    }
}

#[test]
fn reloadplugin_beside_cannot_have_two_writers() {
    let host = start("reload = \"beside\"\noptions = { locks = false }\n");
    let mut client = host.client();
    assert_eq!(client.call("keeperadd", json!([])), json!([1, 1]));
    client.call("reloadplugin", json!(["keeper"]));
    assert_eq!(client.call("keeperadd", json!([])), json!([2, 2]));
    // The new instance would change the store while the old one answers.
    configure(&host, "reload = \"beside\"\noptions = { locks = false, version = 2 }\n");
    let (code, message) = client.refused("reloadplugin", json!(["keeper"]));
    assert!(code == -1 && message.contains("the store stays at version 1"), "{code} {message}");
    assert!(message.contains("another instance of the plugin 'keeper' writes its store"), "{message}");
    assert_eq!(client.call("keeperadd", json!([])), json!([3, 3]));
    // Since the plugin has a folder, the old instance ends first by default, and releases its file.
    configure(&host, "");
    client.call("reloadplugin", json!(["keeper"]));
    client.call("reloadplugin", json!(["keeper"]));
    // A locked file also refuses the second instance.
    configure(&host, "reload = \"beside\"\n");
    let (code, message) = client.refused("reloadplugin", json!(["keeper"]));
    assert!(code == -1 && message.contains("another instance has the file"), "{code} {message}");
    configure(&host, "reload = \"after\"\noptions = { version = 2 }\n");
    client.call("reloadplugin", json!(["keeper"]));
    assert_eq!(
        (client.call("keeperadd", json!([])), client.call("keeperabout", json!([]))["version"].clone()),
        (json!([4, 4]), json!(2))
    );
}

#[test]
fn reloadplugin_after_restores_the_former_library_or_reports_that_the_plugin_is_down() {
    let host = start("reload = \"after\"\n");
    let mut client = host.client();
    configure(&host, "reload = \"after\"\noptions = { refuses = true }\n");
    let (code, message) = client.refused("reloadplugin", json!(["keeper"]));
    let expected =
        "plugin 'keeper' refused to start: told to refuse. The former library of the plugin 'keeper' was started again";
    assert_eq!((code, message.as_str()), (-1, expected));
    assert_eq!(client.call("keeperadd", json!([])), json!([1, 1]));
    // The new version migrates the store and then fails to start. The former one does not know the new version.
    configure(&host, "reload = \"after\"\noptions = { refuses = true, version = 2 }\n");
    let (code, message) = client.refused("reloadplugin", json!(["keeper"]));
    assert!(code == -1 && message.contains("The plugin 'keeper' does not run, since its former library"), "{message}");
    assert!(message.contains("the store has version 2"), "{message}");
    assert_eq!(client.refused("keeperadd", json!([])), (-32601, "Method not found".into()));
    assert_eq!(client.plugin("keeper")["state"], json!("stopped"));
    configure(&host, "reload = \"after\"\noptions = { version = 2 }\n");
    client.call("startplugin", json!(["keeper"]));
    assert_eq!(client.call("keeperadd", json!([])), json!([2, 2]));
    // An instance stops before the next one starts.
    client.call("stopplugin", json!(["keeper"]));
    client.call("startplugin", json!(["keeper"]));
    assert_eq!(client.call("keeperadd", json!([])), json!([3, 3]));
}

/// Runs `outrigger plugin store keeper ...`. Returns whether it succeeded, and its output.
fn store(datadir: &Path, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(&built().binary);
    command.args(["plugin", "store", "--network", "regtest", "--datadir"]).arg(datadir).arg("keeper").args(arguments);
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn plugin_store_exports_drops_and_imports_while_no_host_runs() {
    let mut host = start("options = { version = 3 }\n");
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(host.client().call("keeperadd", json!([])), json!([1, 1]));
    let file = folder.path().join("export");
    let (export, import) = (["export", file.to_str().unwrap()], ["import", file.to_str().unwrap()]);
    let (succeeded, text) = store(host.datadir(), &export);
    assert!(!succeeded && text.contains("is in use by another Outrigger"), "{text}");
    assert!(!file.exists());
    host.terminate();
    let (succeeded, text) = store(host.datadir(), &export);
    assert!(succeeded && text.contains("has 1 rows"), "{text}");
    let written = std::fs::read_to_string(&file).unwrap();
    let expected = "{\"plugin\":\"keeper\",\"version\":3}\n{\"key\":\"636f756e74\",\"value\":\"0100000000000000\"}\n{\"rows\":1}\n";
    assert_eq!(written, expected);
    let (succeeded, text) = store(host.datadir(), &import);
    assert!(!succeeded && text.contains("drop it first"), "{text}");
    assert!(store(host.datadir(), &["drop"]).0);
    let (succeeded, text) = store(host.datadir(), &["drop"]);
    assert!(!succeeded && text.contains("has no store"), "{text}");
    std::fs::write(&file, written.replace("0100000000000000", "2a00000000000000")).unwrap();
    assert!(store(host.datadir(), &import).0);
    let host = host.start_again();
    assert_eq!(host.client().call("keeperadd", json!([])), json!([43, 2]));
    assert_eq!(host.client().call("keeperabout", json!([]))["version"], json!(3));
}
