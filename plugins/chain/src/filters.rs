//! Compact filters of blocks (BIP 157, 158). There is no index of them: a filter is computed of its block and what it spent.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bitcoin::bip158::{BlockFilter, FilterHeader};
use bitcoin::hashes::Hash;
use bitcoin::{Block, BlockHash, OutPoint, Script};
use outrigger_sdk::params::encode_hex;
use outrigger_sdk::service::chain::{BlockInfo, BlockRef, SpentOutputs};
use outrigger_sdk::standard::block_from_bytes;
use serde_json::json;

use crate::blocks::hash_argument;
use crate::error::ChainError;
use crate::header::decode;
use crate::{Context, Outcome, args};

/// The only type of filter.
pub const BASIC: &str = "basic";

/// The headers of filters that were computed, 64 bytes for each block: each builds on the one before.
#[derive(Default)]
pub struct FilterHeaders(Mutex<HashMap<BlockHash, FilterHeader>>);

impl FilterHeaders {
    fn get(&self, hash: &BlockHash) -> Option<FilterHeader> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(hash).copied()
    }

    fn put(&self, hash: BlockHash, header: FilterHeader) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(hash, header);
    }
}

/// A block and what it spent.
pub struct Connected {
    pub block: Block,
    pub spent: Vec<SpentOutputs>,
}

impl Connected {
    /// A block that was once connected; none for any other.
    pub fn read(context: &Context<'_>, info: &BlockInfo) -> Result<Option<Self>, ChainError> {
        let chain = &context.host.chain;
        let Some(raw) = chain.block(context.scope, info.hash)? else { return Ok(None) };
        let block = block_from_bytes(&raw).ok_or_else(|| ChainError::Damaged(format!("block {}", info.hash)))?;
        // Of the genesis block nothing is kept that it spent.
        let spent = chain.spent_outputs(context.scope, info.hash)?.or((info.height == 0).then(Vec::new));
        Ok(spent.map(|spent| Self { block, spent }))
    }

    /// Whether its basic filter has a script that is wanted.
    pub fn concerns(&self, wanted: impl Fn(&Script) -> bool) -> bool {
        let made = self.block.txdata.iter().flat_map(|transaction| &transaction.output);
        let made = made.map(|output| &output.script_pubkey).filter(|script| !script.is_op_return());
        let spent = self.spent.iter().flat_map(|spent| &spent.coins).map(|coin| &coin.output.script_pubkey);
        made.chain(spent).any(|script| !script.is_empty() && wanted(script))
    }

    fn filter(&self) -> Result<BlockFilter, ChainError> {
        let inputs = self.block.txdata.iter().skip(1).flat_map(|transaction| &transaction.input);
        let coins = self.spent.iter().flat_map(|spent| &spent.coins);
        let scripts: HashMap<OutPoint, &Script> = inputs
            .zip(coins)
            .map(|(input, coin)| (input.previous_output, coin.output.script_pubkey.as_script()))
            .collect();
        let script =
            |outpoint: &OutPoint| scripts.get(outpoint).copied().ok_or(bitcoin::bip158::Error::UtxoMissing(*outpoint));
        BlockFilter::new_script_filter(&self.block, script)
            .map_err(|_| ChainError::Damaged(format!("what block {} spent", self.block.block_hash())))
    }
}

pub fn get_block_filter(context: &Context<'_>) -> Outcome {
    let hash = hash_argument(context, 0, "blockhash")?;
    if context.params.given(1).map(args::text).transpose()?.is_some_and(|name| name != BASIC) {
        return Err(ChainError::FilterType);
    }
    let info = context.host.chain.block_info(context.scope, BlockRef::Hash { hash })?;
    let info = info.ok_or(ChainError::BlockNotFound)?;
    let filter = Connected::read(context, &info)?.ok_or(ChainError::FilterNotConnected)?.filter()?;
    let header = header(context, info)?;
    Ok(json!({"filter": encode_hex(&filter.content), "header": header}))
}

/// The header of a block's filter: that of each block before it is computed once.
fn header(context: &Context<'_>, mut info: BlockInfo) -> Result<FilterHeader, ChainError> {
    let headers = &context.plugin.filter_headers;
    let mut open = Vec::new();
    let mut header = loop {
        if let Some(header) = headers.get(&info.hash) {
            break header;
        }
        let previous = decode(&info)?.prev_blockhash;
        let height = info.height;
        open.push(info);
        if height == 0 {
            break FilterHeader::all_zeros();
        }
        let before = context.host.chain.block_info(context.scope, BlockRef::Hash { hash: previous })?;
        info = before.ok_or(ChainError::BlockNotFound)?;
    };
    for info in open.into_iter().rev() {
        let connected = Connected::read(context, &info)?.ok_or(ChainError::FilterNotConnected)?;
        header = connected.filter()?.filter_header(&header);
        headers.put(info.hash, header);
    }
    Ok(header)
}
