//! Metrics, timers and progress of plugins.

use outrigger_tests::{Client, Host, HostOptions, all_groups, built, wait_until};
use serde_json::{Value, json};

#[test]
fn metrics_timers_and_progress_of_a_plugin_reach_the_page_itself_and_getrpcinfo() {
    // The plugin is the policy of the wallet "hot".
    let rest = "grants = [\"metrics/1\"]\n[[wallet.policies]]\nwallets = [\"hot\"]\nplugin = \"judge\"\n";
    let options = HostOptions::with_plugin(&all_groups(), built().library("outrigger_judge"), rest);
    let host = Host::start_with(options.and(&["metrics.listen=127.0.0.1:0"]));
    check_metrics(&host);
    let mut client = host.client();
    wait_until("the timer has come twice", || client.call("timers", json!([])).as_array().unwrap().len() >= 2);
    assert_eq!(client.call("timers", json!([]))[0], json!("soon"));
    check_progress(&mut client);
}

/// The metrics stay after a reload.
fn check_metrics(host: &Host) {
    let mut wallet = host.new_wallet("hot");
    wallet.call("listdescriptors", json!([true]));
    wallet.call("reloadplugin", json!(["judge"]));
    wallet.call("listdescriptors", json!([true]));
    let page = crate::metrics::ask(host.metrics.unwrap(), "GET /metrics");
    for line in [
        "# TYPE outrigger_plugin_judge_verdicts counter",
        "outrigger_plugin_judge_verdicts_total{act=\"GiveKeys\"} 2",
        "outrigger_plugin_judge_last_act_letters{} 8",
        "outrigger_plugin_judge_act_letters_sum{} 16.0",
        "outrigger_plugin_judge_act_letters_count{} 2",
        "outrigger_plugin_judge_act_letters_bucket{le=\"2.0\"} 0",
        "outrigger_plugin_judge_act_letters_bucket{le=\"10.0\"} 2",
        "outrigger_plugin_judge_act_letters_bucket{le=\"+Inf\"} 2",
        "outrigger_plugin_samples_dropped_total{plugin=\"judge\"} 0.0",
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\n{page}");
    }
}

/// The progress of a call is shown while it runs.
fn check_progress(client: &mut Client) {
    let work = client.begin_call("work", json!([]));
    let progress = |told: &Value| {
        let calls = told["active_commands"].as_array().unwrap();
        calls.iter().find(|call| call["method"] == "work").map(|call| call["progress"].clone())
    };
    let wanted = Some(json!({"done": 3, "total": 10}));
    wait_until("the call says how far it is", || progress(&client.call("getrpcinfo", json!([]))) == wanted);
    assert_eq!(client.call("endwork", json!([])), json!(1));
    assert!(work.finish().body.contains("null"));
    assert_eq!(progress(&client.call("getrpcinfo", json!([]))), None);
}
