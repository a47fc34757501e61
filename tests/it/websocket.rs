//! An open WebSocket sees the current methods at each call, and its calls are recorded as those over HTTP.

use outrigger_tests::{Host, HostOptions};
use serde_json::{Value, json};

use crate::groups::acme_config;
use crate::metrics::ask;

const TEMPLATE: &str = "getblocktemplate";

#[test]
fn open_websocket_sees_plugins_that_are_stopped_started_reloaded_and_replaced() {
    let host = Host::start_with(acme_config(true, "[routes]\ngetblocktemplate = \"mining\"\n"));
    let (mut client, mut socket) = (host.client(), host.client().websocket());
    let mut template =
        || socket.call(TEMPLATE, json!([{"rules": ["segwit"]}])).map(|template| template["acme"].clone());
    assert_eq!(template(), Ok(Value::Null));
    client.call("stopplugin", json!(["mining"]));
    assert_eq!(template(), Err(-32603));
    client.call("startplugin", json!(["mining"]));
    client.call("reloadplugin", json!(["mining"]));
    assert_eq!(template(), Ok(Value::Null));
    let config = host.config_file();
    let text = std::fs::read_to_string(config.path()).unwrap();
    std::fs::write(config.path(), text.replace("= \"mining\"\n", "= \"acme-mining\"\n")).unwrap();
    client.call("reloadplugin", json!(["acme-mining"]));
    assert_eq!(template(), Ok(json!(true)));
}

#[test]
fn calls_of_a_websocket_are_in_the_metrics_the_audit_log_and_getrpcinfo() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit");
    let host = Host::start_with(HostOptions::with(&[
        "metrics.listen=127.0.0.1:0",
        &format!("audit.file={}", audit.display()),
    ]));
    let mut wallet = host.new_wallet("w").websocket();
    let active = wallet.call("getrpcinfo", json!([])).unwrap()["active_commands"].clone();
    assert_eq!(active[0]["method"], "getrpcinfo");
    let address = wallet.call("getnewaddress", json!([])).unwrap();
    wallet.call("generatetoaddress", json!([101, address])).unwrap();
    let paid = wallet.call("sendtoaddress", json!([address, 1])).unwrap();
    let page = ask(host.metrics.unwrap(), "GET /metrics");
    let counted = "outrigger_calls_total{method=\"sendtoaddress\",outcome=\"Ok\"} 1\n";
    assert!(page.contains(counted), "{page}");
    let lines = std::fs::read_to_string(audit).unwrap();
    let line: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    let told = (&line["method"], &line["wallet"], &line["outcome"], &line["txid"][0]);
    assert_eq!(told, (&json!("sendtoaddress"), &json!("w"), &json!("ok"), &paid));
}
