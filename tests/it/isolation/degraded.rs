//! Systems without parts of the sandbox: `require` refuses an insufficient sandbox, `best-effort` logs the missing parts.

use std::fs;
use std::path::Path;

use outrigger_tests::{Host, HostOptions, built, denied, skip};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::{alone, has_sandbox, refused};

const LANDLOCK: &[i64] = &[libc::SYS_landlock_create_ruleset];
const NAMESPACES: &[i64] = &[libc::SYS_unshare];
const BOTH: &[i64] = &[libc::SYS_landlock_create_ruleset, libc::SYS_unshare];

/// The system call that installs filters. The host does not use prctl for that.
const FILTERS: &[i64] = &[libc::SYS_seccomp];

/// Starts a host on a system that denies these calls. `sandbox` is the policy, and further lines of the section may follow.
fn start(calls: &[i64], sandbox: &str) -> (Host, NamedTempFile) {
    let log = NamedTempFile::new().unwrap();
    let options = HostOptions { log: Some(log.path().to_owned()), ..alone(&format!("sandbox = {sandbox}\n")) };
    built();
    (denied(calls, || Host::start_with(options)), log)
}

fn refusal(calls: &[i64]) -> String {
    let options = alone("");
    built();
    String::from_utf8(denied(calls, || Host::fail(&options)).stderr).unwrap()
}

fn missing(held: &Value) -> Vec<&str> {
    held["missing"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect()
}

#[test]
fn degraded_system_restricts_files_with_either_landlock_or_namespaces() {
    if !has_sandbox() {
        return;
    }
    let support = outrigger_sandbox::probe();
    let cases = [(LANDLOCK, support.root, "Landlock"), (NAMESPACES, support.landlock_abi > 0, "a root of its own")];
    for (calls, suffices, lacks) in cases {
        if !suffices {
            skip(&format!("this system has nothing in the place of {lacks}"));
            continue;
        }
        let (host, log) = start(calls, "\"require\"");
        let mut client = host.client();
        let held = client.plugin("hostile")["sandbox"].clone();
        assert!(missing(&held).contains(&lacks), "{held}");
        assert_eq!(held["seccomp"], json!(true));
        if calls == LANDLOCK {
            assert_eq!((&held["landlock_abi"], &held["root"]), (&json!(0), &json!(true)), "{held}");
        } else {
            assert_eq!((&held["root"], &held["namespaces"]), (&json!(false), &json!([])), "{held}");
            assert!(held["landlock_abi"].as_u64().unwrap() > 0, "{held}");
        }
        assert_eq!(client.refused("hostileread", json!(["/etc/passwd"])), refused());
        assert_eq!(client.refused("hostilewrite", json!(["/tmp/of-a-hostile-plugin"])), refused());
        assert_eq!(client.plugin("hostile")["denied"]["by_kind"]["open"]["count"], json!(2));
        // The host also logs that the other layer suffices.
        let text = fs::read_to_string(log.path()).unwrap();
        assert!(text.contains("this system does not allow all of the sandbox") && text.contains(lacks), "{text}");
    }
}

#[test]
fn degraded_system_that_restricts_no_files_is_refused_only_by_require() {
    if !has_sandbox() {
        return;
    }
    let error = refusal(BOTH);
    assert!(error.contains("plugin 'hostile' refused to start: this system does not allow a sandbox: "), "{error}");
    assert!(!error.contains("SIGKILL"), "how the host ended the process is of no use: {error}");
    for lacks in ["Landlock", "a root of its own", "a namespace of its own: user"] {
        assert!(error.contains(lacks), "{lacks}: {error}");
    }
    let (folder, beside) = (tempfile::tempdir().unwrap(), NamedTempFile::new().unwrap());
    let (host, log) = start(BOTH, &format!("\"best-effort\"\nreach = [\"write:{}\"]", folder.path().display()));
    let mut client = host.client();
    let held = client.plugin("hostile")["sandbox"].clone();
    assert!(["Landlock", "a root of its own"].iter().all(|lacks| missing(&held).contains(lacks)), "{held}");
    let text = fs::read_to_string(log.path()).unwrap();
    assert!(text.contains("this system does not allow all of the sandbox") && text.contains("Landlock"), "{text}");
    // The host itself refuses such files in its open calls then.
    assert_eq!(client.refused("hostileread", json!(["/etc/passwd"])), refused());
    let within = folder.path().join("file");
    client.call("hostilewrite", json!([within]));
    // Nothing would restrict the files that the plugin renames.
    let here = libc::AT_FDCWD;
    let rename = |from: &Path, to: &Path| json!([libc::SYS_renameat2, [here, from, here, to, 0]]);
    for (from, to) in [(beside.path(), folder.path().join("other")), (&within, folder.path().join("other"))] {
        assert_eq!(client.call("hostilecall", rename(from, &to)), json!(libc::EPERM));
    }
    assert!(beside.path().exists() && within.exists());
}

#[test]
fn degraded_system_without_filters_is_refused_only_by_require() {
    if !has_sandbox() {
        return;
    }
    let error = refusal(FILTERS);
    assert!(error.contains("this system does not allow a sandbox: filters of system calls (seccomp)"), "{error}");
    let (host, log) = start(FILTERS, "\"best-effort\"");
    let mut client = host.client();
    let held = client.plugin("hostile")["sandbox"].clone();
    assert_eq!(held["seccomp"], json!(false));
    assert!(missing(&held).contains(&"filters of system calls (seccomp)"), "{held}");
    assert!(fs::read_to_string(log.path()).unwrap().contains("filters of system calls (seccomp)"));
    // The other layers restrict files all the same.
    assert_eq!(client.refused("hostileread", json!(["/etc/passwd"])).0, -90);
}
