//! A third party's plugin in front of a bitcoind: it hands on the node's own block templates without what pays little.

use std::sync::{Mutex, MutexGuard, PoisonError};

use outrigger_sdk::service::Scope;
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, FeeRate, Host, Plugin, Reply, RpcError};
use serde_json::{Map, Value, json};

pub struct NodePolicy {
    host: Host,
    min_feerate: FeeRate,
    /// What came of the last call of the node.
    last: Mutex<String>,
}

impl Plugin for NodePolicy {
    fn new(host: Host, options: Map<String, Value>) -> Result<Self, String> {
        let min_feerate = options["min_feerate"].as_u64().ok_or("min_feerate must not be negative")?;
        Ok(Self { host, min_feerate: FeeRate::from_sat_per_kvb(min_feerate), last: Mutex::default() })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let params = &call.params.0;
        reply.send(match call.method {
            "getblocktemplate" => self.template(call.scope, params),
            "lastanswer" => Ok(json!(*self.last())),
            _ => {
                let method = params.first().and_then(Value::as_str).unwrap_or_default();
                self.ask(call.scope, method, params.get(1).unwrap_or(&json!([])))
            }
        });
    }
}

impl NodePolicy {
    fn ask(&self, scope: Scope, method: &str, params: &Value) -> Result<Value, RpcError> {
        *self.last() = "asked".to_owned();
        let answer = self.host.node_rpc.call(scope, method.to_owned(), Blob(params.to_string().into_bytes()));
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

    fn template(&self, scope: Scope, params: &[Value]) -> Result<Value, RpcError> {
        let mut template = self.ask(scope, "getblocktemplate", &json!(params))?;
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
}

outrigger_sdk::export_plugin!(NodePolicy, include_str!("../manifest.json"));

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_sdk::testing::StubHost;

    #[test]
    fn templates_of_the_node_lose_what_pays_little() {
        let host = StubHost::new();
        let plugin = host.start::<NodePolicy>(include_str!("../manifest.json"), json!({"min_feerate": 1000}));
        let [pays, cheap, child] = [(100, json!([])), (99, json!([])), (1000, json!([2]))]
            .map(|(fee, depends)| json!({"fee": fee, "weight": 400, "depends": depends}));
        let template =
            json!({"transactions": [pays, cheap, child], "coinbasevalue": 5_000, "default_witness_commitment": "6a"});
        host.node_rpc.answer("getblocktemplate", Ok(template));
        let expected = json!({"transactions": [pays], "coinbasevalue": 5_000 - 99 - 1000});
        assert_eq!(plugin.call("getblocktemplate", json!([{"rules": ["segwit"]}])), Ok(expected));
        assert_eq!(host.node_rpc.asked()[0].1, r#"[{"rules":["segwit"]}]"#);
        host.node_rpc.answer("getblocktemplate", Ok(json!("bad-cb-missing")));
        assert_eq!(plugin.call("getblocktemplate", json!([{"mode": "proposal"}])), Ok(json!("bad-cb-missing")));
    }
}
