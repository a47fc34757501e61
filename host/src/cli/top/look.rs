//! Queries of a host.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cli::call::connection::{CallError, Connection};

/// How long the host may take to answer a call.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The status of the answer to a method that the user may not call.
const FORBIDDEN: &str = "403";

/// The state of a host, as text to show.
#[derive(Default)]
pub struct Look {
    /// Names and values.
    pub node: Vec<(&'static str, String)>,
    /// Name, height, rescan, keys.
    pub wallets: Vec<[String; 4]>,
    /// Id, state, calls, errors, mean time, waiting, crashes, refused reaches.
    pub plugins: Vec<[String; 8]>,
    /// Method, time, progress.
    pub calls: Vec<[String; 3]>,
    /// Why the last query failed, if it did.
    pub error: Option<String>,
}

/// Queries the host. A method that it does not answer, or that the user may not call, leaves its part empty.
pub fn look(connection: &Connection) -> Result<Look, CallError> {
    let began = Instant::now();
    let chain = result(connection, "getblockchaininfo")?;
    let answered = began.elapsed();
    let mut node = facts(&chain, &result(connection, "getnetworkinfo")?, answered);
    node.extend(measured(&result(connection, "gethostinfo")?));
    let names = result(connection, "listwallets")?;
    let wallets = list(&names).iter().filter_map(Value::as_str);
    let wallets = wallets.map(|name| Ok(wallet(name, &result(&connection.of_wallet(name), "getwalletinfo")?)));
    let wallets = wallets.collect::<Result<_, CallError>>()?;
    let plugins = result(connection, "listplugins")?;
    let active = result(connection, "getrpcinfo")?;
    let calls = list(&active["active_commands"]).iter().filter(|call| call["method"] != "getrpcinfo").map(call);
    let (plugins, calls) = (list(&plugins).iter().map(plugin).collect(), calls.collect());
    Ok(Look { node, wallets, plugins, calls, error: None })
}

/// The facts about the chain and the node.
fn facts(chain: &Value, network: &Value, answered: Duration) -> Vec<(&'static str, String)> {
    let height = chain["blocks"].as_u64().map(|blocks| format!("{blocks} of {}", text(&chain["headers"])));
    let facts = [
        ("chain", text(&chain["chain"])),
        ("height", height.unwrap_or_default()),
        ("node", text(&network["subversion"])),
        ("peers", text(&network["connections"])),
        ("answer", time(answered.as_secs_f64())),
    ];
    facts.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// The host's load, and its connection to the node.
fn measured(host: &Value) -> Vec<(&'static str, String)> {
    let node = &host["node"];
    let replies = node["replies"].as_f64().filter(|replies| *replies > 0.0);
    let latency = replies.zip(node["time_us"].as_f64()).map(|(replies, all)| time(all / replies / 1e6));
    let facts = [
        ("connections", text(&host["connections"])),
        ("waiting calls", text(&host["waiting_calls"])),
        ("blocks behind", text(&node["blocks_behind"])),
        ("node latency", latency.unwrap_or_default()),
    ];
    facts.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

fn call(call: &Value) -> [String; 3] {
    let time = time(call["duration"].as_f64().unwrap_or_default() / 1e6);
    [text(&call["method"]), time, progress(&call["progress"])]
}

/// The progress of a call, as its plugin reports it.
fn progress(told: &Value) -> String {
    let parts = told["done"].as_f64().zip(told["total"].as_f64()).filter(|(_, total)| *total > 0.0);
    parts.map_or_else(String::new, |(done, total)| format!("{:.1} %", done / total * 100.0))
}

fn wallet(name: &str, info: &Value) -> [String; 4] {
    let keys = match (info["unlocked_until"].as_u64(), info["private_keys_enabled"].as_bool()) {
        (Some(0), _) => "locked",
        (Some(_), _) => "unlocked",
        (None, Some(true)) => "private",
        (None, Some(false)) => "none",
        (None, None) => "",
    };
    let name = if name.is_empty() { "(default)" } else { name };
    [name.to_owned(), text(&info["lastprocessedblock"]["height"]), rescan(&info["scanning"]), keys.to_owned()]
}

fn rescan(scanning: &Value) -> String {
    let (Some(duration), Some(progress)) = (scanning["duration"].as_f64(), scanning["progress"].as_f64()) else {
        return String::new();
    };
    let percent = progress * 100.0;
    if progress < 0.001 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.1} %, {} left", time(duration / progress - duration))
    }
}

fn plugin(plugin: &Value) -> [String; 8] {
    let isolated = if plugin["isolated"] == true { ", isolated" } else { "" };
    let answers = plugin["answers"].as_f64().unwrap_or_default();
    let mean = plugin["time_us"].as_f64().filter(|_| answers > 0.0).map(|all| time(all / answers / 1e6));
    [
        text(&plugin["id"]),
        text(&plugin["state"]) + isolated,
        text(&plugin["calls"]),
        text(&plugin["errors"]),
        mean.unwrap_or_default(),
        text(&plugin["waiting"]),
        text(&plugin["crashes"]),
        text(&plugin["denied"]["count"]),
    ]
}

/// The result of a method without arguments; null if the host answers an error, or if the user may not call the method.
fn result(connection: &Connection, method: &str) -> Result<Value, CallError> {
    match connection.call(method, "[]") {
        Err(CallError::Status(status)) if status.starts_with(FORBIDDEN) => Ok(Value::Null),
        reply => Ok(reply?["result"].take()),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A value as text that is safe in a terminal.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => outrigger_values::text::printable(text).to_string(),
        other => other.to_string(),
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds < 0.001 => format!("{:.0} us", seconds * 1e6),
        _ if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        _ if seconds < 120.0 => format!("{seconds:.1} s"),
        _ => format!("{:.0} min", seconds / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The answer of getwalletinfo, with more members.
    fn info(more: Value) -> Value {
        let mut info = json!({
            "walletname": "shop", "walletversion": 169_900, "format": "lmdb", "txcount": 3, "keypoolsize": 4000,
            "private_keys_enabled": true, "avoid_reuse": false, "scanning": false, "descriptors": true,
            "external_signer": false, "blank": false, "birthtime": 1_795_934_684, "lastprocessedblock": {
                "hash": "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206", "height": 840_000
            }
        });
        info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        info
    }

    #[test]
    fn wallet_shows_the_time_left_of_a_rescan() {
        let scanning = |duration: u64, progress: f64| {
            let scanning = json!({"scanning": {"duration": duration, "progress": progress}});
            wallet("shop", &info(scanning))
        };
        assert_eq!(scanning(30, 0.25), ["shop", "840000", "25.0 %, 90.0 s left", "private"]);
        assert_eq!(scanning(600, 0.5)[2], "50.0 %, 10 min left");
        // At the beginning there is no estimate.
        assert_eq!((scanning(0, 0.0)[2].as_str(), scanning(2, 0.0004)[2].as_str()), ("0.0 %", "0.0 %"));
        assert_eq!(wallet("", &info(json!({})))[..3], ["(default)", "840000", ""]);
    }

    #[test]
    fn wallet_shows_the_state_of_its_keys() {
        let keys = |more: Value| wallet("shop", &info(more))[3].clone();
        assert_eq!(keys(json!({"unlocked_until": 0})), "locked");
        assert_eq!(keys(json!({"unlocked_until": 1_795_934_684})), "unlocked");
        assert_eq!(keys(json!({"private_keys_enabled": false})), "none");
        // A user who may list wallets, but not query their states.
        assert_eq!(wallet("shop", &Value::Null), ["shop", "", "", ""]);
    }

    #[test]
    fn plugin_shows_its_mean_time_crashes_and_refused_reaches() {
        let listed = |isolated: bool, answers: u64| {
            plugin(&json!({
                "id": "acme", "version": "0.1.0", "form": "library", "abi": "1.1", "state": "running", "trusted": false,
                "isolated": isolated, "pid": 4711, "crashes": 2, "calls": 12, "answers": answers, "errors": 1,
                "time_us": 25_000, "waiting": 3, "stuck": 0, "restarts": 2, "denied": {
                    "count": 7, "by_kind": {"connect": {"count": 7, "last": "connect 10.0.0.1:80"}},
                    "last": {"kind": "connect", "call": "connect", "argument": "10.0.0.1:80"}
                }
            }))
        };
        assert_eq!(listed(true, 10), ["acme", "running, isolated", "12", "1", "2.5 ms", "3", "2", "7"]);
        // Without an answer there is no mean.
        assert_eq!(listed(false, 0), ["acme", "running", "12", "1", "", "3", "2", "7"]);
        let escape = plugin(&json!({"id": "a\u{1b}[2Jb"}));
        assert!(!escape[0].contains('\u{1b}'), "{escape:?}");
    }

    #[test]
    fn measured_gives_connections_and_the_mean_latency_of_the_node() {
        let told = |host: Value| -> Vec<String> {
            measured(&host).into_iter().map(|(name, value)| format!("{name} {value}")).collect()
        };
        let host = |replies: u64| {
            let node = json!({"reached": true, "blocks_behind": 1, "replies": replies, "time_us": 80_000});
            json!({"version": "0.1.0", "connections": 3, "waiting_calls": 2, "node": node})
        };
        let all = told(host(40));
        assert_eq!(all, ["connections 3", "waiting calls 2", "blocks behind 1", "node latency 2.0 ms"]);
        // A node that has not answered yet has no latency, and the embedded chain has no node.
        assert_eq!(told(host(0)), all[..3]);
        assert_eq!(told(json!({"connections": 0, "waiting_calls": 0})), ["connections 0", "waiting calls 0"]);
        assert!(told(Value::Null).is_empty());
    }

    #[test]
    fn calls_and_facts_leave_out_unknown_parts() {
        let active = json!({"method": "work", "duration": 1_500_000, "progress": {"done": 3, "total": 4}});
        assert_eq!(call(&active), ["work", "1.5 s", "75.0 %"]);
        assert_eq!(call(&json!({"method": "stop", "duration": 30})), ["stop", "30 us", ""]);
        assert_eq!(call(&json!({"method": "work", "progress": {"done": 0, "total": 0}}))[2], "");
        let chain = json!({"chain": "main", "blocks": 839_999, "headers": 840_000});
        let network = json!({"subversion": "/Satoshi:29.0.0(Outrigger:0.1.0)/", "connections": 8});
        let answered = Duration::from_millis(2);
        let node = ("node", "/Satoshi:29.0.0(Outrigger:0.1.0)/".to_owned());
        let [known, height, peers, answer] =
            [("chain", "main"), ("height", "839999 of 840000"), ("peers", "8"), ("answer", "2.0 ms")]
                .map(|(name, value)| (name, value.to_owned()));
        assert_eq!(facts(&chain, &network, answered), [known, height, node, peers, answer.clone()]);
        assert_eq!(facts(&Value::Null, &Value::Null, answered), [answer]);
    }
}
