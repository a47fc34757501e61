//! The alert rules and the dashboard of `config/`: they name metrics that hosts export, in queries that Prometheus understands.

use std::collections::BTreeSet;
use std::process::Command;

use outrigger_tests::{Host, HostOptions, bitcoind, groups, skip_without};
use serde_json::{Value, json};

use crate::metrics::ask;

/// The names of metrics in a text, without the endings of counters and histograms.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let names = words.filter(|word| word.starts_with("outrigger_"));
    let base = |name: &str| {
        let endings = ["_total", "_bucket", "_sum", "_count"];
        endings.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name).to_owned()
    };
    names.map(base).collect()
}

/// The queries of the dashboard.
fn queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(groups("dashboard.json")).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn alerts_and_dashboard_name_metrics_that_a_running_host_exports() {
    let queries = queries();
    let wanted = named(&(std::fs::read_to_string(groups("alerts.yml")).unwrap() + &queries.join("\n")));
    assert!(wanted.len() > 30 && queries.len() > 25, "{wanted:?}");
    let backups = tempfile::tempdir().unwrap();
    let set = vec!["metrics.listen=127.0.0.1:0".to_owned(), format!("backup.folder={}", backups.path().display())];
    let exported = |host: &Host| -> BTreeSet<String> {
        // Families of calls are there once a call has ended.
        host.client().call("uptime", json!([]));
        let page = ask(host.metrics.unwrap(), "GET /metrics");
        let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        types.map(str::to_owned).collect()
    };
    let is_of_node = |name: &&String| name.starts_with("outrigger_node_");
    let found = exported(&Host::start_with(HostOptions { set: set.clone(), ..HostOptions::default() }));
    let missing: Vec<_> = wanted.difference(&found).filter(|name| !is_of_node(name)).collect();
    assert_eq!(missing, Vec::<&String>::new());
    if bitcoind::installed().is_some() {
        let found = exported(&Host::start_with(HostOptions { set, ..HostOptions::in_front_of(&[]) }));
        assert_eq!(wanted.difference(&found).collect::<Vec<_>>(), Vec::<&String>::new());
    }
}

#[test]
fn alerts_are_rules_of_prometheus() {
    let output = match Command::new("promtool").args(["check", "rules"]).arg(groups("alerts.yml")).output() {
        Ok(output) => output,
        Err(error) => {
            return skip_without(&format!("promtool does not run here ({error}); Debian's package prometheus has it"));
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The queries of the dashboard, as rules.
    let rule = |(at, query): (usize, String)| {
        let query = query.replace("$instance", ".*");
        json!({"record": format!("panel:{at}"), "expr": query})
    };
    let rules: Vec<Value> = queries().into_iter().enumerate().map(rule).collect();
    let file = tempfile::Builder::new().suffix(".yml").tempfile().unwrap();
    std::fs::write(file.path(), json!({"groups": [{"name": "dashboard", "rules": rules}]}).to_string()).unwrap();
    let output = Command::new("promtool").args(["check", "rules"]).arg(file.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
