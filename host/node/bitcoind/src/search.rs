//! Searches blocks for a wallet's scripts: by the node's block filters (BIP 157), else block by block.

use std::ops::Range;
use std::sync::atomic::Ordering;

use bitcoin::bip158::BlockFilterReader;
use bitcoin::consensus::deserialize_partial;
use bitcoin::hashes::Hash;
use bitcoin::{BlockHash, VarInt};
use outrigger_node::search::{Findings, Found, FoundBlock, MAX_READ, ScriptSet, matching};
use outrigger_node::{Abilities, Result};
use serde::Deserialize;
use serde_json::json;

use super::answers::{ChainAnswer, Hex};
use super::blocks::block;
use super::chain::Entry;
use super::error::AskError;
use super::filters::Filters;
use super::mirror::Moment;
use super::rpc::{Question, Rpc};

/// How many filters are requested at once.
const FILTERS: u32 = 128;

/// The mean filter length, in bytes, from which single requests over REST are faster than a JSON-RPC batch.
const REST_FROM: usize = 2_048;

/// BIP 158's P: the bits of an element's remainder.
const REMAINDER_BITS: usize = 19;

#[derive(Deserialize)]
struct FilterAnswer {
    filter: Hex,
}

/// `getindexinfo`.
#[derive(Deserialize)]
struct IndexAnswer {
    #[serde(rename = "basic block filter index")]
    filters: Option<IndexState>,
    #[serde(rename = "txindex")]
    transactions: Option<IndexState>,
}

#[derive(Deserialize)]
struct IndexState {
    synced: bool,
}

pub fn has_filters(rpc: &Rpc) -> bool {
    let answer = rpc.ask::<IndexAnswer>("getindexinfo", &json!([]));
    answer.is_ok_and(|answer| answer.filters.is_some_and(|index| index.synced))
        && rpc.may_call("getblockfilter").unwrap_or(false)
}

/// The abilities that a node of this release reports. An index that is still being built counts.
pub fn abilities(rpc: &Rpc, release: Option<u32>) -> std::result::Result<Abilities, AskError> {
    let index: IndexAnswer = rpc.ask("getindexinfo", &json!([]))?;
    let chain: ChainAnswer = rpc.ask("getblockchaininfo", &json!([]))?;
    Ok(Abilities {
        release,
        transactions: index.transactions.is_some(),
        block_filters: index.filters.is_some(),
        spent_outputs: !chain.pruned,
    })
}

/// Searches the blocks at these heights. For a block that the node has pruned, `found` is `None`.
pub fn find(
    moment: &Moment,
    rpc: &Rpc,
    filters: &Filters,
    heights: Range<u32>,
    wanted: &ScriptSet,
) -> Result<Findings> {
    let mut findings = Findings { tip: moment.tip.hash(), blocks: Vec::new(), next: heights.end };
    let mut read = 0;
    let mut height = heights.start;
    while height < heights.end {
        let mut entries = Vec::new();
        for height in height..heights.end.min(height.saturating_add(FILTERS)) {
            entries.extend(moment.entry_at(height)?);
        }
        if entries.is_empty() {
            break;
        }
        let hits = hits(rpc, filters, &entries, wanted)?;
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

/// Whether each block may match, by its filter. Without a filter, it may.
fn hits(rpc: &Rpc, filters: &Filters, entries: &[Entry], wanted: &ScriptSet) -> Result<Vec<bool>> {
    // Filters do not contain scripts that begin with OP_RETURN.
    if !filters.used || wanted.has_unfiltered() {
        return Ok(vec![true; entries.len()]);
    }
    let mut found = filters.get(entries);
    let missing: Vec<usize> = (0..entries.len()).filter(|at| found[*at].is_none()).collect();
    if !missing.is_empty() {
        let asked: Vec<&Entry> = missing.iter().map(|at| &entries[*at]).collect();
        let fetched = fetch(rpc, filters, &asked)?;
        let news: Vec<(&Entry, &[u8])> =
            asked.iter().zip(&fetched).filter_map(|(entry, filter)| Some((*entry, filter.as_deref()?))).collect();
        filters.put(&news);
        missing.into_iter().zip(fetched).for_each(|(at, filter)| found[at] = filter);
    }
    let hit = |(entry, filter): (&Entry, Option<Vec<u8>>)| {
        filter.is_none_or(|filter| may_match(&filter, &entry.hash(), wanted.scripts()))
    };
    Ok(entries.iter().zip(found).map(hit).collect())
}

/// Whether a block may have one of these scripts, by its filter. An invalid filter excludes no block.
fn may_match<'a>(filter: &[u8], block: &BlockHash, scripts: impl Iterator<Item = &'a [u8]>) -> bool {
    // The library takes an unreadable count for an empty filter, and may overflow on a large count. Each element has at
    // least the bits of its remainder.
    let Ok((VarInt(count), at)) = deserialize_partial(filter) else { return true };
    count > (8 * (filter.len() - at) / REMAINDER_BITS) as u64
        || BlockFilterReader::new(block).match_any(&mut &*filter, scripts).unwrap_or(true)
}

/// Fetches the filters of these blocks. A filter is `None` if the node lacks it, or its -rpcwhitelist refuses getblockfilter.
fn fetch(rpc: &Rpc, filters: &Filters, entries: &[&Entry]) -> Result<Vec<Option<Vec<u8>>>> {
    if filters.mean.load(Ordering::Relaxed) >= REST_FROM
        && let Some(fetched) = fetch_by_rest(rpc, entries)?
    {
        return Ok(fetched);
    }
    let questions: Vec<Question> = entries.iter().map(|entry| ("getblockfilter", json!([entry.hash()]))).collect();
    let answers = match rpc.batch::<FilterAnswer>(&questions) {
        Err(AskError::Forbidden(_)) => return Ok(vec![None; entries.len()]),
        answers => answers?,
    };
    let fetched: Vec<Option<Vec<u8>>> =
        answers.into_iter().map(|answer| answer.ok().map(|FilterAnswer { filter: Hex(bytes) }| bytes)).collect();
    let (count, bytes) = fetched.iter().flatten().fold((0, 0), |(count, bytes), one| (count + 1, bytes + one.len()));
    filters.mean.store(bytes.checked_div(count).unwrap_or(0), Ordering::Relaxed);
    Ok(fetched)
}

/// Fetches filters over REST; `None` without REST, or if one is missing.
fn fetch_by_rest(rpc: &Rpc, entries: &[&Entry]) -> Result<Option<Vec<Option<Vec<u8>>>>> {
    let mut fetched = Vec::with_capacity(entries.len());
    for entry in entries {
        let Some(bytes) = rpc.rest(&format!("/rest/blockfilter/basic/{}.bin", entry.hash()))? else { return Ok(None) };
        fetched
            .push(Some(read_filter(entry, &bytes).ok_or_else(|| AskError::form("/rest/blockfilter", &"no filter"))?));
    }
    Ok(Some(fetched))
}

/// Parses REST's form: the filter's type, the block's hash, and the filter with its length.
fn read_filter(entry: &Entry, bytes: &[u8]) -> Option<Vec<u8>> {
    let (hash, filter) = bytes.strip_prefix(&[0])?.split_first_chunk::<32>()?;
    let (filter, _) = deserialize_partial::<Vec<u8>>(filter).ok()?;
    (hash == entry.hash().as_byte_array()).then_some(filter)
}

/// Reads a block, and its size in bytes. The spent outputs are unknown, so every transaction with inputs may concern the
/// wallet.
fn read_block(rpc: &Rpc, entry: &Entry, wanted: &ScriptSet) -> Result<(FoundBlock, usize)> {
    let block = block(rpc, entry.hash())?;
    let size = block.as_ref().map_or(0, |(read, _)| read.size);
    let found = block.map(|(read, _)| Found {
        time: entry.header.time,
        transactions: matching(read.block, &read.txids, &[], wanted),
    });
    Ok((FoundBlock { hash: entry.hash(), height: entry.height, max_time: entry.max_time, found }, size))
}

#[cfg(test)]
mod tests {
    use bitcoin::bip158::GcsFilterWriter;

    use super::*;

    fn filter(scripts: &[&[u8]]) -> Vec<u8> {
        let mut filter = Vec::new();
        let mut writer = GcsFilterWriter::new(&mut filter, 0, 0, 784_931, 19);
        scripts.iter().for_each(|script| writer.add_element(script));
        writer.finish().unwrap();
        filter
    }

    #[test]
    fn filter_that_is_invalid_excludes_nothing() {
        let (block, script) = (BlockHash::all_zeros(), &[1, 2, 3][..]);
        let may = |filter: &[u8]| may_match(filter, &block, [script].into_iter());
        let bytes = filter(&[script, &[4]]);
        assert!(may(&bytes));
        assert!(!may(&filter(&[&[4], &[5]])));
        assert!(!may(&[0]), "a block without scripts");
        assert!(may(&[]), "no count");
        assert!(may(&bytes[..bytes.len() - 2]), "cut off");
        assert!(may(&[&[0xff; 9][..], &bytes[1..]].concat()), "a count larger than the filter");
    }
}
