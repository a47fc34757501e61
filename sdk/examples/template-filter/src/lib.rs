//! A filter for block templates of the mining group, or of the bitcoind behind the host. It removes transactions with a low feerate,
//! and their descendants.
//!
//! In a process of its own it serves at most 128 long polls at a time. If it had `submitblock` too, that method must not be
//! `long_running`: it would wait for places that long polls hold.
//!
//! ```toml
//! [[plugins]]
//! file = "template_filter"
//! grants = ["rpc/1"]
//!
//! [plugins.options]
//! min_feerate = 5000
//!
//! [routes]
//! getblocktemplate = ["template-filter", "mining"]   # in front of a bitcoind without the group: "template-filter"
//! ```

use outrigger_sdk::options::PluginOptions;
use outrigger_sdk::{Call, Host, Plugin, RpcError, methods, plugin};
use serde_json::{Map, Value, json};

/// Weight units for 1000 virtual bytes.
const WEIGHT_PER_KVB: u128 = 4_000;

#[derive(PluginOptions)]
pub struct Options {
    /// The least feerate of a transaction in a template, in satoshi per 1000 virtual bytes.
    #[option(default = 1000)]
    min_feerate: u32,
}

pub struct TemplateFilter {
    min_feerate: u32,
}

#[plugin(
    id = "template-filter",
    summary = "Block templates without transactions that pay too little",
    services = ["rpc/1"],
    restartable
)]
impl Plugin for TemplateFilter {
    type Options = Options;

    fn new(_: Host, options: Options) -> Result<Self, String> {
        Ok(Self { min_feerate: options.min_feerate })
    }
}

#[methods(category = "Mining")]
impl TemplateFilter {
    /// Gives a block template without transactions that pay too little, or judges a proposed block.
    ///
    /// * `template_request` - The request, as of Bitcoin Core's getblocktemplate.
    ///
    /// # Result
    /// {...}    (json object) The template, without default_witness_commitment, which the miner computes.
    #[method(long_running)]
    fn getblocktemplate(
        &self,
        call: &Call<'_>,
        template_request: Option<&Map<String, Value>>,
    ) -> Result<Value, RpcError> {
        let request: Vec<_> = template_request.into_iter().collect();
        let answer = call.next(Some(&json!(request)))?;
        let mut template: Value =
            serde_json::from_slice(&answer).map_err(|error| RpcError::internal(error.to_string()))?;
        // The answer to a block proposal is null or a reason.
        if template["transactions"].is_array() {
            self.filter(&mut template);
        }
        Ok(template)
    }

    fn pays(&self, transaction: &Value) -> bool {
        let number = |name: &str| u128::from(transaction[name].as_u64().unwrap_or_default());
        number("fee") * WEIGHT_PER_KVB >= u128::from(self.min_feerate) * number("weight")
    }

    /// Removes transactions. `depends` refers to others by position, from 1, so it is renumbered.
    fn filter(&self, template: &mut Value) {
        let Some(transactions) = template["transactions"].as_array_mut() else { return };
        let (mut kept, mut places, mut lost) = (Vec::new(), Vec::new(), 0_u64);
        for mut transaction in std::mem::take(transactions) {
            let depends = transaction["depends"].as_array().cloned().unwrap_or_default();
            let place = |position: &Value| {
                let index = usize::try_from(position.as_u64()?).ok()?.checked_sub(1)?;
                places.get(index).copied().flatten()
            };
            let parents: Option<Vec<usize>> = depends.iter().map(place).collect();
            match parents.filter(|_| self.pays(&transaction)) {
                Some(parents) => {
                    transaction["depends"] = json!(parents);
                    kept.push(transaction);
                    places.push(Some(kept.len()));
                }
                None => {
                    lost = lost.saturating_add(transaction["fee"].as_u64().unwrap_or_default());
                    places.push(None);
                }
            }
        }
        *transactions = kept;
        if lost > 0 {
            template["coinbasevalue"] =
                json!(template["coinbasevalue"].as_u64().unwrap_or_default().saturating_sub(lost));
            // The commitment covers the removed transactions.
            if let Some(template) = template.as_object_mut() {
                template.shift_remove("default_witness_commitment");
            }
        }
    }
}

outrigger_sdk::export_plugin!(TemplateFilter);

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_sdk::testing::StubHost;

    #[test]
    fn transactions_below_the_feerate_are_removed_with_their_descendants() {
        let host = StubHost::new();
        let plugin = host.start::<TemplateFilter>(json!({}));
        let transaction = |fee: u64, depends: &[u64]| json!({"fee": fee, "weight": 400, "depends": depends});
        let all = [transaction(99, &[]), transaction(900, &[1]), transaction(100, &[]), transaction(200, &[3])];
        let template = json!({"transactions": all, "coinbasevalue": 10_000, "default_witness_commitment": "6a"});
        host.rpc.answer("next", Ok(template));
        let expected = json!({
            "transactions": [transaction(100, &[]), transaction(200, &[1])],
            "coinbasevalue": 10_000 - 99 - 900,
        });
        assert_eq!(plugin.call("getblocktemplate", json!([{"rules": ["segwit"]}])), Ok(expected));
        assert_eq!(host.rpc.asked()[0].1, r#"[{"rules":["segwit"]}]"#);
    }

    #[test]
    fn templates_without_removals_and_answers_to_proposals_stay_unchanged() {
        let host = StubHost::new();
        let plugin = host.start::<TemplateFilter>(json!({"min_feerate": 0}));
        for answer in [json!("bad-cb-missing"), json!({"transactions": [], "default_witness_commitment": "6a"})] {
            host.rpc.answer("next", Ok(answer.clone()));
            assert_eq!(plugin.call("getblocktemplate", json!([])), Ok(answer));
        }
    }
}
