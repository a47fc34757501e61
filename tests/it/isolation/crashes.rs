//! A crash of an isolated plugin loses its calls in flight, and nothing else.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outrigger_tests::{Client, Gate, Host, HostOptions, NOBODY, all_groups, built, wait_until};
use serde_json::{Value, json};

use super::process;
use crate::faults::{self, await_told, block_all_threads, check_others};
use crate::operator::logged_with;

const INTERNAL: i64 = -32603;

/// Settings that run a plugin in a process of its own.
const OWN_PROCESS: &str = "isolated = true\nsandbox = \"best-effort\"\n";

/// A host with all groups, and with `faulty` in a process of its own; `rest` is added to its section.
fn start(rest: &str) -> Host {
    faults::start(&format!("{OWN_PROCESS}{rest}"))
}

/// As [`start`], with a gate that the plugin may reach.
fn start_with_gate(rest: &str) -> (Host, Gate) {
    faults::start_with_gate(&format!("{OWN_PROCESS}{rest}"))
}

/// The error of a call that a crash lost.
fn crashed() -> (i64, String) {
    (INTERNAL, "The plugin 'faulty' crashed".into())
}

fn pid_of(client: &mut Client) -> u32 {
    client.plugin("faulty")["pid"].as_u64().unwrap().try_into().unwrap()
}

fn entries(folder: PathBuf) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn isolated_plugin_that_crashes_loses_its_pending_calls_and_restarts() {
    let (host, gate) = start_with_gate("");
    let mut client = host.client();
    for (crashes, method, ending) in [(1, "faultabort", "SIGABRT"), (2, "faultexit", "exit code 3")] {
        let before = pid_of(&mut client);
        let beside = host.client().begin_call("faultblocked", json!([gate.address()]));
        let waiting = gate.wait();
        assert_eq!(client.refused(method, json!([])), crashed());
        assert_eq!(beside.refused(), crashed());
        drop(waiting);
        // The next call waits for the new process.
        client.call("faultwho", json!([]));
        check_others(&mut client);
        let told = client.plugin("faulty");
        assert_ne!(told["pid"], json!(before));
        assert_eq!((&told["crashes"], &told["last_crash"]["ending"]), (&json!(crashes), &json!(ending)));
        let told = (&told["state"], &told["faults"], &told["restarts"], &told["waiting"]);
        assert_eq!(told, (&json!("running"), &json!(0), &json!(0), &json!(0)));
    }

    // Calls that the plugin answers later, each on a thread of its own.
    let begin = |_| client.begin_call("faultlate", json!([gate.address()]));
    let kept: Vec<_> = (0..3).map(begin).collect();
    let waiting: Vec<_> = (0..3).map(|_| gate.wait()).collect();
    client.kill_plugin("faulty");
    for kept in kept {
        assert_eq!(kept.refused(), crashed());
    }
    drop(waiting);
    client.call("faultwho", json!([]));
    assert_eq!(client.plugin("faulty")["last_crash"]["ending"], "SIGKILL");
}

#[test]
fn plugin_that_keeps_ending_by_itself_is_put_into_quarantine_until_it_is_started() {
    let rest = format!("grants = [\"chain/1\", \"log/1\"]\n{OWN_PROCESS}[plugins.options]\nabort_event = true\n");
    let host = Host::start_with(HostOptions::with_plugin(&all_groups(), built().library("outrigger_faulty"), &rest));
    let mut client = host.client();
    let mut mine =
        || drop(client.call("generatetoaddress", json!([1, "bcrt1qs758ursh4q9z627kt3pp5yysm78ddny6txaqgw"])));
    let mut other = host.client();
    for crashes in 1..=3 {
        mine();
        wait_until("the process ended", || other.plugin("faulty")["crashes"] == json!(crashes));
    }
    wait_until("the plugin is in quarantine", || other.plugin("faulty")["state"] == json!("quarantined"));
    assert_eq!(other.refused("faultwho", json!([])).0, -32601);
    check_others(&mut other);
    other.call("startplugin", json!(["faulty"]));
    assert_eq!(other.plugin("faulty")["state"], json!("running"));
    other.call("faultwho", json!([]));
    // So is a plugin that ends in three calls after its process has answered none. The first process has answered one.
    for _ in 0..4 {
        assert_eq!(other.refused("faultabort", json!([])), crashed());
    }
    wait_until("the plugin is in quarantine again", || other.plugin("faulty")["state"] == json!("quarantined"));
    let told = other.plugin("faulty");
    let fault = told["last_fault"].as_str().unwrap();
    assert!(fault.starts_with("its process ended during the call of faultabort (SIGABRT): see"), "{fault}");
}

#[test]
fn plugin_that_cannot_start_for_a_moment_after_a_crash_starts_again() {
    let folder = tempfile::tempdir().unwrap();
    let needed = folder.path().join("needed");
    std::fs::write(&needed, "").unwrap();
    let (folder, file) = (folder.path().display(), needed.display());
    let options = format!("reach = [\"read:{folder}\"]\noptions = {{ need = \"{file}\" }}\n");
    let rest = format!("grants = [\"chain/1\", \"log/1\"]\n{OWN_PROCESS}{options}");
    let (host, log) = logged_with(HostOptions::with_plugin(&all_groups(), built().library("outrigger_faulty"), &rest));
    std::fs::remove_file(&needed).unwrap();
    let mut client = host.client();
    client.kill_plugin("faulty");
    wait_until("a start is refused", || log().contains("the plugin refused to start again"));
    std::fs::write(&needed, "").unwrap();
    client.call("faultwho", json!([]));
    assert_eq!(client.plugin("faulty")["state"], json!("running"));
}

#[test]
fn host_reports_event_faults_alike_for_isolated_and_in_process_plugins() {
    for place in [OWN_PROCESS, "isolated = false\n"] {
        let rest =
            format!("{place}grants = [\"chain/1\", \"log/1\", \"events/1\"]\noptions = {{ panic_event = true }}\n");
        let host =
            Host::start_with(HostOptions::with_plugin(&all_groups(), built().library("outrigger_faulty"), &rest));
        let mut client = host.client();
        client.call("generatetoaddress", json!([1, NOBODY]));
        let is_told = |fault: &str| fault.starts_with("an event returned status 18: ");
        wait_until("the fault is told", || client.plugin("faulty")["last_fault"].as_str().is_some_and(is_told));
        assert!(client.plugin("faulty")["faults"].as_u64().unwrap() > 0);
    }
}

#[test]
fn isolated_plugin_with_stuck_calls_gets_a_new_process_also_by_reloadplugin() {
    let (host, gate) = start_with_gate("deadline_seconds = 1\n");
    let (calls, blocked) = block_all_threads(&host, &gate);
    let mut client = host.client();
    check_others(&mut client);
    calls.into_iter().for_each(|call| assert_eq!(call.refused().0, INTERNAL));
    await_told(&mut client, "crashes", &json!(1));
    // The new process has no stuck threads, unlike a plugin in the host's process.
    await_told(&mut client, "stuck", &json!(0));
    client.call("faultwho", json!([]));
    drop(blocked);

    // A reload ends a process whose calls exceed their deadlines.
    for reload_first in [false, true] {
        let before = pid_of(&mut client);
        let hung = client.begin_call("faultblocked", json!([gate.address()]));
        let waiting = gate.wait();
        if reload_first {
            client.call("reloadplugin", json!(["faulty"]));
        }
        assert_eq!(hung.refused().0, INTERNAL);
        if !reload_first {
            client.call("reloadplugin", json!(["faulty"]));
        }
        wait_until("the former process has ended", || !process(before).exists());
        waiting.gone();
        client.call("faultwho", json!([]));
        // The host ended the process of the former instance: that is no crash, and no fault of the new one.
        let told = client.plugin("faulty");
        assert_eq!((&told["crashes"], &told["last_fault"]), (&json!(1), &json!(null)));
    }
}

/// Kills the plugin's process repeatedly while several clients call it and other methods.
#[test]
fn crashes_under_load_lose_only_calls_in_flight() {
    let crashes: usize = std::env::var("OUTRIGGER_CRASHES").map_or(10, |count| count.parse().unwrap());
    let host = start("");
    let mut client = host.client();
    client.call("faultwho", json!([]));
    let own = process(host.process_id());
    let count = || (entries(own.join("fd")), entries(own.join("task")));
    let fresh = count();
    let done = Arc::new(AtomicBool::new(false));
    const CLIENTS: usize = 2;
    let load = |method: &'static str| {
        let (mut client, done) = (host.client(), done.clone());
        std::thread::spawn(move || {
            let (mut answered, mut lost) = (0_usize, 0_usize);
            while !done.load(Ordering::Relaxed) {
                match client.try_call(method, json!([])) {
                    Ok(_) => answered += 1,
                    Err(error) => {
                        assert_eq!((error.code, error.message), crashed(), "{method}");
                        lost += 1;
                    }
                }
            }
            (answered, lost)
        })
    };
    let callers: Vec<_> = ["faultwho"; CLIENTS].into_iter().chain(["getblockcount"; 2]).map(load).collect();
    for crash in 1..=crashes {
        // Three processes in a row without an answer would put the plugin into quarantine.
        wait_until("the process answers", || client.try_call("faultwho", json!([])).is_ok());
        client.kill_plugin("faulty");
        await_told(&mut client, "crashes", &json!(crash));
        wait_until("another process runs", || client.plugin("faulty")["pid"] != Value::Null);
    }
    done.store(true, Ordering::Relaxed);
    let told: Vec<_> = callers.into_iter().map(|caller| caller.join().unwrap()).collect();
    let lost: usize = told.iter().map(|(_, lost)| lost).sum();
    assert!(told.iter().all(|(answered, _)| *answered > 0), "{told:?}");
    // Each client has at most one call in flight.
    assert!(lost <= CLIENTS * crashes, "{lost} calls lost by {crashes} crashes");
    assert_eq!(told.iter().skip(CLIENTS).map(|(_, lost)| lost).sum::<usize>(), 0);
    println!("{lost} of {} calls lost by {crashes} crashes", told[0].0 + told[1].0 + lost);
    // The former processes leave nothing behind: as many files and threads as right after the start.
    let most = (fresh.0 + 16, fresh.1 + 16);
    wait_until("files and threads of former runners are gone", || count().0 <= most.0 && count().1 <= most.1);
}

#[test]
fn isolated_plugin_gets_no_call_whose_client_left_during_its_start() {
    let gate = Gate::new();
    let options = format!("deadline_seconds = 0\noptions = {{ gate_init = \"{}\" }}\n", gate.address());
    let rest = format!("{}{options}", Gate::reach(&[&gate]));
    let host = std::thread::scope(|scope| {
        let starting = scope.spawn(|| start(&rest));
        drop(gate.wait());
        starting.join().unwrap()
    });
    let mut client = host.client();
    assert_eq!(client.refused("faultabort", json!([])), crashed());
    let coming_up = gate.wait();
    let mut is_active = {
        let mut client = host.client();
        move || client.call("getrpcinfo", json!([])).to_string().contains("faultwho")
    };
    let leaving = host.client().post_and_stay(&json!({"method": "faultwho"}).to_string());
    wait_until("the call waits for the successor", &mut is_active);
    drop(leaving);
    wait_until("nobody waits for the call", || !is_active());
    drop(coming_up);
    assert_eq!(client.call("faultwho", json!([]))["calls"], 1);
}

#[test]
fn host_kills_an_isolated_plugin_that_does_not_stop() {
    let host = start("options = { block_stop = true }\n");
    let mut client = host.client();
    client.call("faultwho", json!([]));
    let pid = pid_of(&mut client);
    client.call("stopplugin", json!(["faulty"]));
    wait_until("the process of a plugin that does not stop is gone", || !process(pid).exists());
    check_others(&mut client);
}

#[test]
fn isolated_plugin_leaves_no_process_behind() {
    let mut host = start("");
    let mut client = host.client();
    client.call("faultwho", json!([]));
    let first = pid_of(&mut client);
    let gone = |pid| move || !process(pid).exists();
    client.call("stopplugin", json!(["faulty"]));
    wait_until("the process of a plugin that was stopped is gone", gone(first));
    client.call("startplugin", json!(["faulty"]));
    let second = pid_of(&mut client);
    assert!(host.terminate().success());
    wait_until("the process of a host that has stopped is gone", gone(second));
    host = host.start_again();
    let third = pid_of(&mut host.client());
    host.kill();
    wait_until("the process of a host that was killed is gone", gone(third));
}
