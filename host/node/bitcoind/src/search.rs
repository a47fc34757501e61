//! Searching blocks for a wallet's scripts: by the node's block filters (BIP 157), or else block by block.

use std::ops::Range;

use bitcoin::Block;
use bitcoin::bip158::BlockFilter;
use bitcoin::consensus::deserialize;
use outrigger_node::search::{Findings, Found, FoundBlock, MAX_READ, ScriptSet, matching};
use outrigger_node::{NodeError, Result};
use serde::Deserialize;
use serde_json::json;

use super::answers::Hex;
use super::blocks::block;
use super::chain::Entry;
use super::mirror::Moment;
use super::rpc::{Question, Rpc};

/// How many filters are asked for at a time.
const FILTERS: usize = 100;

#[derive(Deserialize)]
struct FilterAnswer {
    filter: Hex,
}

/// Searches the blocks at these heights.
///
/// # Errors
/// The node's absence; not for a block that it has dropped.
pub fn find(moment: &Moment, rpc: &Rpc, heights: Range<u32>, wanted: &ScriptSet) -> Result<Findings> {
    let mut findings = Findings { tip: moment.tip.hash(), blocks: Vec::new(), next: heights.end };
    let mut read = 0;
    let mut height = heights.start;
    while height < heights.end {
        let mut entries = Vec::new();
        for height in height..heights.end.min(height.saturating_add(FILTERS as u32)) {
            entries.extend(moment.entry_at(height)?);
        }
        if entries.is_empty() {
            break;
        }
        let hits = hits(rpc, &entries, wanted)?;
        for (entry, hit) in entries.iter().zip(hits) {
            height = entry.height + 1;
            if !hit {
                continue;
            }
            let (found, bytes) = read_block(rpc, entry, wanted)?;
            findings.blocks.push(found);
            read += bytes;
            if read > MAX_READ {
                findings.next = height;
                return Ok(findings);
            }
        }
    }
    Ok(findings)
}

/// Which of these blocks may have something, by their filters; all of them where the node has no filters.
fn hits(rpc: &Rpc, entries: &[Entry], wanted: &ScriptSet) -> Result<Vec<bool>> {
    let questions: Vec<Question> = entries.iter().map(|entry| ("getblockfilter", json!([entry.hash()]))).collect();
    let answers = rpc.batch::<FilterAnswer>(&questions)?;
    let hit = |(entry, answer): (&Entry, std::result::Result<FilterAnswer, _>)| {
        let Ok(FilterAnswer { filter }) = answer else { return true };
        let filter = BlockFilter::new(&filter.0);
        // A filter that cannot be read says nothing. Scripts that begin with OP_RETURN are in no filter.
        wanted.has_unfiltered() || filter.match_any(&entry.hash(), wanted.scripts()).unwrap_or(true)
    };
    Ok(entries.iter().zip(answers).map(hit).collect())
}

/// Reads a block. What its inputs spend is not known, so every transaction with inputs counts as one that may concern the wallet.
fn read_block(rpc: &Rpc, entry: &Entry, wanted: &ScriptSet) -> Result<(FoundBlock, usize)> {
    let bytes = block(rpc, entry.hash())?;
    let size = bytes.as_ref().map_or(0, Vec::len);
    let found = match bytes {
        None => None,
        Some(bytes) => {
            let block: Block = deserialize(&bytes).map_err(|error| NodeError::Internal(error.to_string()))?;
            Some(Found { time: entry.header.time, transactions: matching(block, &[], wanted) })
        }
    };
    Ok((FoundBlock { hash: entry.hash(), height: entry.height, max_time: entry.max_time, found }, size))
}
