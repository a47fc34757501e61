//! The program without libraries runs its built-in groups, unless the configuration requires a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use outrigger_tests::{Client, Host, HostOptions, all_groups, built, wait_until};
use serde_json::{Value, json};
use tempfile::{NamedTempFile, TempDir};

use crate::isolation::has_sandbox;

const GROUPS: [&str; 8] = ["chain", "mining", "wallet", "import", "signing", "psbt", "history", "webhooks"];

fn alone(options: HostOptions) -> Host {
    Host::start_with(with_program(options))
}

fn with_program(options: HostOptions) -> HostOptions {
    HostOptions { program: Some(built().alone.clone()), ..options }
}

/// All eight groups, with this file of secrets.
fn with_webhooks(secrets: &Path) -> HostOptions {
    fs::write(secrets, "shop a shared secret\n").unwrap();
    let text = all_groups();
    let grants = "grants = [\"wallet-read/1\", \"store/1\", \"log/1\"]\nreach = [\"connect:tcp:127.0.0.1:9\"]";
    let rest = format!("{grants}\noptions = {{ hooks = [], secrets = {{ file = {secrets:?} }} }}\n");
    HostOptions::with_plugin(&text, Path::new("webhooks"), &rest)
}

fn listed(client: &mut Client) -> Vec<Value> {
    client.call("listplugins", json!([])).as_array().unwrap().clone()
}

/// Calls a method of each group except webhooks.
fn each_group_answers(host: &Host) {
    let key = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v";
    let mut wallet = host.new_wallet("w");
    wallet.mine(1);
    assert_eq!(wallet.call("getblockcount", json!([])), json!(1));
    assert_eq!(wallet.call("listtransactions", json!([]))[0]["category"], "immature");
    wallet.import(&json!([{"desc": format!("wpkh({key})#pdry7alk"), "timestamp": "now"}]));
    assert!(wallet.call("createpsbt", json!([[], [{"data": "00"}]])).as_str().unwrap().starts_with("cHNidP"));
    assert!(wallet.call("signmessagewithprivkey", json!([key, "text"])).as_str().unwrap().ends_with('='));
}

#[test]
fn built_in_groups_answer_from_the_program_alone() {
    let host = alone(HostOptions { relative: true, ..HostOptions::default() });
    each_group_answers(&host);
    let plugins = listed(&mut host.client());
    let ids: Vec<&str> = plugins.iter().map(|plugin| plugin["id"].as_str().unwrap()).collect();
    assert_eq!(ids, &GROUPS[..7], "the configuration lists no other");
    for plugin in &plugins {
        assert_eq!(
            (&plugin["form"], &plugin["file"], &plugin["hash"], &plugin["state"]),
            (&json!("built-in"), &Value::Null, &Value::Null, &json!("running"))
        );
    }
    assert_eq!(host.client().refused("listwebhooks", json!([])).0, -32601);
}

fn check_reads_are_never_denied(host: &Host) {
    let mut wallet = host.new_wallet("read");
    for _ in 0..4 {
        // After the first calls, the host sends the answer to a method's first service request with the call.
        wallet.call("getblockcount", json!([]));
        wallet.call("getwalletinfo", json!([]));
        wallet.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
        wallet.call("listsinceblock", json!([]));
    }
    for plugin in listed(&mut wallet).iter().filter(|plugin| plugin["id"] != "webhooks") {
        assert_eq!((&plugin["isolated"], &plugin["denied"]["count"]), (&json!(true), &json!(0)), "{plugin}");
    }
}

#[test]
fn built_in_groups_in_their_own_processes_have_the_sandbox_of_libraries() {
    if !has_sandbox() {
        return;
    }
    let secrets = NamedTempFile::new().unwrap();
    let options = with_webhooks(secrets.path()).and(&["plugin_defaults.isolated='all'"]);
    let (host, of_files) =
        (alone(options.clone()), Host::start_with(HostOptions { program: Some(built().binary.clone()), ..options }));
    for host in [&host, &of_files] {
        check_reads_are_never_denied(host);
        each_group_answers(host);
        assert_eq!(host.client().call("listwebhooks", json!([])), json!([]));
    }
    let mut client = host.client();
    for (plugin, of_file) in listed(&mut client).iter().zip(listed(&mut of_files.client())) {
        assert_eq!((&plugin["form"], &of_file["form"]), (&json!("built-in"), &json!("library")));
        assert_eq!((&plugin["isolated"], &plugin["crashes"]), (&json!(true), &json!(0)));
        for key in ["id", "version", "sandbox", "denied", "methods", "grants"] {
            assert_eq!(plugin[key], of_file[key], "{}: {key}", plugin["id"]);
        }
        // The root of a built-in group's process is empty; a library's holds the library. Only root can check this.
        let folders = |plugin: &Value| fs::read_dir(format!("/proc/{}/root", plugin["pid"])).map(Iterator::count);
        if let (Ok(own), Ok(others), true) = (folders(plugin), folders(&of_file), plugin["sandbox"]["root"] == true) {
            assert!(own == 0 && others > 0, "{}: {own}, {others}", plugin["id"]);
        }
    }
    let pid = client.plugin("chain")["pid"].as_u64().unwrap();
    client.kill_plugin("chain");
    wait_until("another process runs the group", || {
        let now = host.client().plugin("chain");
        now["crashes"] == 1 && now["pid"].as_u64().is_some_and(|now| now != pid)
    });
    assert_eq!(client.call("getblockcount", json!([])), json!(1));
}

/// The program as `cargo install` installs it, in a folder to which the test can add libraries.
struct Installed(TempDir);

impl Installed {
    fn new() -> Self {
        let installed = Self(tempfile::tempdir().unwrap());
        installed.put(&built().binary);
        installed
    }

    /// Copies in a separate process: a child forked by another test would inherit our descriptor open for writing, and exec would
    /// fail with ETXTBSY.
    fn put(&self, file: &Path) {
        fs::create_dir_all(self.bin()).unwrap();
        assert!(Command::new("cp").arg(file).arg(self.bin()).status().unwrap().success());
    }

    fn bin(&self) -> PathBuf {
        self.0.path().join("bin")
    }

    fn options(&self) -> HostOptions {
        HostOptions { program: Some(self.bin().join("outrigger")), ..HostOptions::default() }
    }
}

#[test]
fn built_in_group_yields_to_a_file_and_reloads_only_from_a_file() {
    let installed = Installed::new();
    installed.put(built().library("outrigger_signing"));
    let host = Host::start_with(installed.options());
    let mut client = host.client();
    assert_eq!(client.plugin("signing")["form"], "library");
    let refused = "A reload of the plugin 'mining' needs its library in a folder: the program's own copy changes with the program";
    assert_eq!(client.refused("reloadplugin", json!(["mining"])), (-1, refused.to_owned()));
    assert_eq!(client.call("getblocktemplate", json!([{"rules": ["segwit"]}]))["height"], 1);
    // Stopping and starting the plugin makes a new instance.
    client.call("stopplugin", json!(["mining"]));
    let started = client.call("startplugin", json!(["mining"]));
    assert_eq!((&started["id"], &started["hash"]), (&json!("mining"), &Value::Null));
    assert_eq!(client.plugin("mining")["form"], "built-in");

    installed.put(built().library("outrigger_mining"));
    assert_eq!(client.call("reloadplugin", json!(["mining"]))["hash"].as_str().map(str::len), Some(64));
    let (mining, chain) = (client.plugin("mining"), client.plugin("chain"));
    assert_eq!((&mining["form"], &chain["form"]), (&json!("library"), &json!("built-in")));
    assert_eq!(client.call("getblocktemplate", json!([{"rules": ["segwit"]}]))["height"], 1);
    // The plugin keeps running from a deleted file; the built-in copy does not replace it.
    fs::remove_file(installed.bin().join(built().library("outrigger_mining").file_name().unwrap())).unwrap();
    assert_eq!(client.refused("reloadplugin", json!(["mining"])).1, refused);
    assert_eq!(client.plugin("mining")["form"], "library");
}

#[test]
fn built_in_group_gets_new_options_on_reload() {
    let secrets = NamedTempFile::new().unwrap();
    let host = alone(with_webhooks(secrets.path()));
    assert_eq!(host.client().call("listwebhooks", json!([])), json!([]));
    host.change("hooks = []", "hooks = [{ url = \"http://127.0.0.1:9/\", secret = \"shop\" }]");
    let mut command = Command::new(&built().alone);
    let output = command.arg("reload").arg("--datadir").arg(host.datadir()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(host.client().call("listwebhooks", json!([])).as_array().unwrap().len(), 1);
    assert_eq!(host.client().plugin("webhooks")["form"], "built-in");
}

#[test]
fn built_in_group_never_replaces_a_configured_file() {
    let grants = "grants = [\"chain/1\", \"mempool/1\", \"events/1\", \"log/1\"]\n";
    let refused = |section: &str, plugin_dirs: &[PathBuf]| {
        let options = HostOptions::configured(&format!("[[plugins]]\n{section}\n{grants}"));
        Host::refused(&with_program(HostOptions { plugin_dirs: plugin_dirs.to_vec(), ..options }))
    };
    let bin = built().alone.parent().unwrap();
    let beside = bin.join("liboutrigger_mining.so").display().to_string();
    let (missing, pin) = ("/nonexistent/mining", "00".repeat(32));
    let here = std::env::current_dir().unwrap().display().to_string();
    for (section, expected) in [
        (format!("file = \"{missing}\""), format!("plugin '{missing}' was not found; looked for {missing}\n")),
        ("file = \"./mining\"".to_owned(), format!("plugin '{here}/mining' was not found; looked for {here}/mining\n")),
        (
            "file = \"mining.so\"".to_owned(),
            format!("plugin '{here}/mining.so' was not found; looked for {here}/mining.so\n"),
        ),
        (
            format!("file = \"mining\"\nsha256 = \"{pin}\""),
            "; the program's own copy is not used with sha256\n".to_owned(),
        ),
        ("file = \"acme-mining\"".to_owned(), "plugin 'acme-mining' was not found; looked for ".to_owned()),
        ("file = \"mining\"\noptions = { min_feerate = 9000 }".to_owned(), "plugin 'mining': ".to_owned()),
    ] {
        let error = refused(&section, &[]);
        assert!(error.contains(&expected), "{section}: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let error = refused("file = \"mining\"", &[folder.path().to_owned()]);
    let named = folder.path().join("liboutrigger_mining.so").display().to_string();
    assert!(error.contains(&named) && error.contains(&beside), "{error}");
    assert!(error.ends_with("; the program's own copy is not used with --plugin-dir\n"), "{error}");
}

#[test]
fn plugin_inspect_and_run_check_report_built_in_groups() {
    let run = |program: &Path, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let alone = &built().alone;
    for group in GROUPS {
        let file = built().library(&format!("outrigger_{group}")).display().to_string();
        let (own, of_file) = (run(alone, &["plugin", "inspect", group]), run(alone, &["plugin", "inspect", &file]));
        let place = format!("\nfile      {file}\n");
        assert!(own.contains("\nform      built into the program") && of_file.contains(&place), "{own}{of_file}");
        let rest = |text: &str| {
            let lines =
                text.lines().filter(|line| !["file ", "sha256 ", "form "].iter().any(|key| line.starts_with(key)));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(rest(&own), rest(&of_file));
    }
    let folder = tempfile::tempdir().unwrap();
    let check = ["run", "--check", "--rpc-listen", "127.0.0.1:0", "--datadir", folder.path().to_str().unwrap()];
    let told = format!("the program's own copies run, since no folder has their libraries: {}", GROUPS[..7].join(", "));
    assert!(run(alone, &check).contains(&told));
    assert!(!run(&built().binary, &check).contains("the program's own copies"));
}
