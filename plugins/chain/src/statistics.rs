//! Statistics over many blocks, and the list of indexes.

use outrigger_kit::blocks::{decode_header, find_block};
use outrigger_kit::without_nulls;
use outrigger_sdk::service::chain::{BlockInfo, BlockRef};
use outrigger_sdk::standard::work;
use outrigger_sdk::{Call, RpcError, methods, params, typed};
use serde_json::{Value, json};

use crate::ChainPlugin;

/// The default window of `getchaintxstats`: a month of blocks.
const DEFAULT_WINDOW: u32 = 30 * 24 * 6;
/// Both count as synced: the host always has the transaction index, and each call computes the block filters.
const INDEXES: [&str; 2] = ["txindex", "basic block filter index"];

/// The block that the argument `blockhash` names, or by default the best block.
pub fn block_or_tip(call: &Call<'_>, blockhash: Option<&str>) -> Result<BlockInfo, RpcError> {
    let hash = match blockhash {
        Some(text) => params::hash_text(text, "blockhash")?,
        None => call.host.chain.tip(call.scope)?.hash,
    };
    find_block(call, BlockRef::Hash { hash })
}

pub fn check_in_main_chain(info: &BlockInfo) -> Result<(), RpcError> {
    if info.in_best_chain { Ok(()) } else { Err(RpcError::invalid_parameter("Block is not in main chain")) }
}

#[methods]
impl ChainPlugin {
    /// Gives the difficulty of the best block, as a multiple of the minimum difficulty of the main chain.
    ///
    /// # Result
    /// n    (numeric)
    #[method(category = "Blockchain", inline)]
    fn getdifficulty(call: &Call<'_>) -> Result<Value, RpcError> {
        let height = call.host.chain.tip(call.scope)?.height;
        let tip = find_block(call, BlockRef::Height { height })?;
        Ok(work::float(work::difficulty(decode_header(&tip)?.bits)))
    }

    /// Counts the transactions of the best chain, and gives their rate in a window of blocks. The call reads the
    /// index entry of every block.
    ///
    /// * `nblocks` (default: one month) - The window's size in blocks.
    /// * `blockhash` (default: the best block) - The window's last block.
    ///
    /// # Result
    /// {"time": n, "txcount": n, "window_final_block_hash": "hash", "window_final_block_height": n,
    /// "window_block_count": n, "window_interval": n, "window_tx_count": n, "txrate": n}    (json object) An empty
    /// window has none of the last three members. Times are in seconds.
    ///
    /// # Example
    /// 2016
    #[method(category = "Blockchain")]
    fn getchaintxstats(
        call: &Call<'_>,
        #[arg(kind = "numeric")] nblocks: Option<&Value>,
        blockhash: Option<&str>,
    ) -> Result<Value, RpcError> {
        let last = block_or_tip(call, blockhash)?;
        check_in_main_chain(&last)?;
        let below = last.height.saturating_sub(1);
        let window = match nblocks {
            None => DEFAULT_WINDOW.min(below),
            Some(window) => {
                let window: i32 = typed::integer(window)?;
                let invalid = "Invalid block count: should be between 0 and the block's height - 1";
                let window = u32::try_from(window).ok().filter(|window| *window <= below);
                window.ok_or_else(|| RpcError::invalid_parameter(invalid))?
            }
        };
        let (mut all, mut within) = (0_u64, 0_u64);
        let mut first = last.clone();
        for height in 0..=last.height {
            let block = find_block(call, BlockRef::Height { height })?;
            all += u64::from(block.transactions.unwrap_or_default());
            if height + window > last.height {
                within += u64::from(block.transactions.unwrap_or_default());
            }
            if height + window == last.height {
                first = block;
            }
        }
        let interval = (window > 0).then(|| i64::from(last.median_time) - i64::from(first.median_time));
        let rate = |interval: i64| (interval > 0).then(|| work::float(within as f64 / interval as f64));
        Ok(without_nulls(json!({
            "time": decode_header(&last)?.time,
            "txcount": all,
            "window_final_block_hash": last.hash,
            "window_final_block_height": last.height,
            "window_block_count": window,
            "window_interval": interval,
            "window_tx_count": interval.map(|_| within),
            "txrate": interval.and_then(rate),
        })))
    }

    /// Lists the indexes. The transaction index is always complete. The block filter index counts as complete,
    /// because each call computes its filters.
    ///
    /// * `index_name` - The only index to list.
    ///
    /// # Result
    /// {"name": {"synced": true, "best_block_height": n}, ...}    (json object)
    ///
    /// # Example
    /// txindex
    #[method(category = "Util", inline)]
    fn getindexinfo(call: &Call<'_>, index_name: Option<&str>) -> Result<Value, RpcError> {
        let height = call.host.chain.tip(call.scope)?.height;
        let chosen =
            INDEXES.into_iter().filter(|name| index_name.is_none_or(|wanted| wanted.is_empty() || wanted == *name));
        let show = |name: &str| (name.to_owned(), json!({"synced": true, "best_block_height": height}));
        Ok(chosen.map(show).collect())
    }
}
