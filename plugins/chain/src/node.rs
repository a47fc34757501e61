//! What a node tells of itself and lets be done to itself, beside its chain: chain states, checks, memory, logging, pruning.

use std::collections::HashSet;

use bitcoin::{Block, OutPoint};
use outrigger_sdk::Reply;
use outrigger_sdk::script::parse::is_unspendable;
use outrigger_sdk::service::chain::BlockRef;
use outrigger_sdk::standard::{block_from_bytes, work};
use serde_json::{Value, json};

use crate::blocks::progress;
use crate::error::ChainError;
use crate::header::decode;
use crate::{Context, Outcome, args};

/// The categories that release 29 logs by.
const CATEGORIES: [&str; 28] = [
    "addrman",
    "bench",
    "blockstorage",
    "cmpctblock",
    "coindb",
    "estimatefee",
    "http",
    "i2p",
    "ipc",
    "leveldb",
    "libevent",
    "mempool",
    "mempoolrej",
    "net",
    "proxy",
    "prune",
    "qt",
    "rand",
    "reindex",
    "rpc",
    "scan",
    "selectcoins",
    "tor",
    "txpackages",
    "txreconciliation",
    "validation",
    "walletdb",
    "zmq",
];
/// The blocks that verifychain looks at where nothing is said, and how closely.
const DEFAULT_CHECKED: i32 = 6;
const DEFAULT_LEVEL: i32 = 3;
/// From this level on the outputs that blocks spent are read, and from the other on what the chain keeps as unspent.
const LEVEL_OF_SPENT: i32 = 2;
const LEVEL_OF_COINS: i32 = 3;

pub fn get_chain_states(context: &Context<'_>) -> Outcome {
    let info = context.host.chain.info(context.scope)?;
    let best = context.host.chain.block_info(context.scope, BlockRef::Hash { hash: info.tip.hash })?;
    let bits = decode(&best.ok_or(ChainError::BlockNotFound)?)?.bits;
    Ok(json!({
        "headers": info.headers,
        "chainstates": [{
            "blocks": info.tip.height,
            "bestblockhash": info.tip.hash,
            "bits": format!("{:08x}", bits.to_consensus()),
            "target": work::target_hex(bits),
            "difficulty": work::float(work::difficulty(bits)),
            "verificationprogress": work::float(progress(&info)),
            // The file is mapped: nothing of it is cached besides.
            "coins_db_cache_bytes": 0,
            "coins_tip_cache_bytes": 0,
            "validated": true,
        }],
    }))
}

/// Reads the last blocks from the tip down, as closely as the level says. That a block's scripts are valid is not asked again
/// (level 4): what was read is what was validated, since each value has a checksum.
pub fn verify_chain(context: &Context<'_>, reply: &Reply) -> Outcome {
    let level: i32 = context.params.given(0).map_or(Ok(DEFAULT_LEVEL), args::integer)?;
    let blocks: i32 = context.params.given(1).map_or(Ok(DEFAULT_CHECKED), args::integer)?;
    let tip = context.host.chain.tip(context.scope)?;
    let blocks = u32::try_from(blocks).ok().filter(|blocks| (1..tip.height).contains(blocks)).unwrap_or(tip.height);
    let mut spent_later = HashSet::new();
    for height in (tip.height - blocks + 1..=tip.height).rev() {
        if !reply.is_wanted() || !is_whole(context, height, level, &mut spent_later)? {
            return Ok(json!(false));
        }
    }
    Ok(json!(true))
}

/// Whether a block is there with all that belongs to it. `spent_later` holds what the blocks above it spent.
fn is_whole(
    context: &Context<'_>,
    height: u32,
    level: i32,
    spent_later: &mut HashSet<OutPoint>,
) -> Result<bool, ChainError> {
    let chain = &context.host.chain;
    let Some(info) = chain.block_info(context.scope, BlockRef::Height { height })? else { return Ok(false) };
    let Some(raw) = chain.block(context.scope, info.hash)? else { return Ok(false) };
    let Some(block) = block_from_bytes(&raw).filter(|block| level < 1 || block.check_merkle_root()) else {
        return Ok(false);
    };
    if level >= LEVEL_OF_SPENT {
        let Some(spent) = chain.spent_outputs(context.scope, info.hash)? else { return Ok(false) };
        let inputs =
            |(index, transaction): (usize, &bitcoin::Transaction)| if index == 0 { 0 } else { transaction.input.len() };
        let wanted = block.txdata.iter().enumerate().map(inputs);
        if !wanted.eq(spent.iter().map(|spent| spent.coins.len())) {
            return Ok(false);
        }
    }
    Ok(level < LEVEL_OF_COINS || coins_fit(context, &block, spent_later)?)
}

/// Whether of a block's outputs those that nothing spent are unspent, and of those that it spent none is.
fn coins_fit(context: &Context<'_>, block: &Block, spent_later: &mut HashSet<OutPoint>) -> Result<bool, ChainError> {
    let spent: Vec<OutPoint> =
        block.txdata.iter().skip(1).flat_map(|tx| &tx.input).map(|input| input.previous_output).collect();
    spent_later.extend(&spent);
    let mut unspent = Vec::new();
    for transaction in &block.txdata {
        let txid = transaction.compute_txid();
        let outputs =
            transaction.output.iter().zip(0..).filter(|(output, _)| !is_unspendable(output.script_pubkey.as_bytes()));
        unspent.extend(
            outputs.map(|(_, vout)| OutPoint::new(txid, vout)).filter(|outpoint| !spent_later.contains(outpoint)),
        );
    }
    let chain = &context.host.chain;
    Ok(chain.coins(context.scope, unspent)?.iter().all(Option::is_some)
        && chain.coins(context.scope, spent)?.iter().all(Option::is_none))
}

/// The memory that is locked so that keys in it are not swapped out: none is, since memory that held keys is wiped instead.
pub fn get_memory_info(context: &Context<'_>) -> Outcome {
    match context.params.given(0).map_or(Ok("stats"), args::text)? {
        "stats" => {
            Ok(json!({"locked": {"used": 0, "free": 0, "total": 0, "locked": 0, "chunks_used": 0, "chunks_free": 0}}))
        }
        "mallocinfo" => Err(ChainError::NoMallocInfo),
        mode => Err(ChainError::MemoryMode(mode.to_owned())),
    }
}

/// Which categories are logged: none of bitcoind's, whatever is asked for. The host's log is set in its configuration.
pub fn logging(context: &Context<'_>) -> Outcome {
    for index in 0..2 {
        for category in context.params.given(index).map_or(Ok(&[][..]), args::array)? {
            let category = args::text(category)?;
            if !matches!(category, "" | "1" | "all") && !CATEGORIES.contains(&category) {
                return Err(ChainError::LogCategory(category.to_owned()));
            }
        }
    }
    Ok(Value::Object(CATEGORIES.iter().map(|category| ((*category).to_owned(), json!(false))).collect()))
}

pub fn prune_blockchain(context: &Context<'_>) -> Outcome {
    let _height: i32 = args::integer(context.params.get(0))?;
    Err(ChainError::NotPruning)
}

/// A development chain begins with its genesis block, never with a file of unspent outputs.
pub fn load_tx_out_set(context: &Context<'_>) -> Outcome {
    Err(ChainError::SnapshotFile(args::text(context.params.get(0))?.to_owned()))
}
