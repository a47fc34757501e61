//! Blocks: which there are, what is in them, and which count.

use std::sync::atomic::Ordering;

use bitcoin::hashes::Hash;
use bitcoin::{Block, BlockHash, CompactTarget, Network};
use outrigger_sdk::params::{self, encode_hex};
use outrigger_sdk::service::chain::{BlockInfo, BlockRef, BlockState, ChainInfo, ChainTip, SpentOutputs};
use outrigger_sdk::standard::{Spent, block_from_bytes, transaction_json_with, transaction_to_bytes, work};
use serde_json::{Map, Value, json};

use crate::error::ChainError;
use crate::header::{decode, header_json};
use crate::limits::MAX_MOCK_TIME;
use crate::{Context, Outcome, args};

/// A tip older than this, in seconds, means that the chain is still being downloaded.
const MAX_TIP_AGE: u64 = 24 * 60 * 60;

/// The hash that the argument at `index` is; `name` is what messages call it.
pub fn hash_argument(context: &Context<'_>, index: usize, name: &str) -> Result<BlockHash, ChainError> {
    Ok(BlockHash::from_byte_array(params::hash(context.params.get(index), name)?))
}

/// The block that the first argument names.
fn block_argument(context: &Context<'_>) -> Result<BlockInfo, ChainError> {
    let hash = hash_argument(context, 0, "blockhash")?;
    let info = context.host.chain.block_info(context.scope, BlockRef::Hash { hash })?;
    info.ok_or(ChainError::BlockNotFound)
}

pub fn get_block_count(context: &Context<'_>) -> Outcome {
    Ok(json!(context.host.chain.tip(context.scope)?.height))
}

pub fn get_best_block_hash(context: &Context<'_>) -> Outcome {
    Ok(json!(context.host.chain.tip(context.scope)?.hash))
}

pub fn get_block_hash(context: &Context<'_>) -> Outcome {
    let height: i32 = args::integer(context.params.get(0))?;
    let height = u32::try_from(height).map_err(|_| ChainError::HeightOutOfRange)?;
    let info = context.host.chain.block_info(context.scope, BlockRef::Height { height })?;
    info.map(|info| json!(info.hash)).ok_or(ChainError::HeightOutOfRange)
}

pub fn get_block_header(context: &Context<'_>) -> Outcome {
    hash_argument(context, 0, "hash")?;
    let verbose = context.params.flag_or(1, true)?;
    let info = block_argument(context)?;
    if !verbose {
        return Ok(json!(encode_hex(&info.header)));
    }
    Ok(Value::Object(header_json(&info, &context.host.chain.tip(context.scope)?)?))
}

pub fn get_block(context: &Context<'_>) -> Outcome {
    hash_argument(context, 0, "blockhash")?;
    let verbosity = args::verbosity(context.params.given(1), 1)?;
    let info = block_argument(context)?;
    let raw = context.host.chain.block(context.scope, info.hash)?.ok_or(ChainError::BlockNotAvailable)?;
    if verbosity <= 0 {
        return Ok(json!(encode_hex(&raw)));
    }
    let block = block_from_bytes(&raw).ok_or_else(|| ChainError::Damaged(format!("block {}", info.hash)))?;
    let mut object = header_json(&info, &context.host.chain.tip(context.scope)?)?;
    let (size, weight) = (block.total_size(), block.weight().to_wu());
    object.insert("strippedsize".into(), json!((weight - size as u64) / 3));
    object.insert("size".into(), json!(size));
    object.insert("weight".into(), json!(weight));
    let transactions = match verbosity {
        1 => block.txdata.iter().map(|transaction| json!(transaction.compute_txid())).collect(),
        _ => decoded(context, &block, info.hash, verbosity > 2)?,
    };
    object.insert("tx".into(), Value::Array(transactions));
    Ok(Value::Object(object))
}

/// The transactions of a block, with their fees where it was once connected.
fn decoded(context: &Context<'_>, block: &Block, hash: BlockHash, show: bool) -> Result<Vec<Value>, ChainError> {
    let network = context.network()?;
    let spent = context.host.chain.spent_outputs(context.scope, hash)?;
    let coins = |index: usize| spent.as_ref().and_then(|spent| spent.get(index));
    let transactions = block.txdata.iter().enumerate().map(|(index, transaction)| {
        let spent = coins(index).map(|SpentOutputs { coins }| Spent { coins, show });
        let mut object = transaction_json_with(transaction, network, spent);
        object.insert("hex".into(), json!(encode_hex(&transaction_to_bytes(transaction))));
        Value::Object(object)
    });
    Ok(transactions.collect())
}

pub fn get_chain_tips(context: &Context<'_>) -> Outcome {
    let best = context.host.chain.tip(context.scope)?;
    let mut tips = context.host.chain.tips(context.scope)?;
    tips.sort_by_key(|tip| std::cmp::Reverse(tip.height));
    let status = |tip: &ChainTip| match tip.state {
        _ if tip.hash == best.hash => "active",
        BlockState::Failed => "invalid",
        BlockState::HeaderOnly => "headers-only",
        BlockState::Stored => "valid-headers",
        BlockState::Valid => "valid-fork",
    };
    let show = |tip: &ChainTip| json!({"height": tip.height, "hash": tip.hash, "branchlen": tip.branch_length, "status": status(tip)});
    Ok(tips.iter().map(show).collect())
}

/// Whether the tip's time has once been close to the clock's since the start.
fn has_caught_up(context: &Context<'_>) -> Result<bool, ChainError> {
    let caught_up = &context.plugin.caught_up;
    if !caught_up.load(Ordering::Relaxed) {
        let chain = &context.host.chain;
        let tip = chain.tip(context.scope)?;
        caught_up.store(u64::from(tip.time) + MAX_TIP_AGE >= chain.time(context.scope)?, Ordering::Relaxed);
    }
    Ok(caught_up.load(Ordering::Relaxed))
}

pub fn get_blockchain_info(context: &Context<'_>) -> Outcome {
    let chain = &context.host.chain;
    let info = chain.info(context.scope)?;
    let best = chain.block_info(context.scope, BlockRef::Hash { hash: info.tip.hash })?;
    let best = best.ok_or(ChainError::BlockNotFound)?;
    let bits: CompactTarget = decode(&best)?.bits;
    let has_caught_up = has_caught_up(context)?;
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("chain", json!(info.network.to_core_arg()));
    put("blocks", json!(info.tip.height));
    put("headers", json!(info.headers));
    put("bestblockhash", json!(info.tip.hash));
    put("bits", json!(format!("{:08x}", bits.to_consensus())));
    put("target", json!(work::target_hex(bits)));
    put("difficulty", work::float(work::difficulty(bits)));
    put("time", json!(info.tip.time));
    put("mediantime", json!(info.tip.median_time));
    put("verificationprogress", work::float(progress(&info)));
    put("initialblockdownload", json!(!has_caught_up));
    put("chainwork", json!(encode_hex(&best.chain_work)));
    put("size_on_disk", json!(info.size_on_disk.unwrap_or_default()));
    put("pruned", json!(false));
    put("warnings", json!(info.warnings));
    Ok(Value::Object(object))
}

/// The share of the chain that is verified. bitcoind estimates it from the rate of transactions, and takes the rate of a
/// development chain for zero, so that what it has is all there is.
fn progress(info: &ChainInfo) -> f64 {
    match info.network == Network::Regtest {
        true => 1.0,
        false => (f64::from(info.tip.height) + 1.0) / (f64::from(info.headers.max(info.tip.height)) + 1.0),
    }
}

pub fn invalidate_block(context: &Context<'_>) -> Outcome {
    let info = block_argument(context)?;
    context.host.chain.invalidate_block(context.scope, info.hash)?;
    Ok(Value::Null)
}

pub fn reconsider_block(context: &Context<'_>) -> Outcome {
    let info = block_argument(context)?;
    context.host.chain.reconsider_block(context.scope, info.hash)?;
    Ok(Value::Null)
}

pub fn set_mock_time(context: &Context<'_>) -> Outcome {
    if context.network()? != Network::Regtest {
        return Err(ChainError::MockTimeOffRegtest);
    }
    let time: i64 = args::integer(context.params.get(0))?;
    if !(0..=MAX_MOCK_TIME).contains(&time) {
        return Err(ChainError::MockTime(time));
    }
    context.host.chain.set_mock_time(context.scope, time.unsigned_abs())?;
    Ok(Value::Null)
}

/// `syncwithvalidationinterfacequeue`: wallets read by calls that do not wait for the tip show what the node did before.
pub fn sync_with_validation_interface_queue(context: &Context<'_>) -> Outcome {
    context.host.chain.wait_for_wallets(context.scope)?;
    Ok(Value::Null)
}
