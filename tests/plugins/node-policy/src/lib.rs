//! A third party's plugin in front of a bitcoind: it hands on the node's own block templates without what pays little.

use std::sync::{Mutex, MutexGuard, PoisonError};

use outrigger_sdk::options::PluginOptions;
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::rpc::As;
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, FeeRate, Host, Plugin, RpcError, methods, plugin};
use serde_json::{Map, Value, json};

#[derive(PluginOptions)]
pub struct Options {
    /// The least feerate of a transaction that is mined, in satoshi per 1000 virtual bytes.
    #[option(default = 5000)]
    min_feerate: u64,
}

pub struct NodePolicy {
    host: Host,
    min_feerate: FeeRate,
    /// What came of the last call of the node.
    last: Mutex<String>,
}

#[plugin(
    id = "node-policy",
    version = "1.0.0",
    summary = "The node's own block templates, without the transactions that pay little",
    services = ["rpc/1"],
    calls = ["getblocktemplate"]
)]
impl Plugin for NodePolicy {
    type Options = Options;

    fn new(host: Host, options: Options) -> Result<Self, String> {
        let min_feerate = FeeRate::from_sat_per_kvb(options.min_feerate);
        Ok(Self { host, min_feerate, last: Mutex::default() })
    }
}

#[methods(category = "Node")]
impl NodePolicy {
    /// Calls a method of the node.
    ///
    /// * `method` - The method.
    /// * `arguments` (default: []) - Its parameters.
    ///
    /// # Result
    /// The node's answer.
    #[method]
    fn asknode(&self, call: &Call<'_>, method: &str, arguments: Option<&Value>) -> Result<Value, RpcError> {
        self.ask(call.scope, method, arguments.unwrap_or(&json!([])))
    }

    /// The same by a method that calls itself inline, which fails.
    ///
    /// * `method` - The method.
    /// * `arguments` (default: []) - Its parameters.
    ///
    /// # Result
    /// The node's answer.
    #[method(inline, needs_tip = false)]
    fn asknodeinline(&self, call: &Call<'_>, method: &str, arguments: Option<&Value>) -> Result<Value, RpcError> {
        self.asknode(call, method, arguments)
    }

    /// Tells what came of the last call of the node.
    ///
    /// # Result
    /// "text"    (string) "asked" while it waits, then "answered" or the kind of the error.
    #[method]
    fn lastanswer(&self) -> Result<String, RpcError> {
        Ok(self.last().clone())
    }

    /// Gives the node's template without the transactions that pay little, or judges a proposed block.
    ///
    /// * `template_request` (default: {}) - The request.
    ///
    /// # Result
    /// {...}    (json object) The template, without default_witness_commitment.
    #[method(category = "Mining", long_running)]
    fn getblocktemplate(
        &self,
        call: &Call<'_>,
        template_request: Option<&Map<String, Value>>,
    ) -> Result<Value, RpcError> {
        let request: Vec<_> = template_request.into_iter().collect();
        let mut template = self.ask(call.scope, "getblocktemplate", &json!(request))?;
        // A proposal is answered with null or a reason.
        let Some(Value::Array(transactions)) = template.get_mut("transactions") else { return Ok(template) };
        let (kept, dropped): (Vec<Value>, Vec<Value>) =
            std::mem::take(transactions).into_iter().partition(|transaction| self.pays(transaction));
        *transactions = kept;
        let fees: u64 = dropped.iter().filter_map(|transaction| transaction["fee"].as_u64()).sum();
        let value = template["coinbasevalue"].as_u64().unwrap_or(0).saturating_sub(fees);
        template["coinbasevalue"] = json!(value);
        // It commits to what was taken out, too. The miner computes its own.
        if let Some(template) = template.as_object_mut() {
            template.shift_remove("default_witness_commitment");
        }
        Ok(template)
    }

    fn ask(&self, scope: Scope, method: &str, params: &Value) -> Result<Value, RpcError> {
        *self.last() = "asked".to_owned();
        let answer = self.host.rpc.call(scope, method.to_owned(), Blob(params.to_string().into_bytes()), As::Plugin);
        *self.last() = answer.as_ref().map_or_else(|error| format!("{:?}", error.kind), |_| "answered".to_owned());
        serde_json::from_slice(&answer?.into_result()?).map_err(|error| RpcError::internal(error.to_string()))
    }

    fn last(&self) -> MutexGuard<'_, String> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a transaction pays enough. One that builds on others is left out: its parents may not pay.
    fn pays(&self, transaction: &Value) -> bool {
        let (fee, weight) = (transaction["fee"].as_u64().unwrap_or(0), transaction["weight"].as_u64().unwrap_or(0));
        let builds = transaction["depends"].as_array().is_some_and(|depends| !depends.is_empty());
        // Both sides times 4,000, so that nothing is rounded.
        !builds && u128::from(fee) * 4_000 >= u128::from(self.min_feerate.to_sat_per_kvb()) * u128::from(weight)
    }
}

outrigger_sdk::export_plugin!(NodePolicy);

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_sdk::testing::StubHost;

    #[test]
    fn templates_of_the_node_lose_what_pays_little() {
        let host = StubHost::new();
        let plugin = host.start::<NodePolicy>(json!({"min_feerate": 1000}));
        let [pays, cheap, child] = [(100, json!([])), (99, json!([])), (1000, json!([2]))]
            .map(|(fee, depends)| json!({"fee": fee, "weight": 400, "depends": depends}));
        let template =
            json!({"transactions": [pays, cheap, child], "coinbasevalue": 5_000, "default_witness_commitment": "6a"});
        host.rpc.answer("getblocktemplate", Ok(template));
        let expected = json!({"transactions": [pays], "coinbasevalue": 5_000 - 99 - 1000});
        assert_eq!(plugin.call("getblocktemplate", json!([{"rules": ["segwit"]}])), Ok(expected));
        assert_eq!(host.rpc.asked()[0].1, r#"[{"rules":["segwit"]}]"#);
        host.rpc.answer("getblocktemplate", Ok(json!("bad-cb-missing")));
        assert_eq!(plugin.call("getblocktemplate", json!([{"mode": "proposal"}])), Ok(json!("bad-cb-missing")));
    }
}
