//! Compact block filters (BIP 157, 158). There is no index of filters: each call computes the filter from the block and the
//! outputs that the block spent.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bitcoin::bip158::{BlockFilter, FilterHeader};
use bitcoin::hashes::Hash;
use bitcoin::{Block, BlockHash, OutPoint, Script};
use outrigger_sdk::RpcError;
use outrigger_sdk::params::encode_hex;
use outrigger_sdk::service::chain::{BlockInfo, BlockRef, SpentOutputs};
use serde_json::{Value, json};

use crate::blocks::{decode_block, find_block, hash_argument};
use crate::header::{damaged, decode};
use crate::{Context, args};

/// A cache of filter headers, with 64 bytes for each block. Each header commits to the header before, so without the cache a call
/// computes the filters of all blocks before its own.
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

/// A block that was once connected, and the outputs that it spent.
pub struct Connected {
    pub block: Block,
    pub spent: Vec<SpentOutputs>,
}

impl Connected {
    /// None for a block that was never connected.
    pub fn read(context: &Context<'_>, info: &BlockInfo) -> Result<Option<Self>, RpcError> {
        let chain = &context.host.chain;
        let Some(raw) = chain.block(context.scope, info.hash)? else { return Ok(None) };
        let block = decode_block(&raw, info.hash)?;
        // The genesis block spends nothing, and has no undo data.
        let spent = chain.spent_outputs(context.scope, info.hash)?.or((info.height == 0).then(Vec::new));
        Ok(spent.map(|spent| Self { block, spent }))
    }

    /// Whether the basic filter of the block contains a wanted script.
    pub fn concerns(&self, wanted: impl Fn(&Script) -> bool) -> bool {
        let created = self.block.txdata.iter().flat_map(|transaction| &transaction.output);
        let created = created.map(|output| &output.script_pubkey).filter(|script| !script.is_op_return());
        let spent = self.spent.iter().flat_map(|spent| &spent.coins).map(|coin| &coin.output.script_pubkey);
        created.chain(spent).any(|script| !script.is_empty() && wanted(script))
    }

    fn filter(&self) -> Result<BlockFilter, RpcError> {
        let inputs = self.block.txdata.iter().skip(1).flat_map(|transaction| &transaction.input);
        let coins = self.spent.iter().flat_map(|spent| &spent.coins);
        let scripts: HashMap<OutPoint, &Script> = inputs
            .zip(coins)
            .map(|(input, coin)| (input.previous_output, coin.output.script_pubkey.as_script()))
            .collect();
        let script =
            |outpoint: &OutPoint| scripts.get(outpoint).copied().ok_or(bitcoin::bip158::Error::UtxoMissing(*outpoint));
        BlockFilter::new_script_filter(&self.block, script)
            .map_err(|_| damaged(&format!("what block {} spent", self.block.block_hash())))
    }
}

/// Refuses any type but `basic`, the only one.
pub fn check_filter_type(value: Option<&Value>) -> Result<(), RpcError> {
    match value.map(args::text).transpose()? {
        None | Some("basic") => Ok(()),
        Some(_) => Err(RpcError::not_found("Unknown filtertype")),
    }
}

pub fn get_block_filter(context: &Context<'_>) -> Result<Value, RpcError> {
    let hash = hash_argument(context, 0, "blockhash")?;
    check_filter_type(context.params.given(1))?;
    let info = find_block(context, BlockRef::Hash { hash })?;
    let filter = filter(context, &info)?;
    let header = header(context, info)?;
    Ok(json!({"filter": encode_hex(&filter.content), "header": header}))
}

fn filter(context: &Context<'_>, info: &BlockInfo) -> Result<BlockFilter, RpcError> {
    let not_connected = || RpcError::not_found("Filter not found. Block was not connected to active chain.");
    Connected::read(context, info)?.ok_or_else(not_connected)?.filter()
}

/// The header of a block's filter. Computes the missing headers of all blocks before it.
fn header(context: &Context<'_>, mut info: BlockInfo) -> Result<FilterHeader, RpcError> {
    let headers = &context.plugin.filter_headers;
    let mut missing = Vec::new();
    let mut header = loop {
        if let Some(header) = headers.get(&info.hash) {
            break header;
        }
        let previous = decode(&info)?.prev_blockhash;
        let height = info.height;
        missing.push(info);
        if height == 0 {
            break FilterHeader::all_zeros();
        }
        info = find_block(context, BlockRef::Hash { hash: previous })?;
    };
    for info in missing.into_iter().rev() {
        header = filter(context, &info)?.filter_header(&header);
        headers.put(info.hash, header);
    }
    Ok(header)
}
