//! `getmininginfo`, `getnetworkhashps`, the priorities of transactions, and `preciousblock`.

use bitcoin::{CompactTarget, Network, SignedAmount};
use outrigger_kit::blocks::{decode_header, find_block};
use outrigger_kit::without_nulls;
use outrigger_sdk::params::encode_hex;
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::service::chain::{BlockInfo, BlockRef, NextBlock};
use outrigger_sdk::service::mempool::Prioritised;
use outrigger_sdk::standard::policy::BLOCK_FEERATE;
use outrigger_sdk::standard::work;
use outrigger_sdk::{Call, Reply, RpcError, amount, methods, params};
use serde_json::{Value, json};

use crate::MiningPlugin;

/// The number of blocks for the estimate of the network's hash rate in getmininginfo.
const HASH_RATE_BLOCKS: u32 = 120;

#[methods]
impl MiningPlugin {
    /// Returns the state of chain and mempool for miners.
    ///
    /// # Result
    /// {"blocks": n, "currentblockweight": n, "currentblocktx": n, "bits": "hex", "difficulty": n, "target": "hex",
    /// "networkhashps": n, "pooledtx": n, "chain": "name", "next": {...}, "signet_challenge": "hex", "warnings":
    /// []}    (json object) currentblockweight and currentblocktx are present after the first template,
    /// signet_challenge on a signet.
    #[method(category = "Mining", inline)]
    fn getmininginfo(&self, call: &Call<'_>, reply: Reply) {
        match call.host.chain.next_block(call.scope) {
            // The node makes no templates, so it alone knows the next block's target.
            Err(error) if matches!(error.kind, ErrorKind::NodeUnconnected | ErrorKind::NodeDownloading) => {
                reply.pass_on();
            }
            next => {
                reply.send(next.map_err(RpcError::from).and_then(|next| self.mining_info(call, &next)));
            }
        }
    }

    fn mining_info(&self, call: &Call<'_>, next: &NextBlock) -> Result<Value, RpcError> {
        let chain = &call.host.chain;
        let info = chain.info(call.scope)?;
        let tip = find_block(call, BlockRef::Height { height: info.tip.height })?;
        let bits = decode_header(&tip)?.bits;
        let next_bits = CompactTarget::from_consensus(next.bits);
        let last = self.templates.last();
        Ok(without_nulls(json!({
            "blocks": info.tip.height,
            "currentblockweight": last.map(|last| last.weight),
            "currentblocktx": last.map(|last| last.transactions),
            "bits": format!("{:08x}", bits.to_consensus()),
            "difficulty": work::float(work::difficulty(bits)),
            "target": work::target_hex(bits),
            "networkhashps": work::float(hash_rate(call, &tip, HASH_RATE_BLOCKS)?),
            "pooledtx": call.host.mempool.info(call.scope)?.transactions,
            "blockmintxfee": call.rules.relaxed_policy.then(|| amount::to_json(BLOCK_FEERATE)),
            "chain": info.network.to_core_arg(),
            "next": {
                "height": u64::from(next.tip.height) + 1,
                "bits": format!("{:08x}", next.bits),
                "difficulty": work::float(work::difficulty(next_bits)),
                "target": work::target_hex(next_bits),
            },
            "signet_challenge": next.signet_challenge.as_ref().map(|challenge| encode_hex(challenge.as_bytes())),
            "warnings": info.warnings,
        })))
    }

    /// Estimates the network's hashes per second from a range of blocks.
    ///
    /// * `nblocks` - The number of blocks; -1 selects the blocks since the last adjustment of the
    ///   difficulty.
    /// * `height` - The height of the last block; -1 selects the best block.
    ///
    /// # Result
    /// n    (numeric)
    ///
    /// # Example
    /// 2016 100000
    #[method(category = "Mining", inline)]
    fn getnetworkhashps(
        call: &Call<'_>,
        #[arg(default = 120)] nblocks: i32,
        #[arg(default = -1)] height: i32,
    ) -> Result<Value, RpcError> {
        let info = call.host.chain.info(call.scope)?;
        let tip = info.tip.height;
        if nblocks < -1 || nblocks == 0 {
            return Err(RpcError::invalid_parameter("Invalid nblocks. Must be a positive number or -1."));
        }
        let height = match u32::try_from(height) {
            Err(_) if height == -1 => tip,
            Ok(height) if height <= tip => height,
            _ => return Err(RpcError::invalid_parameter("Block does not exist at specified height")),
        };
        // The difficulty changes every two weeks. Bitcoin Core 29 counts one day on regtest, where it never changes.
        let interval = if info.network == Network::Regtest { 144 } else { 2016 };
        let blocks = u32::try_from(nblocks).unwrap_or(height % interval + 1);
        let last = find_block(call, BlockRef::Height { height })?;
        Ok(work::float(hash_rate(call, &last, blocks)?))
    }

    /// Changes a transaction's priority as if it paid more or less. The fee itself does not change.
    ///
    /// * `txid` - The transaction's id.
    /// * `dummy` (default: 0) - Must be 0 or null.
    /// * `fee_delta` - The amount to add to the fee, in satoshi; may be negative.
    ///
    /// # Result
    /// true    (boolean)
    ///
    /// # Example
    /// 1075db55d416d3ca199f55b6084e2115b9345e16c5cf302fc80e9d5fbf5d48d0 0 10000
    #[method(category = "Mining", inline)]
    fn prioritisetransaction(
        call: &Call<'_>,
        txid: &str,
        #[arg(kind = "numeric")] dummy: &Value,
        #[arg(kind = "numeric")] fee_delta: &Value,
    ) -> Result<bool, RpcError> {
        let txid = params::hash_text(txid, "txid")?;
        let fee_delta = params::int64(fee_delta)?;
        if !dummy.is_null() && dummy.as_f64() != Some(0.0) {
            let message = "Priority is no longer supported, dummy argument to prioritisetransaction must be 0.";
            return Err(RpcError::invalid_parameter(message));
        }
        call.host.mempool.prioritise(call.scope, txid, SignedAmount::from_sat(fee_delta))?;
        Ok(true)
    }

    /// Lists the fee deltas of prioritisetransaction.
    ///
    /// # Result
    /// {"txid": {"fee_delta": n, "in_mempool": true|false, "modified_fee": n}, ...}    (json object) Amounts are in
    /// satoshi. modified_fee is present for mempool transactions.
    #[method(category = "Mining", unchecked)]
    fn getprioritisedtransactions(call: &Call<'_>) -> Result<Value, RpcError> {
        let entry = |prioritised: Prioritised| {
            let entry = json!({
                "fee_delta": prioritised.fee_delta.to_sat(),
                "in_mempool": prioritised.modified_fee.is_some(),
                "modified_fee": prioritised.modified_fee.map(|fee| fee.to_sat()),
            });
            (prioritised.txid.to_string(), without_nulls(entry))
        };
        Ok(call.host.mempool.prioritised(call.scope)?.into_iter().map(entry).collect())
    }

    /// Prefers a block to others of the same work, as if it had arrived first.
    ///
    /// * `blockhash` - The block.
    #[method(category = "Blockchain", long_running)]
    fn preciousblock(call: &Call<'_>, blockhash: &str) -> Result<(), RpcError> {
        let hash = params::hash_text(blockhash, "blockhash")?;
        Ok(call.host.chain.precious_block(call.scope, hash)?)
    }
}

/// The hashes per second of the last `blocks` up to `tip`: their work, divided by the time between the earliest and the latest
/// block.
fn hash_rate(call: &Call<'_>, tip: &BlockInfo, blocks: u32) -> Result<f64, RpcError> {
    let first = find_block(call, BlockRef::Height { height: tip.height.saturating_sub(blocks) })?;
    let mut latest = decode_header(tip)?.time;
    let mut earliest = latest;
    for height in first.height..tip.height {
        let time = decode_header(&find_block(call, BlockRef::Height { height })?)?.time;
        (earliest, latest) = (earliest.min(time), latest.max(time));
    }
    if earliest == latest {
        return Ok(0.0);
    }
    Ok((float(&tip.chain_work) - float(&first.chain_work)) / f64::from(latest - earliest))
}

/// A big-endian number as a float, rounded at each byte.
fn float(bytes: &[u8; 32]) -> f64 {
    bytes.iter().fold(0.0, |value, byte| value * 256.0 + f64::from(*byte))
}
