//! `outrigger plugin check` passes good plugins and names each kind of misbehaviour. `outrigger plugin inspect` shows a plugin.

use outrigger_tests::{Host, HostOptions, built, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(file: &Path, arguments: &[&str]) -> Output {
    Command::new(&built().binary).args(["plugin", "check"]).arg(file).args(arguments).output().unwrap()
}

/// The report on a plugin, as JSON; the exit code must agree with it.
pub fn report(library: &str, arguments: &[&str]) -> Value {
    let output = run(built().library(library), &[arguments, &["--json"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(report["passed"] == Value::Bool(true), output.status.success(), "{report:#}");
    report
}

/// A report's check of this name.
pub fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|check| check["check"] == name).unwrap_or_else(|| panic!("no check {name}: {report:#}"))
}

/// The findings of a check of the faulty plugin.
fn findings(name: &str, arguments: &[&str]) -> Vec<String> {
    let report = report("outrigger_faulty", &[arguments, &["--only", name]].concat());
    let check = check(&report, name);
    assert_eq!(check["verdict"], "FAILED", "{arguments:?}: {report:#}");
    check["findings"].as_array().unwrap().iter().map(|finding| finding.as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn found(findings: &[String], expected: &str) {
    assert!(findings.iter().any(|finding| finding.contains(expected)), "{expected}: {findings:#?}");
}

#[test]
fn plugin_check_passes_good_plugins_and_names_what_it_tried() {
    for (library, name, details) in [
        ("outrigger_chain", "", &[][..]),
        ("outrigger_history", "", &[]),
        ("outrigger_wallet", "", &[]),
        ("outrigger_signing", "", &[]),
        ("outrigger_import", "", &[]),
        ("outrigger_mining", "tokens", &["kept until quiesce: ", "of getblocktemplate"]),
        // Plugins of others, of which the second asks the node.
        ("outrigger_acme_mining", "options", &["of which it refused 2"]),
        ("outrigger_node_policy", "", &[]),
    ] {
        let report = report(library, &[]);
        assert_eq!(report["passed"], true, "{report:#}");
        let id = library.trim_start_matches("outrigger_").replace('_', "-");
        assert_eq!(report["plugin"]["id"], json!(id));
        let detail = |part: &str| check(&report, name)["detail"].as_str().unwrap().contains(part);
        assert!(details.iter().all(|part| detail(part)), "{details:?}: {report:#}");
    }
}

#[test]
fn plugin_check_passes_the_faulty_plugins_good_methods() {
    let good = ["--method", "faultwho", "--method", "faultlate", "--method", "faultevents"];
    let report = report("outrigger_faulty", &[&good[..], &["--only", "tokens", "--only", "concurrency"]].concat());
    assert_eq!(report["passed"], true, "{report:#}");
    let tokens = check(&report, "tokens")["detail"].as_str().unwrap();
    assert!(tokens.contains("of faultevents") && tokens.contains("of faultlate"), "{tokens}");
}

#[test]
fn plugin_check_parameters_names_wrong_calls_with_method_and_arguments() {
    let findings = findings("parameters", &["--deadline", "3"]);
    for expected in [
        "faultpanic []: the call of faultpanic returned status 18",
        "faultabort []: it ended the process with signal 6 (SIGABRT)",
        "faultexit []: it ended the process with exit code 3",
        "faultendless []: it did not return within 3 s",
        "faultblocked []: it did not return within 3 s",
        "faultdrop []: its reply was dropped unanswered",
        "faulttwice []: it answered a call that was answered before, or that it was not given",
        "faultforge [1]: it answered a call that was answered before, or that it was not given",
        "faultgarbage []: The plugin's answer is not JSON on one line",
        "faultnewline []: The plugin's answer is not JSON on one line",
        "faultempty []: its error -1 has no message",
        "faultbraces []: The plugin's answer is not JSON on one line",
        "faultinject []: The plugin's answer is not JSON on one line",
        "faultunreleased []: it did not return within 3 s",
        "faultslow []: it is marked inline, and takes more than 5 ms",
        "faultunhandled []: the manifest lists the method, and the plugin answers that there is none",
    ] {
        found(&findings, expected);
    }
    // faultnode panics without the tool's answer in place of the node. Its other call gets the tool's error for an unknown method.
    for good in ["faultwho", "faultrelease", "faultlate", "faultevents", "faultquick", "faultlong", "faultnode"] {
        assert!(!findings.iter().any(|finding| finding.contains(good)), "{findings:#?}");
    }
}

#[test]
fn plugin_check_ends_for_a_wrapper_that_ends_the_process_in_an_unknown_method() {
    let report = report("outrigger_chained", &["--only", "parameters", "--option", "abort=[\"nosuchmethod\"]"]);
    let finding = "nosuchmethod []: it ended the process with signal 6 (SIGABRT)";
    assert_eq!(check(&report, "parameters")["findings"], json!([finding]), "{report:#}");
}

#[test]
fn plugin_check_removes_its_folder_when_a_signal_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut check = Command::new(&built().binary);
    check.args(["plugin", "check"]).arg(built().library("outrigger_chain")).env("TMPDIR", folder.path());
    let mut check = check.stdout(Stdio::null()).spawn().unwrap();
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let has_copy =
        || entries(folder.path()).flat_map(|own| entries(&own)).any(|file| file.extension() == Some("so".as_ref()));
    wait_until("the plugin's file is copied", has_copy);
    kill_process(Pid::from_child(&check), Signal::TERM).unwrap();
    assert_eq!(check.wait().unwrap().code(), Some(128 + 15));
    assert_eq!(entries(folder.path()).next(), None);
}

#[test]
fn plugin_check_detects_panics_of_the_plugins_threads() {
    let thread = findings("parameters", &["--method", "faultthread"]);
    found(&thread, "a thread of its own ended in a panic: panic at ");
}

#[test]
fn plugin_check_tokens_reports_a_token_that_is_never_answered() {
    let methods = ["--method", "faultsilent", "--method", "faultlate", "--method", "faultwho"];
    let findings = findings("tokens", &[&methods[..], &["--deadline", "1"]].concat());
    assert_eq!(
        findings,
        ["faultsilent []: it was never answered, though quiesce was called: its token is kept for ever"]
    );
}

#[test]
fn plugin_check_lifecycle_reports_faults_of_init_start_quiesce_and_stop() {
    for (option, expected) in [
        ("refuse_init", "plugin 'faulty' refused to start: refuse_init was asked for"),
        ("refuse_start", "plugin 'faulty' refused to start: refuse_start was asked for"),
        ("panic_init", "plugin 'faulty' refused to start: status 18"),
        ("panic_start", "plugin 'faulty' refused to start: status 18"),
        ("abort_init", "start: it ended the process with signal 6 (SIGABRT)"),
        ("block_init", "start: it did not return within 1 s"),
        ("panic_quiesce", "quiesce returned status 18"),
        ("panic_stop", "stop returned status 18"),
        ("block_stop", "stop: it did not return within 1 s"),
    ] {
        // Only what never returns needs a short deadline.
        let deadline = if option.starts_with("block") { "1" } else { "30" };
        let option = format!("{option}=true");
        let arguments = ["--option", &option, "--method", "faultwho", "--deadline", deadline];
        found(&findings("lifecycle", &arguments), expected);
    }
    let report = report("outrigger_faulty", &["--option", "refuse_init=true"]);
    let events = check(&report, "events");
    assert_eq!((&events["verdict"], &events["detail"]), (&"skipped".into(), &"it does not start".into()));
}

#[test]
fn plugin_check_reports_faults_of_handlers_with_the_call_or_option() {
    let who = ["--method", "faultwho", "--option"];
    let events = findings("events", &[&who[..], &["panic_event=true"]].concat());
    found(&events, "an event returned status 18");
    let cancelled = findings("cancellation", &[&who[..], &["panic_cancel=true"]].concat());
    assert!(cancelled.len() == 1 && cancelled[0].starts_with("faultwho []: a cancellation returned status 18: "));
    let services = findings("services", &[&who[..], &["rely_on_mempool=true"]].concat());
    found(&services, "with mempool/1 withheld: plugin 'faulty' refused to start: status 18");
    found(&services, "with mempool/1 withheld: it does not start, and the manifest calls the service optional");
    let options = findings("options", &["--method", "faultwho", "--deadline", "1"]);
    found(&options, "with the option panic_stop = true: stop returned status 18");
    let panics = findings("lifecycle", &["--method", "faultpanic"]);
    assert!(panics.len() == 1 && panics[0].starts_with("faultpanic []: the call of faultpanic returned status 18: "));
    found(&options, "with the option abort_init = true: start: it ended the process with signal 6 (SIGABRT)");
}

#[test]
fn plugin_check_report_has_a_line_for_each_check() {
    let output = run(built().library("outrigger_acme_mining"), &["--only", "open", "--only", "options"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("ok       manifest: acme-mining 2.1.0, 2 methods, "), "{text}");
    assert_eq!((lines[1], lines[3]), ("ok       open", "3 ok, 0 failed, 0 skipped"), "{text}");
    assert!(lines[2].starts_with("ok       options: 5 values of 1 options"), "{text}");
    let output = run(built().library("outrigger_faulty"), &["--only", "concurrency", "--method", "faultpanic"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let finding = "\n           the call of faultpanic returned status 18: the plugin panicked, ";
    assert!(text.contains("\nFAILED   concurrency: ") && text.contains(finding), "{text}");
    assert!(text.ends_with("\n1 ok, 1 failed, 0 skipped\n") && !output.status.success(), "{text}");
}

#[test]
fn plugin_check_refuses_invalid_files_methods_and_options() {
    let text = tempfile::Builder::new().suffix(".so").tempfile().unwrap();
    std::fs::write(text.path(), "not a library").unwrap();
    let output = run(text.path(), &[]);
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(report.starts_with("FAILED   manifest\n") && report.contains("is not an Outrigger plugin"), "{report}");
    assert!(!output.status.success());
    assert!(!run(Path::new("/nonexistent.so"), &[]).status.success());
    let acme = built().library("outrigger_acme_mining");
    for (arguments, expected) in [
        (["--method", "nosuch"], "the manifest lists no method 'nosuch'"),
        (["--call", "getacmepolicy=5"], "the arguments of 'getacmepolicy=5' are not a JSON array"),
        (["--option", "min_feerate=much"], "option 'min_feerate' must be of type integer"),
    ] {
        let output = run(acme, &arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(expected), "{error}");
    }
}

#[test]
fn plugin_time_takes_options_as_plugin_check_does() {
    let acme = built().library("outrigger_acme_mining");
    for (option, accepted, expected) in [
        ("min_feerate=7", true, "getacmepolicy []: median "),
        ("min_feerate=much", false, "option 'min_feerate' must be of type integer"),
    ] {
        let mut time = Command::new(&built().binary);
        let output =
            time.args(["plugin", "time"]).arg(acme).args(["getacmepolicy", "--option", option]).output().unwrap();
        let told = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success() == accepted && told.contains(expected), "{told}");
    }
}

#[test]
fn plugin_check_refuses_a_file_that_others_can_change_as_the_host_does() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("acme.so");
    std::fs::copy(built().library("outrigger_acme_mining"), &file).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o664)).unwrap();
    let output = run(&file, &["--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let finding = check(&report, "manifest")["findings"][0].as_str().unwrap();
    assert!(!output.status.success() && finding.contains("may be changed by others (its mode is 0664)"), "{report:#}");
    let error = Host::refused(&HostOptions::with_plugin("", &file, ""));
    assert!(error.contains(finding), "{error}");
}

#[test]
fn plugin_inspect_shows_a_plugin_without_running_it() {
    let acme = built().library("outrigger_acme_mining");
    let inspect = |file: &Path| Command::new(&built().binary).args(["plugin", "inspect"]).arg(file).output().unwrap();
    let output = inspect(acme);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("acme-mining 2.1.0: Acme's block policy") && text.contains("getblocktemplate ( {...} )"),
        "{text}"
    );
    let text = String::from_utf8(inspect(built().library("outrigger_node_policy")).stdout).unwrap();
    let asked = "\n  rpc/1: see the caller, and get the next one's answer, and call these methods: getblocktemplate\n";
    assert!(text.contains(asked) && text.contains("\nreach     nothing beyond its services\n"), "{text}");
    for (library, line) in [
        ("outrigger_judge", "timers    soon (every 1 s)"),
        ("outrigger_address_index", "requires  of the node: the outputs that old blocks spend (prune=0)"),
        ("outrigger_template_filter", "  rpc/1: see the caller, and get the next one's answer"),
    ] {
        let text = String::from_utf8(inspect(built().library(library)).stdout).unwrap();
        assert!(text.lines().any(|one| one == line), "{text}");
    }
    let text = String::from_utf8(inspect(built().library("outrigger_vault_signing")).stdout).unwrap();
    let reach = "\nreach\n  connect:unix:{socket}: may connect to the Unix socket /run/vault.sock. The daemon that has the keys.\n";
    assert!(text.contains(reach) && text.contains("\n  mempool/1 (it does without, too): read "), "{text}");
    assert!(!inspect(Path::new("/nonexistent.so")).status.success());
}
