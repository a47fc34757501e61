//! Fetches headers over REST if the node supports it, otherwise in batches of getblockheader.

use bitcoin::BlockHash;
use bitcoin::block::Header;
use bitcoin::consensus::deserialize;
use serde_json::json;

use super::answers::{ChainAnswer, Hex};
use super::error::{AskError, MirrorError, SyncError};
use super::mirror::Moment;
use super::rpc::{Question, Rpc};

/// How many headers are fetched one by one before a binary search for the fork's height.
const WALK: usize = 8;

/// How many headers are fetched and stored in one part.
const PART: u32 = 2000;

/// Returns the hash of a mirrored block, and the first part of the headers from there to the node's best block.
///
/// # Errors
/// The node is away. `Moved`: the node's best chain changed meanwhile.
pub(crate) fn fetch(rpc: &Rpc, moment: &Moment, best: BlockHash) -> Result<(BlockHash, Vec<Header>), SyncError> {
    let mut headers = Vec::new();
    let mut hash = best;
    while headers.len() < WALK {
        if moment.entry(&hash)?.is_some() {
            headers.reverse();
            return Ok((hash, headers));
        }
        let header = header(rpc, hash)?;
        hash = header.prev_blockhash;
        headers.push(header);
    }
    let fork = fork_height(rpc, moment)?;
    let base = moment.best_at(fork)?.ok_or(MirrorError::Row("best"))?;
    Ok((base, headers_after(rpc, fork, base)?))
}

pub(crate) fn header(rpc: &Rpc, hash: BlockHash) -> Result<Header, AskError> {
    let Hex(bytes) = rpc.ask("getblockheader", &json!([hash, false]))?;
    let header: Header = deserialize(&bytes).map_err(|error| AskError::form("getblockheader", &error))?;
    if header.block_hash() == hash { Ok(header) } else { Err(rpc.unproven(format!("its header {hash} is another"))) }
}

/// The height of the last common block of the mirror's best chain and the node's.
fn fork_height(rpc: &Rpc, moment: &Moment) -> Result<u32, SyncError> {
    let info: ChainAnswer = rpc.ask("getblockchaininfo", &json!([]))?;
    // Both begin with the same genesis block.
    let (mut low, mut high) = (0, info.blocks.min(moment.tip.height));
    // If the mirror is only behind, one request suffices.
    let mut middle = high;
    while low < high {
        let theirs: BlockHash = rpc.ask("getblockhash", &json!([middle]))?;
        if moment.best_at(middle)? == Some(theirs) {
            low = middle;
        } else {
            high = middle - 1;
        }
        middle = low + (high - low).div_ceil(2);
    }
    Ok(low)
}

/// The next part of the node's best chain after `base`.
fn headers_after(rpc: &Rpc, height: u32, base: BlockHash) -> Result<Vec<Header>, SyncError> {
    let path = format!("/rest/headers/{PART}/{base}.bin");
    if let Some(bytes) = rpc.rest(&path).ok().flatten() {
        let headers: Result<Vec<Header>, _> = bytes.chunks(80).map(deserialize).collect();
        let headers = headers.map_err(|error| AskError::form("/rest/headers", &error))?;
        // The first is `base` itself. An empty list means that `base` left the best chain.
        return headers.get(1..).map(<[_]>::to_vec).filter(|headers| !headers.is_empty()).ok_or(SyncError::Moved);
    }
    let heights: Vec<Question> =
        (height + 1..=height.saturating_add(PART)).map(|height| ("getblockhash", json!([height]))).collect();
    let hashes: Vec<BlockHash> = rpc.batch(&heights)?.into_iter().map_while(Result::ok).collect();
    let questions: Vec<Question> = hashes.iter().map(|hash| ("getblockheader", json!([hash, false]))).collect();
    let answers = rpc.batch::<Hex>(&questions)?;
    let headers: Result<Vec<Header>, AskError> = answers
        .into_iter()
        .map(|answer| deserialize(&answer?.0).map_err(|error| AskError::form("getblockheader", &error)))
        .collect();
    let headers = headers?;
    let follows = headers.first().is_some_and(|first| first.prev_blockhash == base);
    if follows { Ok(headers) } else { Err(SyncError::Moved) }
}
