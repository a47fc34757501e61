//! The alert rules and the dashboard in `config/` name metrics that the host exports, in valid Prometheus queries.

use std::collections::BTreeSet;
use std::process::Command;

use outrigger_tests::{Host, HostOptions, bitcoind, groups, skip_without};
use serde_json::{Value, json};

use crate::metrics::ask;

/// The names of metrics in a text, without the suffixes of counters and histograms.
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

/// The metrics of the alerts and the dashboard that a metrics page lacks.
pub fn missing(page: &str) -> Vec<String> {
    let queries = queries();
    let wanted = named(&(std::fs::read_to_string(groups("alerts.yml")).unwrap() + &queries.join("\n")));
    assert!(wanted.len() > 30 && queries.len() > 25, "{wanted:?}");
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let found = types.map(str::to_owned).collect();
    wanted.difference(&found).cloned().collect()
}

#[test]
fn alerts_and_dashboard_name_metrics_that_a_host_in_front_of_a_bitcoind_exports() {
    if bitcoind::installed().is_none() {
        return;
    }
    let backups = tempfile::tempdir().unwrap();
    let folder = format!("backup.folder={}", backups.path().display());
    let host = Host::start_with(HostOptions::in_front_of(&[]).and(&["metrics.listen=127.0.0.1:0", &folder]));
    // The host exports the metrics of calls after the first finished call.
    host.client().call("uptime", json!([]));
    assert_eq!(missing(&ask(host.metrics.unwrap(), "GET /metrics")), [""; 0]);
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
    // Check the dashboard's queries as rules.
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
