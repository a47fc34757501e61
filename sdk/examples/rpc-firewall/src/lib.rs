//! A firewall before every method: which methods a user may call, how long the parameters may be, and how many calls a
//! minute. It also fetches a block that the node has pruned from a peer, before `getblock` is answered.
//!
//! ```toml
//! [[plugins]]
//! file = "rpc_firewall"
//! grants = [{ service = "rpc/1", methods = ["getpeerinfo", "getblockfrompeer"] }]
//!
//! [plugins.options]
//! rules = [{ user = "web", methods = ["get*", "sendrawtransaction"], calls_per_minute = 600, max_param_bytes = 100000 }]
//!
//! [routes]
//! wrap = ["rpc-firewall"]
//! ```

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use outrigger_sdk::methods::Json;
use outrigger_sdk::options::PluginOptions;
use outrigger_sdk::service::rpc::As;
use outrigger_sdk::{Call, Host, Plugin, Reply, RpcError, methods, plugin};
use serde::Deserialize;
use serde_json::{Value, json};

/// The period of the limit on calls.
const WINDOW: Duration = Duration::from_secs(60);

/// The number of attempts to read a block that a peer was asked for.
const TRIES: u32 = 20;
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(250);

#[derive(PluginOptions)]
pub struct Options {
    /// The rules, each { user, methods, calls_per_minute, max_param_bytes }. A * at the end of a method stands for any text. A user
    /// without a rule may call everything.
    #[option(default = [])]
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    user: String,
    methods: Vec<String>,
    calls_per_minute: Option<u32>,
    max_param_bytes: Option<usize>,
}

impl Rule {
    fn lists(&self, method: &str) -> bool {
        let matches = |pattern: &String| match pattern.strip_suffix('*') {
            Some(beginning) => method.starts_with(beginning),
            None => pattern == method,
        };
        self.methods.iter().any(matches)
    }
}

pub struct RpcFirewall {
    rules: Vec<Rule>,
    /// For each user, the start of the current window and the number of calls in it.
    counts: Mutex<HashMap<String, (Instant, u32)>>,
}

#[plugin(
    id = "rpc-firewall",
    summary = "Allows users methods, sizes of parameters and calls a minute",
    services = ["rpc/1"],
    calls = ["getblockfrompeer", "getpeerinfo"],
    wrapper = "pooled",
    restartable
)]
impl Plugin for RpcFirewall {
    type Options = Options;

    fn new(_: Host, options: Options) -> Result<Self, String> {
        Ok(Self { rules: options.rules, counts: Mutex::default() })
    }

    fn wrap(&self, call: Call<'_>, reply: Reply) {
        match self.check(&call) {
            Err(error) => drop(reply.fail(error)),
            Ok(()) if call.method == "getblock" => drop(reply.send_json(get_block(&call))),
            Ok(()) => drop(reply.pass_on()),
        }
    }
}

#[methods(category = "Firewall")]
impl RpcFirewall {
    /// Shows how many calls each user has made in the last minute.
    ///
    /// # Result
    /// {"user": n, ...}    (json object)
    #[method]
    fn getfirewallinfo(&self) -> Result<Json, RpcError> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = counts.iter().filter(|(_, (since, _))| since.elapsed() < WINDOW);
        let recent: Value = recent.map(|(user, (_, count))| (user.clone(), json!(count))).collect();
        Ok(Json(recent.to_string().into_bytes()))
    }

    fn check(&self, call: &Call<'_>) -> Result<(), RpcError> {
        let user = call.host.rpc.caller(call.scope)?.user;
        let Some(rule) = self.rules.iter().find(|rule| rule.user == user) else { return Ok(()) };
        if !rule.lists(call.method) {
            return Err(RpcError::misc("The firewall does not allow this method"));
        }
        let length = match &call.named {
            Some(named) => json!(named),
            None => json!(call.params.0),
        };
        let length = length.to_string().len();
        if rule.max_param_bytes.is_some_and(|most| length > most) {
            return Err(RpcError::invalid_parameter("The firewall does not allow parameters of this length"));
        }
        if rule.calls_per_minute.is_some_and(|most| self.count(&user) > most) {
            return Err(RpcError::misc("The firewall does not allow so many calls a minute"));
        }
        Ok(())
    }

    /// Counts a call of a user. Returns the number of calls in the current window, including this one.
    fn count(&self, user: &str) -> u32 {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, count) = counts.entry(user.to_owned()).or_insert_with(|| (Instant::now(), 0));
        if since.elapsed() >= WINDOW {
            (*since, *count) = (Instant::now(), 0);
        }
        *count = count.saturating_add(1);
        *count
    }
}

/// Answers `getblock`. A block that the node has pruned is fetched from its peers first.
fn get_block(call: &Call<'_>) -> Result<Vec<u8>, RpcError> {
    let is_pruned = |error: &RpcError| error.message.contains("pruned data");
    let mut answer = call.next(None);
    if !answer.as_ref().is_err_and(is_pruned) {
        return answer;
    }
    // The parameters of a method that only the node knows may come by name.
    let named = call.named.as_ref().and_then(|named| named.get("blockhash").or_else(|| named.get("args")?.get(0)));
    let block = named.unwrap_or_else(|| call.params.get(0));
    let peers = call.host.call(call.scope, "getpeerinfo", &json!([]), As::Plugin)?;
    for peer in peers.as_array().into_iter().flatten() {
        // If a peer cannot provide the block, the next peer is asked.
        let asked = json!([block, peer["id"]]);
        let _ = call.host.call(call.scope, "getblockfrompeer", &asked, As::Plugin);
        for _ in 0..TRIES {
            answer = call.next(None);
            if !answer.as_ref().is_err_and(is_pruned) || !call.is_wanted() {
                return answer;
            }
            sleep(PAUSE);
        }
    }
    answer
}

outrigger_sdk::export_plugin!(RpcFirewall);

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_sdk::testing::{StubHost, TestPlugin};

    fn start(host: &StubHost) -> TestPlugin<RpcFirewall> {
        let rule = json!({"user": "alice", "methods": ["get*"], "calls_per_minute": 3, "max_param_bytes": 10});
        host.start(json!({"rules": [rule]}))
    }

    #[test]
    fn calls_within_the_rule_of_a_user_pass_and_others_are_refused() {
        let plugin = start(&StubHost::new());
        assert_eq!(plugin.begin("getblockcount", json!([])).passed_on(), Some(None));
        let refused = |method, params| plugin.call(method, params).unwrap_err().message;
        assert_eq!(refused("stop", json!([])), "The firewall does not allow this method");
        assert_eq!(
            refused("getblockhash", json!(["x".repeat(20)])),
            "The firewall does not allow parameters of this length"
        );
        assert_eq!(
            refused("getblockhash", json!({"height": "x".repeat(20)})),
            "The firewall does not allow parameters of this length"
        );
        plugin.begin("getblockcount", json!([]));
        plugin.begin("getblockcount", json!([]));
        assert_eq!(refused("getblockcount", json!([])), "The firewall does not allow so many calls a minute");
        assert_eq!(plugin.call("getfirewallinfo", json!([])), Ok(json!({"alice": 4})));
    }

    #[test]
    fn blocks_that_the_node_has_pruned_are_fetched_from_peers() {
        let host = StubHost::new();
        let plugin = start(&host);
        host.rpc.answer("next", Ok(json!("00")));
        assert_eq!(plugin.call("getblock", json!(["ab"])), Ok(json!("00")));
        host.rpc.answer("next", Err(RpcError::misc("Block not available (pruned data)")));
        host.rpc.answer("getpeerinfo", Ok(json!([])));
        assert_eq!(plugin.call("getblock", json!(["ab"])).unwrap_err().message, "Block not available (pruned data)");
        let asked: Vec<String> = host.rpc.asked().into_iter().map(|(method, _)| method).collect();
        assert_eq!(asked, ["next", "next", "getpeerinfo"]);
        let plugin: TestPlugin<RpcFirewall> = host.start(json!({}));
        plugin.want_answers_for(0);
        for (id, arguments) in
            [json!(["ab"]), json!({"blockhash": "ab"}), json!({"args": ["ab"]})].into_iter().enumerate()
        {
            host.rpc.answer("getpeerinfo", Ok(json!([{"id": id}])));
            plugin.call("getblock", arguments).unwrap_err();
            let asked = host.rpc.asked().into_iter().rfind(|(method, _)| method == "getblockfrompeer");
            assert_eq!(asked.unwrap().1, json!(["ab", id]).to_string());
        }
    }
}
