//! Statistics over many blocks, and the list of indexes.

use outrigger_sdk::RpcError;
use outrigger_sdk::service::chain::{BlockInfo, BlockRef};
use outrigger_sdk::standard::work;
use serde_json::{Map, Value, json};

use crate::blocks::{find_block, hash_argument};
use crate::header::decode;
use crate::{Context, args};

/// The default window of `getchaintxstats`: a month of blocks.
const DEFAULT_WINDOW: u32 = 30 * 24 * 6;
/// The chain always has the transaction index, and each call computes its block filters. Both count as synced.
const INDEXES: [&str; 2] = ["txindex", "basic block filter index"];

/// The block that the argument at `index` names, or the best one.
pub fn block_or_tip(context: &Context<'_>, index: usize) -> Result<BlockInfo, RpcError> {
    let hash = match context.params.given(index) {
        Some(_) => hash_argument(context, index, "blockhash")?,
        None => context.host.chain.tip(context.scope)?.hash,
    };
    find_block(context, BlockRef::Hash { hash })
}

pub fn check_in_main_chain(info: &BlockInfo) -> Result<(), RpcError> {
    if info.in_best_chain { Ok(()) } else { Err(RpcError::invalid_parameter("Block is not in main chain")) }
}

pub fn get_difficulty(context: &Context<'_>) -> Result<Value, RpcError> {
    let height = context.host.chain.tip(context.scope)?.height;
    let tip = find_block(context, BlockRef::Height { height })?;
    Ok(work::float(work::difficulty(decode(&tip)?.bits)))
}

pub fn get_chain_tx_stats(context: &Context<'_>) -> Result<Value, RpcError> {
    let last = block_or_tip(context, 1)?;
    check_in_main_chain(&last)?;
    let below = last.height.saturating_sub(1);
    let window = match context.params.given(0) {
        None => DEFAULT_WINDOW.min(below),
        Some(window) => {
            let window: i32 = args::integer(window)?;
            let invalid = "Invalid block count: should be between 0 and the block's height - 1";
            let window = u32::try_from(window).ok().filter(|window| *window <= below);
            window.ok_or_else(|| RpcError::invalid_parameter(invalid))?
        }
    };
    let (mut all, mut within) = (0_u64, 0_u64);
    let mut first = last.clone();
    for height in 0..=last.height {
        let block = find_block(context, BlockRef::Height { height })?;
        all += u64::from(block.transactions.unwrap_or_default());
        if height + window > last.height {
            within += u64::from(block.transactions.unwrap_or_default());
        }
        if height + window == last.height {
            first = block;
        }
    }
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("time", json!(decode(&last)?.time));
    put("txcount", json!(all));
    put("window_final_block_hash", json!(last.hash));
    put("window_final_block_height", json!(last.height));
    put("window_block_count", json!(window));
    if window > 0 {
        let interval = i64::from(last.median_time) - i64::from(first.median_time);
        put("window_interval", json!(interval));
        put("window_tx_count", json!(within));
        if interval > 0 {
            put("txrate", work::float(within as f64 / interval as f64));
        }
    }
    Ok(Value::Object(object))
}

pub fn get_index_info(context: &Context<'_>) -> Result<Value, RpcError> {
    let wanted = context.params.given(0).map(args::text).transpose()?;
    let height = context.host.chain.tip(context.scope)?.height;
    let chosen = INDEXES.into_iter().filter(|name| wanted.is_none_or(|wanted| wanted.is_empty() || wanted == *name));
    let show = |name: &str| (name.to_owned(), json!({"synced": true, "best_block_height": height}));
    Ok(Value::Object(chosen.map(show).collect()))
}
