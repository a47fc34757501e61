//! `getmininginfo`, `getnetworkhashps`, the priorities of transactions, and `preciousblock`.

use bitcoin::hashes::Hash;
use bitcoin::{BlockHash, CompactTarget, Network, SignedAmount, Txid};
use outrigger_sdk::service::chain::{BlockInfo, BlockRef};
use outrigger_sdk::standard::policy::BLOCK_FEERATE;
use outrigger_sdk::standard::work;
use outrigger_sdk::{CallContext, RpcError, amount, params};
use serde_json::{Map, Value, json};

use crate::template::LastBlock;

/// The default number of blocks for an estimate of the network's hash rate.
const HASH_RATE_BLOCKS: u32 = 120;

/// The number of blocks between two adjustments of the difficulty: two weeks. Bitcoin Core 29 counts one day on regtest,
/// although the difficulty never changes there.
fn adjustment_blocks(network: Network) -> u32 {
    if network == Network::Regtest { 144 } else { 2016 }
}

pub fn get_mining_info(context: &CallContext<'_>, last: Option<LastBlock>) -> Result<Value, RpcError> {
    let chain = &context.host.chain;
    let info = chain.info(context.scope)?;
    let tip = block(context, info.tip.height)?;
    let bits = header_bits(&tip);
    let next = chain.next_block(context.scope)?;
    let next_bits = CompactTarget::from_consensus(next.bits);
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("blocks", json!(info.tip.height));
    if let Some(last) = last {
        put("currentblockweight", json!(last.weight));
        put("currentblocktx", json!(last.transactions));
    }
    put("bits", json!(format!("{:08x}", bits.to_consensus())));
    put("difficulty", work::float(work::difficulty(bits)));
    put("target", json!(work::target_hex(bits)));
    put("networkhashps", work::float(hash_rate(context, &tip, HASH_RATE_BLOCKS)?));
    put("pooledtx", json!(context.host.mempool.info(context.scope)?.transactions));
    if context.rules.relaxed_policy {
        put("blockmintxfee", amount::to_json(BLOCK_FEERATE));
    }
    put("chain", json!(info.network.to_core_arg()));
    put(
        "next",
        json!({
            "height": u64::from(next.tip.height) + 1,
            "bits": format!("{:08x}", next.bits),
            "difficulty": work::float(work::difficulty(next_bits)),
            "target": work::target_hex(next_bits),
        }),
    );
    put("warnings", json!(info.warnings));
    Ok(Value::Object(object))
}

fn block(context: &CallContext<'_>, height: u32) -> Result<BlockInfo, RpcError> {
    context.host.chain.block_info(context.scope, BlockRef::Height { height })?.ok_or_else(block_not_found)
}

/// The four bytes at `start` of a header, as a little-endian number.
fn header_field(info: &BlockInfo, start: usize) -> u32 {
    let bytes = info.header.get(start..start + 4).and_then(|bytes| bytes.try_into().ok());
    u32::from_le_bytes(bytes.unwrap_or_default())
}

fn header_bits(info: &BlockInfo) -> CompactTarget {
    CompactTarget::from_consensus(header_field(info, 72))
}

fn header_time(info: &BlockInfo) -> u32 {
    header_field(info, 68)
}

pub fn get_network_hash_rate(context: &CallContext<'_>) -> Result<Value, RpcError> {
    let blocks =
        context.params.given(0).map_or(Ok(i32::try_from(HASH_RATE_BLOCKS).unwrap_or_default()), params::int32)?;
    let height = context.params.given(1).map_or(Ok(-1), params::int32)?;
    let info = context.host.chain.info(context.scope)?;
    let tip = info.tip.height;
    if blocks < -1 || blocks == 0 {
        return Err(RpcError::invalid_parameter("Invalid nblocks. Must be a positive number or -1."));
    }
    let height = match u32::try_from(height) {
        Err(_) if height == -1 => tip,
        Ok(height) if height <= tip => height,
        _ => return Err(RpcError::invalid_parameter("Block does not exist at specified height")),
    };
    // -1 selects the blocks since the last adjustment of the difficulty.
    let interval = adjustment_blocks(info.network);
    let blocks = u32::try_from(blocks).unwrap_or(height % interval + 1);
    Ok(work::float(hash_rate(context, &block(context, height)?, blocks)?))
}

/// The hashes per second of the last `blocks` up to `tip`: their work, divided by the time between the earliest and the latest
/// block.
fn hash_rate(context: &CallContext<'_>, tip: &BlockInfo, blocks: u32) -> Result<f64, RpcError> {
    let first = block(context, tip.height.saturating_sub(blocks))?;
    let (mut earliest, mut latest) = (header_time(tip), header_time(tip));
    for height in first.height..tip.height {
        let time = header_time(&block(context, height)?);
        (earliest, latest) = (earliest.min(time), latest.max(time));
    }
    if earliest == latest {
        return Ok(0.0);
    }
    Ok((float(&tip.chain_work) - float(&first.chain_work)) / f64::from(latest - earliest))
}

/// A big-endian number, rounded at each byte.
fn float(bytes: &[u8; 32]) -> f64 {
    bytes.iter().fold(0.0, |value, byte| value * 256.0 + f64::from(*byte))
}

pub fn prioritise_transaction(context: &CallContext<'_>) -> Result<Value, RpcError> {
    let txid = Txid::from_byte_array(params::hash(context.params.get(0), "txid")?);
    let dummy = context.params.given(1);
    let fee_delta = params::int64(context.params.get(2))?;
    if dummy.is_some_and(|dummy| dummy.as_f64() != Some(0.0)) {
        let message = "Priority is no longer supported, dummy argument to prioritisetransaction must be 0.";
        return Err(RpcError::invalid_parameter(message));
    }
    context.host.mempool.prioritise(context.scope, txid, SignedAmount::from_sat(fee_delta))?;
    Ok(json!(true))
}

pub fn get_prioritised_transactions(context: &CallContext<'_>) -> Result<Value, RpcError> {
    let mut object = Map::new();
    for prioritised in context.host.mempool.prioritised(context.scope)? {
        let mut entry = json!({
            "fee_delta": prioritised.fee_delta.to_sat(),
            "in_mempool": prioritised.modified_fee.is_some(),
        });
        if let Some(modified_fee) = prioritised.modified_fee {
            entry["modified_fee"] = json!(modified_fee.to_sat());
        }
        object.insert(prioritised.txid.to_string(), entry);
    }
    Ok(Value::Object(object))
}

pub fn precious_block(context: &CallContext<'_>) -> Result<Value, RpcError> {
    let hash = BlockHash::from_byte_array(params::hash(context.params.get(0), "blockhash")?);
    if context.host.chain.block_info(context.scope, BlockRef::Hash { hash })?.is_none() {
        return Err(block_not_found());
    }
    context.host.chain.precious_block(context.scope, hash)?;
    Ok(Value::Null)
}

fn block_not_found() -> RpcError {
    RpcError::not_found("Block not found")
}
