//! The cost of plugin chains: wrappers and observers of every call, and calls of the next plugin.

use outrigger_tests::{Host, HostOptions, plugin_section};
use serde_json::json;

use crate::measure;

const CALLS: usize = 20_000;
const TURNS: usize = 5;
/// The wrapper also provides getblockcount, a method of the group chain.
const OF_COUNT: &str = "getblockcount = [\"gatekeeper\", \"chain\"]\n";

pub fn run() {
    println!("| what | us |\n|---|---|");
    let plain = calls("", "");
    row("getbestblockhash", plain);
    let wrapped = |plugin: &str, section: &str| {
        calls(
            &section_of(plugin, section),
            &format!("wrap = [\"{plugin}\"]\n{}", if plugin == "gatekeeper" { OF_COUNT } else { "" }),
        )
    };
    row("the same behind an inline wrapper of every method", wrapped("gatekeeper", "trusted = true\n"));
    row("the same behind that wrapper in a process of its own", wrapped("gatekeeper", "isolated = true\n"));
    row("the same with an observer of every method", wrapped("observer", "trusted = true\n"));
    row("the same with that observer in a process of its own", wrapped("observer", "isolated = true\n"));
    row("next, asked for an inline method by a plugin in the host's process", next("trusted = true\n"));
    row("next, asked by a plugin in a process of its own", next("isolated = true\n"));
}

fn row(what: &str, microseconds: f64) {
    println!("| {what} | {microseconds:.2} |");
}

fn section_of(plugin: &str, section: &str) -> String {
    plugin_section(&format!("outrigger_{plugin}"), &format!("sandbox = \"best-effort\"\n{section}"))
}

fn start(plugins: &str, routes: &str) -> Host {
    Host::start_with(HostOptions::with_groups(&format!("{plugins}[routes]\n{routes}")))
}

/// The median over several hosts of their medians, in microseconds.
fn median(mut once: impl FnMut() -> f64) -> f64 {
    let mut turns: Vec<f64> = (0..TURNS).map(|_| once()).collect();
    turns.sort_by(f64::total_cmp);
    turns[TURNS / 2]
}

fn calls(plugins: &str, routes: &str) -> f64 {
    median(|| {
        let host = start(plugins, routes);
        measure(&mut host.client(), CALLS, "getbestblockhash", &json!([])).0.as_secs_f64() * 1e6
    })
}

/// The time that the plugin itself measures for a call of the next plugin in a method that it wraps, in microseconds.
fn next(section: &str) -> f64 {
    let section = format!("{section}grants = [\"rpc/1\"]\noptions = {{ time = [\"getbestblockhash\"] }}\n");
    median(|| {
        let host = start(&section_of("chained", &section), "wrap = [\"chained\"]\n");
        host.client().call("getbestblockhash", json!([])).as_f64().unwrap() / 1e3
    })
}
