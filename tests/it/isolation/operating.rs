//! Reports on isolated plugins for operators and authors: `run --check`, `plugin check --isolated`, and the log.

use outrigger_tests::{Host, HostOptions, built, wait_until};
use serde_json::{Value, json};

use super::{alone, has_sandbox};
use crate::check::report;
use crate::operator::logged_with;

#[test]
fn run_check_lists_the_available_and_the_missing_sandbox_layers() {
    let vault = built().library("outrigger_vault_signing");
    let grants = "grants = [\"chain/1\", \"wallet-read/1\"]\nisolated = true\n";
    let text = |rest: &str| {
        let output = Host::check(&HostOptions::with_plugin("", vault, &format!("{grants}{rest}")));
        (output.status.code(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap())
    };
    let (code, told) = text("sandbox = \"none\"\n");
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("plugin 'vault-signing' runs in a process of its own, which nothing confines"), "{told}");
    if !has_sandbox() {
        return;
    }
    let (code, told) = text("");
    assert_eq!(code, Some(0), "{told}");
    let held = "plugin 'vault-signing' runs in a process of its own, held by a filter of system calls that reports each denial, ";
    assert!(told.contains(held) && told.contains("; it reaches nothing but its services\n"), "{told}");
    let asked = "plugin 'vault-signing' asks to reach connect:unix:/run/vault.sock, which is not granted: \
                 The daemon that has the keys.";
    assert!(told.contains(asked), "{told}");
    let (_, told) = text("reach = [\"connect:unix:/run/vault.sock\"]\n");
    assert!(told.contains("; it may connect to the Unix socket /run/vault.sock\n") && !told.contains("asks"), "{told}");
    let (code, told) = text("reach = [\"read:/nonexistent/acme\"]\n");
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("plugins.reach: plugin 'vault-signing': /nonexistent/acme: No such file"), "{told}");
}

#[test]
fn run_check_fails_if_a_required_sandbox_is_unavailable() {
    if !has_sandbox() {
        return;
    }
    let calls = [libc::SYS_landlock_create_ruleset, libc::SYS_unshare];
    let options = alone("");
    let output = outrigger_tests::denied(&calls, || Host::check(&options));
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("plugin 'hostile': this system does not allow a sandbox: "), "{error}");
    assert!(error.contains("Landlock; ") && error.contains("a root of its own"), "{error}");
    assert!(error.contains("a service unit or a container filters the system calls of this process"), "{error}");
    let options = alone("sandbox = \"best-effort\"\n");
    let output = outrigger_tests::denied(&calls, || Host::check(&options));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("\nthis system does not allow: ") && told.contains("a root of its own"), "{told}");
    assert!(output.status.success(), "{told}");
}

fn check(library: &str, arguments: &[&str]) -> Value {
    report(library, &[&["--isolated"], arguments].concat())
}

fn findings(report: &Value) -> Vec<&str> {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().flat_map(|check| check["findings"].as_array().unwrap()).map(|text| text.as_str().unwrap()).collect()
}

#[test]
fn plugin_check_isolated_passes_good_plugins() {
    for library in ["outrigger_acme_mining", "outrigger_history", "outrigger_signing"] {
        let report = check(library, &[]);
        assert_eq!(report["passed"], json!(true), "{report:#}");
        assert!(!report.to_string().contains("refused by the sandbox"), "{report:#}");
    }
}

#[test]
fn plugin_check_isolated_names_methods_that_end_the_process_and_continues() {
    let methods = ["faultabort", "faultexit", "faultdrop", "faultsilent", "faultwho", "faultpanic"];
    let named: Vec<&str> = methods.iter().flat_map(|method| ["--method", method]).collect();
    let arguments = [&named[..], &["--only", "parameters", "--deadline", "3"]].concat();
    let report = check("outrigger_faulty", &arguments);
    let found = findings(&report);
    for expected in [
        "faultabort []: it ended its process (SIGABRT)",
        "faultexit []: it ended its process (exit code 3)",
        "faultdrop []: its reply was dropped unanswered",
        "faultpanic []: the call of faultpanic returned status 18",
    ] {
        assert!(found.iter().any(|finding| finding.starts_with(expected)), "{expected}: {found:#?}");
    }
    assert!(!found.iter().any(|finding| finding.contains("faultwho")), "{found:#?}");
}

#[test]
fn plugin_check_isolated_reports_faults_and_exits_in_functions_without_an_answer() {
    for (option, only, expected) in [
        ("panic_event", "events", "an event returned status 18"),
        ("abort_event", "events", "an event returned status 18"),
        ("panic_cancel", "cancellation", "faultwho []: a cancellation returned status 18"),
        ("panic_quiesce", "lifecycle", "quiesce returned status 18"),
        ("panic_stop", "lifecycle", "stop returned status 18"),
        ("abort_stop", "lifecycle", "stop returned status 18"),
    ] {
        let option = format!("{option}=true");
        let report = check("outrigger_faulty", &["--option", &option, "--method", "faultwho", "--only", only]);
        let found = findings(&report);
        assert!(found.iter().any(|finding| finding.starts_with(expected)), "{option}: {found:#?}");
    }
}

#[test]
fn plugin_check_isolated_reports_a_stop_that_does_not_return() {
    let stopping = ["--option", "block_stop=true", "--method", "faultwho", "--only", "lifecycle", "--deadline"];
    // On a busy machine, the plugin's start may take longer than a short deadline.
    let in_time = |deadline: &'static str| {
        let report = check("outrigger_faulty", &[&stopping[..], &[deadline]].concat());
        let is_late = findings(&report).iter().any(|finding| finding.starts_with("open: "));
        (!is_late).then_some((deadline, report))
    };
    let (deadline, report) = ["1", "4", "16", "64"].into_iter().find_map(in_time).unwrap();
    let expected = format!("stop: it did not return within {deadline} s");
    assert!(findings(&report).iter().any(|finding| finding.starts_with(&expected)), "{report:#}");
}

#[test]
fn plugin_check_isolated_reports_the_refusals_of_the_sandbox() {
    if !has_sandbox() {
        return;
    }
    let call = ["--call", "hostileread=[\"/etc/passwd\"]", "--method", "hostileread", "--only", "parameters"];
    let report = check("outrigger_hostile", &call);
    let detail = report["checks"][1]["detail"].as_str().unwrap();
    assert!(detail.contains("; refused by the sandbox: ") && detail.contains("openat /etc/passwd"), "{report:#}");
    let granted = [&call[..], &["--reach", "read:/etc/passwd"]].concat();
    let report = check("outrigger_hostile", &granted);
    assert!(!report["checks"][1]["detail"].as_str().unwrap().contains("openat /etc/passwd"), "{report:#}");
}

#[test]
fn isolated_plugin_leaves_core_files_only_without_a_sandbox() {
    if !has_sandbox() {
        return;
    }
    let limit = |pid: u64| {
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let line = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    for (rest, allowed) in [("", false), ("sandbox = \"none\"\n", true)] {
        let host = Host::start_with(alone(rest));
        let told = host.client().plugin("hostile");
        let own = limit(told["pid"].as_u64().unwrap());
        if allowed {
            assert_eq!(own, limit(u64::from(host.process_id())));
        } else {
            // A limit below 2 bytes allows neither a core file nor a pipe to a core handler.
            assert!(["0", "1"].contains(&own[1].as_str()), "{own:?}");
        }
        assert_eq!(told["sandbox"]["hidden"] == true, !allowed, "{rest}");
    }
}

#[test]
fn host_logs_an_isolated_plugins_standard_error_with_its_name() {
    // The host starts also with a relative path of the data directory.
    let (host, log) = logged_with(HostOptions { relative: true, ..alone("sandbox = \"best-effort\"\n") });
    let told = host.client().plugin("hostile");
    assert!(told["pid"].is_u64() && told["state"] == "running", "{told}");
    host.client().call("hostilesay", json!(["tra la\u{1b}[2J"]));
    wait_until("the line is in the log", || {
        log().lines().any(|line| line.contains("tra la\u{fffd}[2J") && line.contains("plugin=\"hostile\""))
    });
}
