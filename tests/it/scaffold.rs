//! `outrigger plugin new` and `plugin dev` as a third party uses them: the crate is built outside the workspace, with another profile and
//! other dependency features than the host, and is installed with the configuration that came with it.

use outrigger_tests::{Client, Host, HostOptions, built, wait_for, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A profile that differs from the host's build. [`DEPENDENCIES`] has other features of shared dependencies.
const PROFILE: &str = "[profile.release]\nopt-level = 0\ncodegen-units = 16\nlto = false\noverflow-checks = false\n";

const DEPENDENCIES: &str = "[dependencies]\n\
    serde_json = { version = \"1\", features = [\"float_roundtrip\", \"unbounded_depth\"] }\n\
    bitcoin = { version = \"0.32\", default-features = false, features = [\"secp-lowmemory\"] }\n";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// The folder in which the tests build such crates. It is kept between runs, so that only the plugin itself is built again.
fn workshop() -> PathBuf {
    built().folder().join("../third-party")
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn create(name: &str, parent: &Path) -> PathBuf {
    // Remove the crate of an earlier run. The path must stay the same, so that cargo recognises it.
    let _ = fs::remove_dir_all(parent.join(name));
    fs::create_dir_all(parent).unwrap();
    let mut command = Command::new(&built().binary);
    let output = run(command.args(["plugin", "new", name, "--sdk"]).arg(workspace().join("sdk")).current_dir(parent));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with(&format!("Wrote {name}/. Next:")), "{text}");
    parent.join(name)
}

fn change(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{}: {text}", file.display());
    fs::write(file, text.replacen(from, to, 1)).unwrap();
}

/// Held by a test that builds in the workshop, where cargo lets one build run at a time.
static BUILDS: Mutex<()> = Mutex::new(());

/// Creates a crate that cargo builds unlike the host, with the dependencies that the workspace has downloaded.
fn create_unlike(name: &str) -> (PathBuf, MutexGuard<'static, ()>) {
    let builds = BUILDS.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = create(name, &workshop());
    change(&folder.join("Cargo.toml"), "[profile.release]\n", PROFILE);
    change(&folder.join("Cargo.toml"), "[dependencies]\n", DEPENDENCIES);
    fs::copy(workspace().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    (folder, builds)
}

fn cargo(folder: &Path, command: &str) -> Output {
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    cargo.args([command, "--release", "--offline", "--target-dir"]).arg(workshop().join("target"));
    run(cargo.current_dir(folder))
}

/// Builds and tests a new crate. Returns the library's path.
fn build(folder: &Path, library: &str) -> PathBuf {
    let tests = String::from_utf8(cargo(folder, "test").stdout).unwrap();
    assert!(tests.contains("2 passed; 0 failed"), "{tests}");
    cargo(folder, "build");
    let file = format!("target/release/liboutrigger_{library}{}", std::env::consts::DLL_SUFFIX);
    let installed = folder.join(&file);
    fs::create_dir_all(installed.parent().unwrap()).unwrap();
    fs::copy(workshop().join(&file), &installed).unwrap();
    // Only the owner may write the file and the folders of cargo and `plugin new`, whatever the umask is.
    for trusted in installed.ancestors().take(4) {
        fs::set_permissions(trusted, fs::Permissions::from_mode(0o755)).unwrap();
    }
    installed
}

#[test]
fn plugin_new_makes_a_crate_that_builds_installs_and_answers() {
    let (folder, _builds) = create_unlike("acme-countdown");
    let library = build(&folder, "acme_countdown");
    let checked = Command::new(&built().binary).args(["plugin", "check"]).arg(&library).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    let config = folder.join("outrigger.toml");
    change(&config, "spacing_seconds = 600", "spacing_seconds = 60");
    let plugin_dirs = vec![library.parent().unwrap().to_owned()];
    let host = Host::start_with(HostOptions { config: Some(config), plugin_dirs, ..HostOptions::default() });
    let mut client = host.client();
    assert_eq!(client.call("acmecountdown", json!([5])), json!({"blocks": 5, "seconds": 300}));
    let (code, message) = client.refused("acmecountdown", json!(["five"]));
    assert_eq!(
        (code, message.as_str()),
        (
            -3,
            "Wrong type passed:\n{\n    \"Position 1 (height)\": \"JSON value of type string is not of expected type number\"\n}"
        )
    );
    let help = client.call("help", json!([]));
    assert!(help.as_str().unwrap().contains("== AcmeCountdown ==\nacmecountdown height"), "{help}");
}

/// A running `outrigger plugin dev`.
struct Dev {
    child: Child,
    lines: Receiver<String>,
}

impl Dev {
    fn command(folder: &Path, datadir: &Path) -> Command {
        let mut command = Command::new(&built().binary);
        command.args(["plugin", "dev", "--datadir"]).arg(datadir).current_dir(folder);
        command.env("CARGO_TARGET_DIR", workshop().join("target")).env("CARGO_NET_OFFLINE", "true");
        command
    }

    fn start(folder: &Path, datadir: &Path) -> Self {
        let mut child = Self::command(folder, datadir).stdout(Stdio::piped()).spawn().unwrap();
        let (output, (lines, received)) = (BufReader::new(child.stdout.take().unwrap()), channel());
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
        Self { child, lines: received }
    }

    /// Waits for the next line with this text, and returns it.
    fn wait_for_line(&self, text: &str) -> String {
        wait_for(text, || self.lines.try_iter().find(|line| line.contains(text)))
    }

    fn interrupt(&mut self) -> ExitStatus {
        if self.child.try_wait().unwrap().is_none() {
            kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        }
        self.child.wait().unwrap()
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        self.interrupt();
    }
}

#[test]
fn plugin_dev_builds_runs_reloads_and_keeps_the_running_plugin_after_a_failure() {
    let (folder, _builds) = create_unlike("acme-dev");
    // Without this, a system without a sandbox would refuse to start the plugin.
    change(&folder.join("outrigger.toml"), "[[plugins]]", "[plugin_defaults]\nisolated = \"none\"\n\n[[plugins]]");
    // Built in advance without a timeout. `plugin dev` then builds the crate alone.
    cargo(&folder, "build");
    // As with a umask of 0002: the host refuses the library in cargo's folder.
    let release = workshop().join("target/release");
    for open in [&folder, &release, &release.join("liboutrigger_acme_dev.so")] {
        fs::set_permissions(open, fs::Permissions::from_mode(0o775)).unwrap();
    }
    let datadir = tempfile::tempdir().unwrap();
    let mut dev = Dev::start(&folder, datadir.path());
    let ready = dev.wait_for_line("Outrigger is ready: http://");
    let address = ready.split("http://").nth(1).and_then(|rest| rest.split('/').next()?.parse().ok()).unwrap();
    let call = dev.wait_for_line("outrigger call --datadir ");
    let expected = format!(" call --datadir {} acmedev 1000", datadir.path().display());
    assert!(call.ends_with(&expected), "{call}");
    let mut client = Client::new(address, &fs::read_to_string(datadir.path().join("regtest/.cookie")).unwrap());
    assert_eq!(client.call("acmedev", json!([5])), json!({"blocks": 5, "seconds": 3000}));

    change(&folder.join("outrigger.toml"), "spacing_seconds = 600", "spacing_seconds = 60");
    dev.wait_for_line("dev: reloaded acme-dev 0.1.0 after ");
    assert_eq!(client.call("acmedev", json!([5])), json!({"blocks": 5, "seconds": 300}));

    let code = folder.join("src/lib.rs");
    change(&code, "json!({\"blocks\": blocks,", "json!({\"from\": tip.height, \"blocks\": blocks,");
    dev.wait_for_line("dev: reloaded acme-dev 0.1.0 after ");
    let answer = json!({"from": 0, "blocks": 5, "seconds": 300});
    assert_eq!(client.call("acmedev", json!([5])), answer);

    let second = Dev::command(&folder, datadir.path()).arg("--once").output().unwrap();
    let error = String::from_utf8(second.stderr).unwrap();
    assert!(!second.status.success() && error.contains("another `outrigger plugin dev` uses "), "{error}");

    change(&code, "Ok(json!", "Ok(jsn!");
    dev.wait_for_line("dev: cargo build failed");
    dev.wait_for_line("dev: the running instance continues");
    assert_eq!(client.call("acmedev", json!([5])), answer);
    let once = Dev::command(&folder, datadir.path()).arg("--once").output().unwrap();
    let error = String::from_utf8(once.stderr).unwrap();
    assert!(!once.status.success() && error.contains("jsn") && error.ends_with("cargo build failed\n"), "{error}");

    // `plugin dev` does not load a library that the check refuses.
    change(&code, "Ok(jsn!", "Ok(json!");
    change(
        &code,
        "host.log(Level::Info, \"ready\");",
        "host.log(Level::Info, \"ready\");\n        assert!(options.spacing_seconds == 0);",
    );
    dev.wait_for_line("dev: plugin check refuses the library");
    dev.wait_for_line("dev: the running instance continues");
    assert_eq!(client.call("acmedev", json!([5])), answer);
    assert!(dev.interrupt().success());
    wait_until("the host has ended", || TcpStream::connect(address).is_err());
}

#[test]
fn plugins_of_an_installed_host_are_found_below_its_lib() {
    let top = tempfile::tempdir().unwrap();
    let (bin, lib) = (top.path().join("bin"), top.path().join("lib/outrigger"));
    let program = bin.join("outrigger");
    let library = built().library("outrigger_chain");
    for (folder, file) in [(&bin, &built().binary), (&lib, library)] {
        fs::create_dir_all(folder).unwrap();
        let installed = folder.join(file.file_name().unwrap());
        fs::copy(file, &installed).unwrap();
        for trusted in installed.ancestors().take_while(|trusted| trusted.starts_with(top.path())) {
            fs::set_permissions(trusted, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    let chain = "[[plugins]]\nfile = \"chain\"\ngrants = [\"chain/1\", \"mempool/1\", \"log/1\"]\n";
    let host = Host::start_with(HostOptions { program: Some(program), ..HostOptions::configured(chain) });
    assert_eq!(host.client().call("getblockcount", json!([])), json!(0));
}

#[test]
fn plugin_new_fills_in_its_files_overwrites_none_and_refuses_bad_names() {
    let parent = tempfile::tempdir().unwrap();
    fs::create_dir(parent.path().join("taken")).unwrap();
    for (name, expected) in [("taken", "taken exists already"), ("Nine", "is not a valid plugin name")] {
        let mut command = Command::new(&built().binary);
        command.args(["plugin", "new", name, "--sdk"]).arg(workspace().join("sdk")).current_dir(parent.path());
        let output = command.output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(expected), "{error}");
    }
    assert_eq!(fs::read_dir(parent.path().join("taken")).unwrap().count(), 0);
    let folder = create("acme-hello", parent.path());
    for file in ["Cargo.toml", "src/lib.rs", "outrigger.toml"] {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        let checkout = workspace().display().to_string();
        assert!(!text.contains("{{") && !text.contains(&format!("\"{checkout}")), "{file}: {text}");
    }
}
