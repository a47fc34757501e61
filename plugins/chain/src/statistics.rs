//! What is counted over many blocks, and which indexes there are.

use outrigger_sdk::service::chain::{BlockInfo, BlockRef};
use outrigger_sdk::standard::work;
use serde_json::{Map, Value, json};

use crate::blocks::hash_argument;
use crate::error::ChainError;
use crate::header::decode;
use crate::{Context, Outcome, args};

/// The window that transactions are counted in where none is given: a month of blocks.
const DEFAULT_WINDOW: u32 = 30 * 24 * 6;
/// The index that answers for confirmed transactions by their id. The chain cannot be without it.
const TRANSACTION_INDEX: &str = "txindex";
/// The index of block filters. They are computed when they are asked for, so that it is always up to date.
const FILTER_INDEX: &str = "basic block filter index";

/// The block that the argument at `index` names, or the best one.
pub fn block_or_tip(context: &Context<'_>, index: usize) -> Result<BlockInfo, ChainError> {
    let hash = match context.params.given(index) {
        Some(_) => hash_argument(context, index, "blockhash")?,
        None => context.host.chain.tip(context.scope)?.hash,
    };
    context.host.chain.block_info(context.scope, BlockRef::Hash { hash })?.ok_or(ChainError::BlockNotFound)
}

fn block_at(context: &Context<'_>, height: u32) -> Result<BlockInfo, ChainError> {
    context.host.chain.block_info(context.scope, BlockRef::Height { height })?.ok_or(ChainError::BlockNotFound)
}

pub fn get_difficulty(context: &Context<'_>) -> Outcome {
    let tip = context.host.chain.tip(context.scope)?;
    Ok(work::float(work::difficulty(decode(&block_at(context, tip.height)?)?.bits)))
}

pub fn get_chain_tx_stats(context: &Context<'_>) -> Outcome {
    let last = block_or_tip(context, 1)?;
    if !last.in_best_chain {
        return Err(ChainError::NotInMainChain);
    }
    let below = last.height.saturating_sub(1);
    let window = match context.params.given(0) {
        None => DEFAULT_WINDOW.min(below),
        Some(window) => {
            let window: i32 = args::integer(window)?;
            u32::try_from(window).ok().filter(|window| *window <= below).ok_or(ChainError::BlockCount)?
        }
    };
    let (mut all, mut within) = (0_u64, 0_u64);
    let mut first = last.clone();
    for height in 0..=last.height {
        let block = block_at(context, height)?;
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

pub fn get_index_info(context: &Context<'_>) -> Outcome {
    let wanted = context.params.given(0).map(args::text).transpose()?;
    let height = context.host.chain.tip(context.scope)?.height;
    let chosen = [TRANSACTION_INDEX, FILTER_INDEX].into_iter();
    let chosen = chosen.filter(|name| wanted.is_none_or(|wanted| wanted.is_empty() || wanted == *name));
    let show = |name: &str| (name.to_owned(), json!({"synced": true, "best_block_height": height}));
    Ok(Value::Object(chosen.map(show).collect()))
}
