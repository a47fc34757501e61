//! What miners want to know, and what they prefer.

use bitcoin::hashes::Hash;
use bitcoin::{BlockHash, CompactTarget, Network, SignedAmount, Txid};
use outrigger_sdk::params;
use outrigger_sdk::service::chain::{BlockInfo, BlockRef};
use outrigger_sdk::standard::work;
use serde_json::{Map, Value, json};

use crate::error::MiningError;
use crate::template::LastBlock;
use crate::{Context, Outcome};

/// The number of blocks that the network's hash rate is estimated from.
const HASH_RATE_BLOCKS: u32 = 120;
/// The number of blocks between two adjustments of the difficulty: two weeks of them, and one day of them on the development
/// chain, where none changes anything (Bitcoin Core 29).
fn adjustment_blocks(network: Network) -> u32 {
    if network == Network::Regtest { 144 } else { 2016 }
}

pub fn get_mining_info(context: &Context<'_>, last: Option<LastBlock>) -> Outcome {
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

fn block(context: &Context<'_>, height: u32) -> Result<BlockInfo, MiningError> {
    context.host.chain.block_info(context.scope, BlockRef::Height { height })?.ok_or(MiningError::BlockNotFound)
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

pub fn get_network_hash_rate(context: &Context<'_>) -> Outcome {
    let blocks =
        context.params.given(0).map_or(Ok(i32::try_from(HASH_RATE_BLOCKS).unwrap_or_default()), params::int32)?;
    let height = context.params.given(1).map_or(Ok(-1), params::int32)?;
    let info = context.host.chain.info(context.scope)?;
    let tip = info.tip.height;
    if blocks < -1 || blocks == 0 {
        return Err(MiningError::HashRateBlocks);
    }
    let height = match u32::try_from(height) {
        Err(_) if height == -1 => tip,
        Ok(height) if height <= tip => height,
        _ => return Err(MiningError::NoBlockAtHeight),
    };
    // A negative number means: since the difficulty was last adjusted.
    let interval = adjustment_blocks(info.network);
    let blocks = u32::try_from(blocks).unwrap_or(height % interval + 1);
    Ok(work::float(hash_rate(context, &block(context, height)?, blocks)?))
}

/// The hashes per second that the last `blocks` up to `tip` took: the work between the first and the last of them, by the time
/// between the earliest and the latest.
fn hash_rate(context: &Context<'_>, tip: &BlockInfo, blocks: u32) -> Result<f64, MiningError> {
    let first = block(context, tip.height.saturating_sub(blocks))?;
    let (mut earliest, mut latest) = (header_time(tip), header_time(tip));
    for height in first.height..tip.height {
        let time = header_time(&block(context, height)?);
        (earliest, latest) = (earliest.min(time), latest.max(time));
    }
    if earliest == latest {
        return Ok(0.0);
    }
    Ok((number(&tip.chain_work) - number(&first.chain_work)) / f64::from(latest - earliest))
}

/// A big-endian number, as near as a float comes.
fn number(bytes: &[u8; 32]) -> f64 {
    bytes.iter().fold(0.0, |value, byte| value * 256.0 + f64::from(*byte))
}

pub fn prioritise_transaction(context: &Context<'_>) -> Outcome {
    let txid = Txid::from_byte_array(params::hash(context.params.get(0), "txid")?);
    let dummy = context.params.given(1);
    let fee_delta = params::int64(context.params.get(2))?;
    if dummy.is_some_and(|dummy| dummy.as_f64() != Some(0.0)) {
        return Err(MiningError::Priority);
    }
    context.host.mempool.prioritise(context.scope, txid, SignedAmount::from_sat(fee_delta))?;
    Ok(json!(true))
}

pub fn get_prioritised_transactions(context: &Context<'_>) -> Outcome {
    let mut object = Map::new();
    for prioritised in context.host.mempool.prioritised(context.scope)? {
        let mut entry = Map::new();
        entry.insert("fee_delta".to_owned(), json!(prioritised.fee_delta.to_sat()));
        entry.insert("in_mempool".to_owned(), json!(prioritised.modified_fee.is_some()));
        if let Some(modified_fee) = prioritised.modified_fee {
            entry.insert("modified_fee".to_owned(), json!(modified_fee.to_sat()));
        }
        object.insert(prioritised.txid.to_string(), Value::Object(entry));
    }
    Ok(Value::Object(object))
}

pub fn precious_block(context: &Context<'_>) -> Outcome {
    let hash = BlockHash::from_byte_array(params::hash(context.params.get(0), "blockhash")?);
    if context.host.chain.block_info(context.scope, BlockRef::Hash { hash })?.is_none() {
        return Err(MiningError::BlockNotFound);
    }
    context.host.chain.precious_block(context.scope, hash)?;
    Ok(Value::Null)
}
