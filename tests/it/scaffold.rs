//! `outrigger plugin new`, as a third party uses it: the crate is built outside of the workspace, in another profile and with
//! other features of the dependencies than the host's, and is installed by the configuration that it came with.

use outrigger_tests::{Host, HostOptions, built};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What the host's own build does not have: another optimisation, other features of what both are made of.
const PROFILE: &str =
    "[profile.release]\nopt-level = \"s\"\ncodegen-units = 16\nlto = false\noverflow-checks = false\n";

const DEPENDENCIES: &str = "[dependencies]\n\
    serde_json = { version = \"1\", features = [\"float_roundtrip\", \"unbounded_depth\"] }\n\
    bitcoin = { version = \"0.32\", default-features = false, features = [\"secp-lowmemory\"] }\n";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// Where such crates are built, kept between runs, so that only the plugin itself is built anew.
fn workshop() -> PathBuf {
    built().folder().join("../third-party")
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn create(name: &str, parent: &Path) -> PathBuf {
    // What an earlier run left, whose path must be the same for cargo to know it again.
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

/// Builds and tests a new crate with nothing but what the workspace has downloaded. The library.
fn build(folder: &Path, library: &str) -> PathBuf {
    fs::copy(workspace().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let target = workshop().join("target");
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
        command.args(arguments).args(["--release", "--offline", "--target-dir"]).arg(&target);
        run(command.current_dir(folder))
    };
    let tests = String::from_utf8(cargo(&["test"]).stdout).unwrap();
    assert!(tests.contains("2 passed; 0 failed"), "{tests}");
    cargo(&["build"]);
    let file = format!("target/release/liboutrigger_{library}{}", std::env::consts::DLL_SUFFIX);
    let installed = folder.join(&file);
    fs::create_dir_all(installed.parent().unwrap()).unwrap();
    fs::copy(workshop().join(&file), &installed).unwrap();
    // The file, and the folders that cargo and `plugin new` made, whatever their modes are where this runs.
    for trusted in installed.ancestors().take(4) {
        fs::set_permissions(trusted, fs::Permissions::from_mode(0o755)).unwrap();
    }
    installed
}

#[test]
fn plugin_new_makes_a_crate_that_builds_installs_and_answers() {
    let folder = create("acme-countdown", &workshop());
    change(&folder.join("Cargo.toml"), "[profile.release]\n", PROFILE);
    change(&folder.join("Cargo.toml"), "[dependencies]\n", DEPENDENCIES);
    let library = build(&folder, "acme_countdown");
    let checked = Command::new(&built().binary).args(["plugin", "check"]).arg(&library).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    let config = folder.join("outrigger.toml");
    change(&config, "spacing_seconds = 600", "spacing_seconds = 60");
    let host = Host::start_with(HostOptions { config: Some(config), ..HostOptions::default() });
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

#[test]
fn plugin_new_writes_nothing_over_and_refuses_bad_names() {
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
}

#[test]
fn plugin_check_passes_our_groups_and_plugin_new_fills_in_its_files() {
    let check = |file: &Path| Command::new(&built().binary).args(["plugin", "check"]).arg(file).output().unwrap();
    for library in ["outrigger_history", "outrigger_mining", "outrigger_signing", "outrigger_import"] {
        let output = check(built().library(library));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains(" 0 failed, "), "{library}: {text}");
    }
    assert!(!check(Path::new("/nonexistent.so")).status.success());

    let folder = tempfile::tempdir().unwrap();
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk");
    let new = |name: &str| {
        let mut command = Command::new(&built().binary);
        command.current_dir(folder.path()).args(["plugin", "new", name, "--sdk"]).arg(&sdk).output().unwrap()
    };
    assert!(new("acme-hello").status.success());
    for file in ["Cargo.toml", "src/lib.rs", "outrigger.toml"] {
        let text = fs::read_to_string(folder.path().join("acme-hello").join(file)).unwrap();
        assert!(!text.contains("{{"), "{file}: {text}");
    }
    let again = String::from_utf8(new("acme-hello").stderr).unwrap();
    assert!(again.contains("acme-hello exists already"), "{again}");
    assert!(!new("Acme").status.success());
}
