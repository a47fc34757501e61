//! A third party's mining plugin: it replaces getblocktemplate and mines only transactions with a high feerate.

use outrigger_sdk::amount::Saturating;
use outrigger_sdk::bitcoin::Amount;
use outrigger_sdk::options::PluginOptions;
use outrigger_sdk::service::mempool::SelectedView;
use outrigger_sdk::service::{ErrorKind, ServiceError};
use outrigger_sdk::{Call, FeeRate, Host, Plugin, methods, plugin};
use serde_json::{Map, Value, json};

#[derive(PluginOptions)]
pub struct Options {
    /// The least feerate of a transaction that is mined, in satoshi per 1000 virtual bytes.
    #[option(default = 5000)]
    min_feerate: u64,
}

pub struct AcmeMining {
    min_feerate: FeeRate,
}

#[plugin(
    id = "acme-mining",
    version = "2.1.0",
    summary = "Acme's block policy: templates with no other transactions than those that pay well",
    services = ["chain/1", "mempool/1"]
)]
impl Plugin for AcmeMining {
    type Options = Options;

    fn new(_: Host, options: Options) -> Result<Self, String> {
        Ok(Self { min_feerate: FeeRate::from_sat_per_kvb(options.min_feerate) })
    }
}

#[methods(category = "Mining")]
impl AcmeMining {
    /// Tells by which rule Acme's pool selects transactions.
    ///
    /// # Result
    /// {"min_feerate": n}    (json object)
    #[method]
    fn getacmepolicy(&self) -> Result<Value, ServiceError> {
        Ok(json!({"min_feerate": self.min_feerate.to_sat_per_kvb()}))
    }

    /// Whether a transaction pays enough. A transaction with unconfirmed parents does not count: they may pay too little.
    fn pays(&self, selected: &SelectedView<'_>) -> bool {
        let virtual_size = selected.weight.to_vbytes_ceil();
        selected.depends.is_empty() && FeeRate::paid(selected.fee, virtual_size) >= self.min_feerate
    }

    /// Gives what Acme's pool mines next.
    ///
    /// * `template_request` (default: {}) - The request.
    ///
    /// # Result
    /// {...}    (json object) The template.
    #[method]
    fn getblocktemplate(
        &self,
        call: &Call<'_>,
        _template_request: Option<&Map<String, Value>>,
    ) -> Result<Value, ServiceError> {
        // No version is known, so there is always a selection; a plugin that keeps one would name its version here.
        let answer = call.host.mempool.candidate(call.scope, None)?;
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

outrigger_sdk::export_plugin!(AcmeMining);

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_sdk::testing::StubHost;

    #[test]
    fn templates_follow_the_policy_of_the_options() {
        let host = StubHost::new();
        let plugin = host.start::<AcmeMining>(json!({"min_feerate": 7}));
        assert_eq!(plugin.call("getacmepolicy", json!([])), Ok(json!({"min_feerate": 7})));
        host.chain.mine(vec![]);
        let template = plugin.call("getblocktemplate", json!([])).unwrap();
        assert_eq!((&template["height"], &template["acme"]), (&json!(2), &json!(true)));
    }
}
