//! Blocks: which ones are known, their contents, and which of them are valid.

use std::sync::atomic::Ordering;

use bitcoin::hashes::Hash;
use bitcoin::{Block, BlockHash, CompactTarget, Network, Transaction};
use outrigger_sdk::RpcError;
use outrigger_sdk::params::{self, encode_hex};
use outrigger_sdk::service::chain::{BlockInfo, BlockRef, BlockState, ChainInfo, ChainTip, SpentOutputs};
use outrigger_sdk::standard::{Spent, block_from_bytes, transaction_json_with, transaction_to_bytes, work};
use outrigger_sdk::wire::Blob;
use serde_json::{Map, Value, json};

use crate::header::{damaged, decode, header_json};
use crate::{Context, args};

/// A tip older than this, in seconds, means that the chain is still being downloaded.
const MAX_TIP_AGE: u64 = 24 * 60 * 60;
/// The largest mock time, in seconds: the limit of a 64-bit clock that counts nanoseconds.
const MAX_MOCK_TIME: i64 = 9_223_372_036;

/// The block hash in the argument at `index`. Refusals call the argument `name`.
pub fn hash_argument(context: &Context<'_>, index: usize, name: &str) -> Result<BlockHash, RpcError> {
    Ok(BlockHash::from_byte_array(params::hash(context.params.get(index), name)?))
}

/// The block that the first argument names.
fn block_argument(context: &Context<'_>) -> Result<BlockInfo, RpcError> {
    find_block(context, BlockRef::Hash { hash: hash_argument(context, 0, "blockhash")? })
}

pub fn find_block(context: &Context<'_>, block: BlockRef) -> Result<BlockInfo, RpcError> {
    context.host.chain.block_info(context.scope, block)?.ok_or_else(block_not_found)
}

pub fn block_not_found() -> RpcError {
    RpcError::not_found("Block not found")
}

/// The serialisation of a block.
pub fn raw_block(context: &Context<'_>, hash: BlockHash) -> Result<Blob, RpcError> {
    context.host.chain.block(context.scope, hash)?.ok_or_else(block_not_available)
}

pub fn block_not_available() -> RpcError {
    RpcError::misc("Block not available (not fully downloaded)")
}

pub fn decode_block(raw: &[u8], hash: BlockHash) -> Result<Block, RpcError> {
    block_from_bytes(raw).ok_or_else(|| damaged(&format!("block {hash}")))
}

pub fn get_block_count(context: &Context<'_>) -> Result<Value, RpcError> {
    Ok(json!(context.host.chain.tip(context.scope)?.height))
}

pub fn get_best_block_hash(context: &Context<'_>) -> Result<Value, RpcError> {
    Ok(json!(context.host.chain.tip(context.scope)?.hash))
}

pub fn get_block_hash(context: &Context<'_>) -> Result<Value, RpcError> {
    let out_of_range = || RpcError::invalid_parameter("Block height out of range");
    let height: i32 = args::integer(context.params.get(0))?;
    let height = u32::try_from(height).map_err(|_| out_of_range())?;
    let info = context.host.chain.block_info(context.scope, BlockRef::Height { height })?;
    info.map(|info| json!(info.hash)).ok_or_else(out_of_range)
}

pub fn get_block_header(context: &Context<'_>) -> Result<Value, RpcError> {
    let hash = hash_argument(context, 0, "hash")?;
    let verbose = context.params.flag_or(1, true)?;
    let info = find_block(context, BlockRef::Hash { hash })?;
    if !verbose {
        return Ok(json!(encode_hex(&info.header)));
    }
    Ok(Value::Object(header_json(&info, &context.host.chain.tip(context.scope)?)?))
}

pub fn get_block(context: &Context<'_>) -> Result<Value, RpcError> {
    let hash = hash_argument(context, 0, "blockhash")?;
    let verbosity = args::verbosity(context.params.given(1), 1)?;
    let info = find_block(context, BlockRef::Hash { hash })?;
    let raw = raw_block(context, hash)?;
    if verbosity <= 0 {
        return Ok(json!(encode_hex(&raw)));
    }
    let block = decode_block(&raw, hash)?;
    let mut object = header_json(&info, &context.host.chain.tip(context.scope)?)?;
    let (size, weight) = (block.total_size(), block.weight().to_wu());
    object.insert("strippedsize".into(), json!((weight - size as u64) / 3));
    object.insert("size".into(), json!(size));
    object.insert("weight".into(), json!(weight));
    if let Some(coinbase) = block.coinbase().filter(|_| context.rules.block_coinbase) {
        object.insert("coinbase_tx".into(), coinbase_json(coinbase));
    }
    let transactions = match verbosity {
        1 => block.txdata.iter().map(|transaction| json!(transaction.compute_txid())).collect(),
        _ => transactions_json(context, &block, hash, verbosity > 2)?,
    };
    object.insert("tx".into(), Value::Array(transactions));
    Ok(Value::Object(object))
}

/// A coinbase without its outputs.
fn coinbase_json(coinbase: &Transaction) -> Value {
    let mut object = Map::new();
    object.insert("version".into(), json!(coinbase.version.0));
    object.insert("locktime".into(), json!(coinbase.lock_time.to_consensus_u32()));
    if let Some(input) = coinbase.input.first() {
        object.insert("sequence".into(), json!(input.sequence.to_consensus_u32()));
        object.insert("coinbase".into(), json!(encode_hex(input.script_sig.as_bytes())));
        if let Some(item) = input.witness.nth(0) {
            object.insert("witness".into(), json!(encode_hex(item)));
        }
    }
    Value::Object(object)
}

/// The transactions of a block. If the block was ever connected, each has its fee, and with `show` the outputs it spends.
fn transactions_json(
    context: &Context<'_>,
    block: &Block,
    hash: BlockHash,
    show: bool,
) -> Result<Vec<Value>, RpcError> {
    let network = context.network()?;
    let spent = context.host.chain.spent_outputs(context.scope, hash)?;
    let transactions = block.txdata.iter().enumerate().map(|(index, transaction)| {
        let spent = spent.as_ref().and_then(|spent| spent.get(index));
        let spent = spent.map(|SpentOutputs { coins }| Spent { coins, show });
        let mut object = transaction_json_with(transaction, network, spent);
        object.insert("hex".into(), json!(encode_hex(&transaction_to_bytes(transaction))));
        Value::Object(object)
    });
    Ok(transactions.collect())
}

pub fn get_chain_tips(context: &Context<'_>) -> Result<Value, RpcError> {
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

/// Whether the tip was recent at this call or at any call before.
fn has_caught_up(context: &Context<'_>) -> Result<bool, RpcError> {
    let caught_up = &context.plugin.caught_up;
    if !caught_up.load(Ordering::Relaxed) {
        let chain = &context.host.chain;
        let tip = chain.tip(context.scope)?;
        caught_up.store(u64::from(tip.time) + MAX_TIP_AGE >= chain.time(context.scope)?, Ordering::Relaxed);
    }
    Ok(caught_up.load(Ordering::Relaxed))
}

pub fn get_blockchain_info(context: &Context<'_>) -> Result<Value, RpcError> {
    let info = context.host.chain.info(context.scope)?;
    let best = find_block(context, BlockRef::Hash { hash: info.tip.hash })?;
    let bits: CompactTarget = decode(&best)?.bits;
    let has_caught_up = has_caught_up(context)?;
    Ok(json!({
        "chain": info.network.to_core_arg(),
        "blocks": info.tip.height,
        "headers": info.headers,
        "bestblockhash": info.tip.hash,
        "bits": format!("{:08x}", bits.to_consensus()),
        "target": work::target_hex(bits),
        "difficulty": work::float(work::difficulty(bits)),
        "time": info.tip.time,
        "mediantime": info.tip.median_time,
        "verificationprogress": work::float(progress(&info)),
        "initialblockdownload": !has_caught_up,
        "chainwork": encode_hex(&best.chain_work),
        "size_on_disk": info.size_on_disk.unwrap_or_default(),
        "pruned": false,
        "warnings": info.warnings,
    }))
}

/// The share of the chain that is verified. bitcoind estimates it from the network's rate of transactions. For regtest that rate
/// is zero, so bitcoind always reports 1.
fn progress(info: &ChainInfo) -> f64 {
    match info.network == Network::Regtest {
        true => 1.0,
        false => (f64::from(info.tip.height) + 1.0) / (f64::from(info.headers.max(info.tip.height)) + 1.0),
    }
}

pub fn invalidate_block(context: &Context<'_>) -> Result<Value, RpcError> {
    let info = block_argument(context)?;
    context.host.chain.invalidate_block(context.scope, info.hash)?;
    Ok(Value::Null)
}

pub fn reconsider_block(context: &Context<'_>) -> Result<Value, RpcError> {
    let info = block_argument(context)?;
    context.host.chain.reconsider_block(context.scope, info.hash)?;
    Ok(Value::Null)
}

pub fn set_mock_time(context: &Context<'_>) -> Result<Value, RpcError> {
    if context.network()? != Network::Regtest {
        return Err(RpcError::misc("setmocktime is for regression testing (-regtest mode) only"));
    }
    let time: i64 = args::integer(context.params.get(0))?;
    if !(0..=MAX_MOCK_TIME).contains(&time) {
        let message = format!("Mocktime must be in the range [0, {MAX_MOCK_TIME}], not {time}.");
        return Err(RpcError::invalid_parameter(message));
    }
    context.host.chain.set_mock_time(context.scope, time.unsigned_abs())?;
    Ok(Value::Null)
}

/// `syncwithvalidationinterfacequeue` waits for the wallets, because some calls read a wallet without waiting for the tip.
pub fn sync_with_validation_interface_queue(context: &Context<'_>) -> Result<Value, RpcError> {
    context.host.chain.wait_for_wallets(context.scope)?;
    Ok(Value::Null)
}
