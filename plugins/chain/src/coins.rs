//! `gettxoutsetinfo`: sums and hashes over all unspent outputs.

use bitcoin::hashes::{Hash, HashEngine, sha256, sha256d};
use bitcoin::{Amount, OutPoint};
use outrigger_kit::without_nulls;
use outrigger_sdk::amount::{self, Saturating};
use outrigger_sdk::{Call, RpcError, methods};
use serde_json::{Value, json};

use crate::ChainPlugin;

/// The number of outputs in one request to the host.
const BATCH: u32 = 4096;

/// The bytes that bitcoind counts in `bogosize` for an output without its script: transaction id, index, height with the coinbase
/// flag, value, length of the script.
const BOGO_OVERHEAD: u64 = 32 + 4 + 4 + 8 + 2;

const NO_MUHASH: &str = "'muhash' is not a valid hash_type: the embedded chain has hash_serialized_3 and none";

fn hash_named(name: &str) -> Result<Option<sha256::HashEngine>, RpcError> {
    match name {
        "none" => Ok(None),
        "hash_serialized_3" => Ok(Some(sha256d::Hash::engine())),
        "muhash" => Err(RpcError::invalid_parameter(NO_MUHASH)),
        unknown => Err(RpcError::invalid_parameter(format!("'{unknown}' is not a valid hash_type"))),
    }
}

#[methods(category = "Blockchain", long_running)]
impl ChainPlugin {
    /// Sums up all unspent outputs at the best block. The call reads every output, because the chain has no
    /// coinstatsindex. Without that index there are no sums at other blocks.
    ///
    /// * `hash_type` - The hash over the outputs: hash_serialized_3 or none. Only a
    ///   bitcoind behind the host has muhash.
    /// * `hash_or_height` - Must be omitted, because it needs the coinstatsindex.
    /// * `use_index` - Has no effect.
    ///
    /// # Result
    /// {"height": n, "bestblock": "hash", "txouts": n, "bogosize": n, "hash_serialized_3": "hash", "total_amount": n,
    /// "transactions": n, "disk_size": n}    (json object) The amount is in BTC. disk_size is the size of the whole
    /// database, including the blocks, in bytes.
    ///
    /// # Example
    /// none
    #[method]
    fn gettxoutsetinfo(
        call: &Call<'_>,
        #[arg(default = "hash_serialized_3")] hash_type: &str,
        hash_or_height: Option<&Value>,
        #[arg(default = true)] _use_index: bool,
    ) -> Result<Value, RpcError> {
        let mut hash = hash_named(hash_type)?;
        if hash_or_height.is_some() {
            return Err(RpcError::invalid_parameter("Querying specific block heights requires coinstatsindex"));
        }
        let info = call.host.chain.info(call.scope)?;
        let (mut outputs, mut transactions, mut size, mut total) = (0_u64, 0_u64, 0_u64, Amount::ZERO);
        let mut last: Option<OutPoint> = None;
        loop {
            let batch = call.host.chain.coins_after(call.scope, last, BATCH)?;
            if batch.is_empty() {
                break;
            }
            for output in &batch {
                outputs += 1;
                transactions += u64::from(last.is_none_or(|last| last.txid != output.outpoint.txid));
                size += BOGO_OVERHEAD + output.coin.output.script_pubkey.len() as u64;
                total = total.saturating_add(output.coin.output.value);
                if let Some(engine) = &mut hash {
                    engine.input(&output.coin.hashed_as(&output.outpoint));
                }
                last = Some(output.outpoint);
            }
        }
        Ok(without_nulls(json!({
            "height": info.tip.height,
            "bestblock": info.tip.hash,
            "txouts": outputs,
            "bogosize": size,
            hash_type: hash.map(|engine| sha256d::Hash::from_engine(engine).to_string()),
            "total_amount": amount::to_json(total),
            "transactions": transactions,
            "disk_size": info.size_on_disk.unwrap_or_default(),
        })))
    }
}
