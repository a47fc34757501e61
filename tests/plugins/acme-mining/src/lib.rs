//! A third party's mining plugin: it takes getblocktemplate over and mines only what pays well.

use outrigger_sdk::amount::Saturating;
use outrigger_sdk::bitcoin::Amount;
use outrigger_sdk::service::mempool::SelectedView;
use outrigger_sdk::service::{ErrorKind, Scope, ServiceError};
use outrigger_sdk::{Call, FeeRate, Host, Plugin, Reply, RpcError};
use serde_json::{Map, Value, json};

pub struct AcmeMining {
    host: Host,
    min_feerate: FeeRate,
}

impl Plugin for AcmeMining {
    fn new(host: Host, options: Map<String, Value>) -> Result<Self, String> {
        let min_feerate = options["min_feerate"].as_u64().ok_or("min_feerate must not be negative")?;
        Ok(Self { host, min_feerate: FeeRate::from_sat_per_kvb(min_feerate) })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let answer = match call.method {
            "getacmepolicy" => Ok(json!({"min_feerate": self.min_feerate.to_sat_per_kvb()})),
            _ => self.template(call.scope).map_err(RpcError::from),
        };
        reply.send(answer);
    }
}

impl AcmeMining {
    /// Whether a transaction pays enough. One that builds on others is left out: its parents may not pay.
    fn pays(&self, selected: &SelectedView<'_>) -> bool {
        let virtual_size = selected.weight.to_vbytes_ceil();
        selected.depends.is_empty() && FeeRate::paid(selected.fee, virtual_size) >= self.min_feerate
    }

    fn template(&self, scope: Scope) -> Result<Value, ServiceError> {
        // No version is known, so there is always a selection; a plugin that keeps one would name its version here.
        let answer = self.host.mempool.candidate(scope, None)?;
        let Some(candidate) = answer.view()? else {
            return Err(ErrorKind::Internal.into());
        };
        let next = candidate.next;
        let mined: Vec<SelectedView<'_>> =
            candidate.transactions.iter().filter(|selected| self.pays(selected)).collect();
        let fees = mined.iter().map(|selected| selected.fee).fold(next.subsidy, Amount::saturating_add);
        let transactions: Vec<Value> = mined
            .iter()
            .map(|selected| json!({"txid": selected.txid, "fee": selected.fee.to_sat(), "weight": selected.weight}))
            .collect();
        Ok(json!({
            "acme": true,
            "previousblockhash": next.tip.hash,
            "height": next.tip.height + 1,
            "transactions": transactions,
            "coinbasevalue": fees.to_sat(),
        }))
    }
}

outrigger_sdk::export_plugin!(AcmeMining, include_str!("../manifest.json"));

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_sdk::testing::StubHost;

    #[test]
    fn templates_follow_the_policy_of_the_options() {
        let host = StubHost::new();
        let manifest = include_str!("../manifest.json");
        let plugin = host.start::<AcmeMining>(manifest, json!({"min_feerate": 7}));
        assert_eq!(plugin.call("getacmepolicy", json!([])), Ok(json!({"min_feerate": 7})));
        host.chain.mine(vec![]);
        let template = plugin.call("getblocktemplate", json!([])).unwrap();
        assert_eq!((&template["height"], &template["acme"]), (&json!(2), &json!(true)));
    }
}
