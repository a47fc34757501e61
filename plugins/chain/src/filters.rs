//! Compact block filters (BIP 157, 158). There is no index of filters: each call computes the filter from the block and the
//! outputs that the block spent.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bitcoin::bip158::{BlockFilter, FilterHeader};
use bitcoin::hashes::Hash;
use bitcoin::{Block, BlockHash, OutPoint, Script};
use outrigger_kit::blocks::{damaged, decode_header, find_block};
use outrigger_sdk::params::{encode_hex, hash_text};
use outrigger_sdk::service::chain::{BlockInfo, BlockRef, SpentOutputs};
use outrigger_sdk::{Call, RpcError, methods};
use serde_json::{Value, json};

use crate::ChainPlugin;
use crate::blocks::decode_block;

/// A cache of filter headers, with 64 bytes for each block. Each header commits to the previous one, so without the cache a call
/// computes the filters of all earlier blocks.
pub type FilterHeaders = Mutex<HashMap<BlockHash, FilterHeader>>;

/// A block that was once connected, and the outputs that it spent.
pub struct Connected {
    pub block: Block,
    pub spent: Vec<SpentOutputs>,
}

impl Connected {
    /// Reads a block and the outputs that it spent. `None` for a block that was never connected.
    pub fn read(call: &Call<'_>, info: &BlockInfo) -> Result<Option<Self>, RpcError> {
        let chain = &call.host.chain;
        let Some(raw) = chain.block(call.scope, info.hash)? else { return Ok(None) };
        let block = decode_block(&raw, info.hash)?;
        // The genesis block spends nothing, and has no undo data.
        let spent = chain.spent_outputs(call.scope, info.hash)?.or((info.height == 0).then(Vec::new));
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
pub fn check_filter_type(name: &str) -> Result<(), RpcError> {
    match name {
        "basic" => Ok(()),
        _ => Err(RpcError::not_found("Unknown filtertype")),
    }
}

#[methods(category = "Blockchain", long_running)]
impl ChainPlugin {
    /// Gives the compact filter of a block (BIP 157, 158). Each call computes the filter. The first call also
    /// computes the filter headers of all blocks before.
    ///
    /// * `blockhash` - The block.
    /// * `filtertype` - basic.
    ///
    /// # Result
    /// {"filter": "hex", "header": "hex"}    (json object)
    #[method]
    fn getblockfilter(
        &self,
        call: &Call<'_>,
        blockhash: &str,
        #[arg(default = "basic")] filtertype: &str,
    ) -> Result<Value, RpcError> {
        let hash = hash_text(blockhash, "blockhash")?;
        check_filter_type(filtertype)?;
        let info = find_block(call, BlockRef::Hash { hash })?;
        let filter = filter(call, &info)?;
        let header = header(call, &self.filter_headers, info)?;
        Ok(json!({"filter": encode_hex(&filter.content), "header": header}))
    }
}

fn filter(call: &Call<'_>, info: &BlockInfo) -> Result<BlockFilter, RpcError> {
    let not_connected = || RpcError::not_found("Filter not found. Block was not connected to active chain.");
    Connected::read(call, info)?.ok_or_else(not_connected)?.filter()
}

/// The header of a block's filter. Computes the missing headers of all blocks before it.
fn header(call: &Call<'_>, headers: &FilterHeaders, mut info: BlockInfo) -> Result<FilterHeader, RpcError> {
    let lock = || headers.lock().unwrap_or_else(PoisonError::into_inner);
    let mut missing = Vec::new();
    let mut header = loop {
        let known = lock().get(&info.hash).copied();
        if let Some(header) = known {
            break header;
        }
        let previous = decode_header(&info)?.prev_blockhash;
        let height = info.height;
        missing.push(info);
        if height == 0 {
            break FilterHeader::all_zeros();
        }
        info = find_block(call, BlockRef::Hash { hash: previous })?;
    };
    for info in missing.into_iter().rev() {
        header = filter(call, &info)?.filter_header(&header);
        lock().insert(info.hash, header);
    }
    Ok(header)
}
