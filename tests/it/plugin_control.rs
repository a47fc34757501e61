//! Plugins are stopped, started and replaced while the host runs.

use outrigger_tests::{Gate, Host, HostOptions, built, plugin_section};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

use super::faults::instance;

struct Setup {
    folder: TempDir,
}

impl Setup {
    fn new(rest: &str) -> Self {
        let setup = Self { folder: tempfile::tempdir().unwrap() };
        setup.put(&std::fs::read(built().library("outrigger_faulty")).unwrap());
        setup.configure(rest);
        setup
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("faulty.so")
    }

    fn put(&self, content: &[u8]) {
        std::fs::write(self.file(), content).unwrap();
    }

    /// Writes the configuration; `rest` is added to the plugin's section.
    fn configure(&self, rest: &str) {
        let chain = "[[plugins]]\nfile = \"chain\"\ngrants = [\"chain/1\", \"mempool/1\", \"log/1\"]\n";
        let mining = "[[plugins]]\nfile = \"mining\"\ngrants = [\"chain/1\", \"mempool/1\", \"events/1\", \"log/1\"]\n";
        let faulty =
            format!("[[plugins]]\nfile = \"{}\"\ngrants = [\"chain/1\", \"log/1\"]\n{rest}", self.file().display());
        std::fs::write(self.config(), format!("{chain}{mining}{faulty}")).unwrap();
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("config.toml")
    }

    fn options(&self) -> HostOptions {
        HostOptions { config: Some(self.config()), ..HostOptions::default() }
    }

    fn start(&self) -> Host {
        Host::start_with(self.options())
    }
}

#[test]
fn stopplugin_and_startplugin_take_a_group_away_and_bring_it_back() {
    let host = Host::start();
    let mut client = host.client();
    let stopped = client.call("stopplugin", json!(["mining"]));
    assert_eq!((&stopped["id"], &stopped["draining"]), (&json!("mining"), &json!(0)));
    assert_eq!(client.refused("getblocktemplate", json!([{"rules": ["segwit"]}])), (-32601, "Method not found".into()));
    assert_eq!(client.call("getblockcount", json!([])), json!(0));
    let mining = client.plugin("mining");
    assert_eq!((&mining["state"], &mining["methods"]), (&json!("stopped"), &json!([])));
    let again = client.refused("stopplugin", json!(["mining"]));
    assert_eq!(again, (-1, "The plugin 'mining' is not running; startplugin starts it".into()));
    client.call("startplugin", json!(["mining"]));
    assert_eq!(client.call("getblocktemplate", json!([{"rules": ["segwit"]}]))["height"], json!(1));
    assert_eq!(client.plugin("mining")["state"], json!("running"));
    let again = client.refused("startplugin", json!(["mining"]));
    assert_eq!(again, (-1, "The plugin 'mining' is running; reloadplugin replaces it".into()));
    for method in ["startplugin", "stopplugin", "reloadplugin"] {
        let unknown = client.refused(method, json!(["/tmp/another.so"]));
        assert_eq!(unknown, (-8, "No plugin '/tmp/another.so' in the configuration".into()), "{method}");
    }
}

#[test]
fn reloadplugin_lets_calls_in_flight_end_on_the_old_instance() {
    let gate = Gate::new();
    let setup = Setup::new(&format!("{}options = {{ label = \"old\" }}\n", Gate::reach(&[&gate])));
    let host = setup.start();
    let mut client = host.client();
    let calls: Vec<_> = ["faultlate", "faultblocked"]
        .into_iter()
        .map(|method| {
            let (mut client, address) = (host.client(), gate.address());
            std::thread::spawn(move || client.call(method, json!([address])))
        })
        .collect();
    let waiting = [gate.wait(), gate.wait()];
    setup.configure("options = { label = \"new\" }\n");
    let reloaded = client.call("reloadplugin", json!(["faulty"]));
    assert_eq!(reloaded["draining"], json!(2));
    assert_eq!(client.call("faultwho", json!([])), json!({"label": "new", "instance": instance(2), "calls": 1}));
    drop(waiting);
    let answers: Vec<_> = calls.into_iter().map(|call| call.join().unwrap()).collect();
    assert_eq!(answers, [json!("late"), Value::Null]);
    let faulty = client.plugin("faulty");
    assert_eq!((&faulty["state"], &faulty["calls"], &faulty["errors"]), (&json!("running"), &json!(3), &json!(0)));
}

#[test]
fn reloadplugin_with_a_broken_file_or_configuration_or_one_without_the_plugin_keeps_the_old_instance() {
    let setup = Setup::new("options = { label = \"good\" }\n");
    let good = std::fs::read(setup.file()).unwrap();
    let host = setup.start();
    let mut client = host.client();
    let mut check = |reason: &str| {
        let (code, message) = client.refused("reloadplugin", json!(["faulty"]));
        assert!(code == -1 && message.contains(reason), "{code} {message}");
        assert_eq!(client.call("faultwho", json!([]))["label"], json!("good"));
    };
    setup.put(b"\x7fELF and nothing more");
    check("is not an Outrigger plugin: it is not a shared library");
    setup.put(good.get(..good.len() / 2).unwrap());
    check("is not an Outrigger plugin");
    std::fs::copy(built().library("outrigger_acme_mining"), setup.file()).unwrap();
    check("the file of the plugin 'faulty' holds a plugin 'acme-mining' now");
    setup.put(&good);
    for (option, reason) in [
        ("refuse_init", "plugin 'faulty' refused to start: refuse_init was asked for"),
        ("refuse_start", "plugin 'faulty' refused to start: refuse_start was asked for"),
        ("panic_init", "plugin 'faulty' refused to start: status 18"),
    ] {
        setup.configure(&format!("options = {{ {option} = true }}\n"));
        check(reason);
    }
    setup.configure("options = { label = 7 }\n");
    check("option 'label' must be of type string");
    std::fs::write(setup.config(), "[[plugins]\n").unwrap();
    check("The configuration cannot be used: ");
    std::fs::remove_file(setup.config()).unwrap();
    check("The configuration cannot be used: ");
    setup.configure("options = { label = \"better\" }\n");
    client.call("reloadplugin", json!(["faulty"]));
    assert_eq!(client.call("faultwho", json!([]))["label"], json!("better"));

    let chain = "[[plugins]]\nfile = \"chain\"\ngrants = [\"chain/1\", \"mempool/1\", \"log/1\"]\n";
    std::fs::write(setup.config(), chain).unwrap();
    let unknown = (-8, "No plugin 'faulty' in the configuration".to_owned());
    assert_eq!(client.refused("reloadplugin", json!(["faulty"])), unknown);
    client.call("faultwho", json!([]));
    client.call("stopplugin", json!(["faulty"]));
    assert_eq!(client.refused("startplugin", json!(["faulty"])), unknown);
    assert_eq!(client.refused("faultwho", json!([])).0, -32601);
}

const RELOADS: usize = 30;

#[test]
fn reloadplugin_under_load_loses_no_call() {
    let setup = Setup::new("");
    let host = setup.start();
    let done = Arc::new(AtomicBool::new(false));
    let load = |method: &'static str| {
        let (mut client, done) = (host.client(), done.clone());
        std::thread::spawn(move || {
            let mut calls = 0_u64;
            while !done.load(Ordering::Relaxed) {
                client.call(method, json!([]));
                calls += 1;
            }
            calls
        })
    };
    let callers = [load("faultwho"), load("faultwho"), load("getblockcount"), load("getmininginfo")];
    let mut client = host.client();
    for _ in 0..RELOADS {
        client.call("reloadplugin", json!(["faulty"]));
    }
    done.store(true, Ordering::Relaxed);
    let calls: Vec<u64> = callers.into_iter().map(|caller| caller.join().unwrap()).collect();
    assert!(calls.iter().all(|calls| *calls > 0), "{calls:?}");
    let (told, faulty) = (client.call("faultwho", json!([])), client.plugin("faulty"));
    assert_eq!(told["instance"], instance(RELOADS as u64 + 1));
    let counted = faulty["calls"].as_u64().unwrap();
    assert_eq!((counted, &faulty["errors"]), (calls[0] + calls[1] + 1, &json!(0)));
    println!("{} calls beside {RELOADS} reloads", calls.iter().sum::<u64>());
}

#[test]
fn host_refuses_a_plugin_file_that_others_may_write_or_with_another_sha256() {
    let setup = Setup::new(&format!("sha256 = \"{}\"\n", "0".repeat(64)));
    let allow = |path: &Path, mode: u32| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    let (file, folder) = (setup.file(), setup.folder.path());
    let error = Host::refused(&setup.options());
    assert!(error.contains(":10: plugins.sha256: ") && error.contains("the configuration pins 0000"), "{error}");
    let found = error.split("SHA-256 ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    setup.configure(&format!("sha256 = \"{}\"\n", found.to_uppercase()));
    allow(&file, 0o646);
    let error = Host::refused(&setup.options());
    let told = "may be changed by others (its mode is 0646)";
    assert!(error.contains(":8: plugins.file: ") && error.contains(told), "{error}");
    allow(&file, 0o644);
    let host = setup.start();
    assert_eq!(host.client().plugin("faulty")["hash"], json!(found));

    let check = |reason: &str| {
        let (code, message) = host.client().refused("reloadplugin", json!(["faulty"]));
        assert!(code == -1 && message.contains(reason), "{message}");
    };
    allow(&file, 0o664);
    check("its mode is 0664");
    allow(&file, 0o644);
    allow(folder, 0o775);
    check("its mode is 0775");
    allow(folder, 0o755);
    std::fs::copy(built().library("outrigger_acme_mining"), &file).unwrap();
    check(&format!("the configuration pins {}", found.to_uppercase()));
}

#[test]
fn plugin_cannot_end_itself_by_the_name_of_its_file() {
    let grants = "grants = [{ service = \"rpc/1\", methods = [\"reloadplugin\", \"stopplugin\"] }]\n";
    let host = Host::start_with(HostOptions::with_groups(&plugin_section("outrigger_chained", grants)));
    let mut client = host.client();
    let file = built().library("outrigger_chained").display().to_string();
    for (method, name) in [("reloadplugin", &*file), ("stopplugin", &*file), ("reloadplugin", "chained")] {
        let told = client.refused("callmethod", json!([method, [name], false]));
        assert_eq!(told, (-8, "The call goes through the plugin 'chained', which it would end".to_owned()), "{name}");
    }
}
