//! listsinceblock.
//!
//! The cost depends only on the size of the reply: the plugin reads confirmed transactions from the fork's height on, and writes each
//! entry at once.

use std::ops::ControlFlow;

use bitcoin::hashes::Hash;
use bitcoin::{Block, BlockHash, Txid, consensus};
use outrigger_kit::blocks::{block_not_found, decode_header, find_block};
use outrigger_kit::invalid_label;
use outrigger_sdk::methods::Json;
use outrigger_sdk::params::{hash_text, int32};
use outrigger_sdk::service::ServiceError;
use outrigger_sdk::service::chain::{BlockInfo, BlockRef};
use outrigger_sdk::service::wallet::{HistoryBatch, HistoryBatchView, HistoryRange, HistoryRowView, Synced};
use outrigger_sdk::wire::Encoded;
use outrigger_sdk::{Call, RpcError, methods};
use serde_json::Value;

use crate::entry::{EntryWriter, Selection, WalletTx};
use crate::list::{Batches, walk};
use crate::viewpoint::WalletViewpoint;
use crate::{HistoryPlugin, json};

/// The approximate size of a transaction with one entry in the reply, in bytes.
const TRANSACTION_SIZE: u64 = 768;

/// The block of the argument `blockhash`, and the height of the last common block of its chain and the wallet's chain. The list begins
/// above it.
type Since = (BlockInfo, u32);

#[methods(category = "Wallet")]
impl HistoryPlugin {
    /// Lists the wallet's transactions since a block, or all transactions. Pass lastblock as the next call's
    /// blockhash to poll. After a reorganisation the list begins at the fork.
    ///
    /// * `blockhash` - List transactions after this block.
    /// * `target_confirmations` (default: 1) - The confirmations of the block that lastblock names. It does not
    ///   filter transactions.
    /// * `include_watchonly` (default: true for watch-only wallets, otherwise false) - Whether to list payments to
    ///   watched scripts.
    /// * `include_removed` - Whether to list transactions of blocks outside the best chain.
    /// * `include_change` - Whether to list change outputs, too.
    /// * `label` - List only payments to addresses with this label. An empty label includes addresses without a
    ///   label.
    ///
    /// # Result
    /// {"transactions": [...], "removed": [...], "lastblock": "hash"}    (json object)
    ///
    /// # Example
    /// 000000000000000bacf66f7497b7dc45ef753ee9a7d38571037cdb1a57f663ad 6
    #[method]
    fn listsinceblock(
        call: &Call<'_>,
        blockhash: Option<&str>,
        #[arg(kind = "numeric")] target_confirmations: Option<&Value>,
        include_watchonly: Option<bool>,
        #[arg(default = true)] include_removed: bool,
        #[arg(default = false)] include_change: bool,
        label: Option<&str>,
    ) -> Result<Json, RpcError> {
        let wallet = call.wallet()?;
        let since = since(call, wallet.synced, blockhash)?;
        let target = target_confirmations.map_or(Ok(1), int32)?;
        let target = u32::try_from(target).ok().filter(|target| *target >= 1);
        let target = target.ok_or_else(|| RpcError::invalid_parameter("Invalid parameter"))?;
        let viewpoint = WalletViewpoint::of(call, &wallet, include_watchonly)?;
        if label == Some("*") {
            return Err(invalid_label());
        }
        let selection = Selection { label, change: include_change, any_depth: false };

        let mut writer = EntryWriter::new(call, viewpoint);
        if since.is_none() && label.is_none() {
            reserve(&mut writer.out, wallet.transactions);
        }
        writer.out.extend_from_slice(b"{\"transactions\":[");
        write_listed(&mut writer, selection, since.as_ref().map(|(_, fork)| *fork))?;
        writer.out.push(b']');
        if include_removed {
            writer.out.extend_from_slice(b",\"removed\":[");
            if let Some(since) = &since {
                write_removed(&mut writer, selection, since)?;
            }
            writer.out.push(b']');
        }
        let mut reply = writer.out;
        json::key!(&mut reply, "lastblock");
        // The block with `target` confirmations in the wallet's chain, or the genesis block.
        let last = ancestor(call, wallet.synced, (wallet.synced.height + 1).saturating_sub(target))?;
        json::hash(&mut reply, last.as_byte_array());
        reply.push(b'}');
        Ok(Json(reply))
    }
}

/// Reserves memory for the whole history at once, so that the allocator uses huge pages from the start. The kernel allocates
/// pages only on the first write. If the reservation fails, the reply grows piece by piece.
fn reserve(reply: &mut Vec<u8>, transactions: u64) {
    let size = transactions.saturating_mul(TRANSACTION_SIZE);
    let _ = reply.try_reserve_exact(usize::try_from(size).unwrap_or(usize::MAX));
}

fn since(call: &Call<'_>, synced: Synced, given: Option<&str>) -> Result<Option<Since>, RpcError> {
    let Some(given) = given.filter(|hash| !hash.is_empty()) else { return Ok(None) };
    let hash = hash_text(given, "blockhash")?;
    let (chain, scope) = (&call.host.chain, call.scope);
    let block = find_block(call, BlockRef::Hash { hash })?;
    let fork = chain.fork_point(scope, hash)?.ok_or_else(block_not_found)?;
    // The node may have processed a reorganisation before the wallet: then the common block is lower.
    let own = chain.fork_point(scope, synced.hash)?.map_or(0, |own| own.height);
    Ok(Some((block, fork.height.min(own))))
}

/// Writes the transactions above the fork: in the order of the chain, then the others by their order_position.
fn write_listed(writer: &mut EntryWriter<'_>, selection: Selection<'_>, fork: Option<u32>) -> Result<(), ServiceError> {
    let call = writer.call;
    let from_height = fork.map_or(0, |fork| fork + 1);
    let batches = |range| Batches::new(call, range, false, u32::MAX);
    let mut write = |tx: &WalletTx<'_>| writer.write_all(tx, selection);
    walk(batches(HistoryRange::Confirmed { from_height }), |tx| write(tx).map(ControlFlow::Continue))?;

    // The host sorts conflicted transactions by the height of their conflict. Here they are merged in by order_position.
    let conflicted = batches(HistoryRange::Conflicted { from_height }).collect::<Result<Vec<_>, _>>()?;
    let conflicted = by_order_position(&conflicted)?;
    let mut waiting = conflicted.iter().peekable();
    walk(batches(HistoryRange::Unconfirmed), |tx| {
        while let Some((_, row, batch)) =
            waiting.next_if(|(order_position, ..)| *order_position < tx.transaction.order_position)
        {
            write(&WalletTx::open(row, *batch)?)?;
        }
        write(tx).map(ControlFlow::Continue)
    })?;
    waiting.try_for_each(|(_, row, batch)| write(&WalletTx::open(row, *batch)?))
}

/// A row with its order_position and its batch.
type Sorted<'b> = (u64, HistoryRowView<'b>, HistoryBatchView<'b>);

fn by_order_position(batches: &[Encoded<HistoryBatch>]) -> Result<Vec<Sorted<'_>>, ServiceError> {
    let mut rows = Vec::new();
    for batch in batches {
        let batch = batch.view()?;
        for row in batch.rows.iter() {
            rows.push((row.open()?.0.order_position, row, batch));
        }
    }
    rows.sort_unstable_by_key(|(order_position, ..)| *order_position);
    Ok(rows)
}

/// Writes the wallet's transactions in the blocks from `since` back to the fork, even if other blocks confirm them now.
fn write_removed(writer: &mut EntryWriter<'_>, selection: Selection<'_>, since: &Since) -> Result<(), RpcError> {
    let (call, selection) = (writer.call, Selection { any_depth: true, ..selection });
    let (block, fork) = since;
    let (mut hash, mut height) = (block.hash, block.height);
    while height > *fork && !on_wallet_chain(call, writer.viewpoint.synced, hash)? {
        let raw = call.host.chain.block(call.scope, hash)?.ok_or_else(unreadable_block)?;
        let block: Block = consensus::deserialize(&raw).map_err(|_| unreadable_block())?;
        let txids: Vec<Txid> = block.txdata.iter().map(bitcoin::Transaction::compute_txid).collect();
        let found = call.host.wallet.transactions(call.scope, txids)?;
        let batch = found.view()?;
        for row in batch.rows.iter() {
            writer.write_all(&WalletTx::open(&row, batch)?, selection)?;
        }
        (hash, height) = (block.header.prev_blockhash, height - 1);
    }
    Ok(())
}

/// Whether a block is in the wallet's chain.
fn on_wallet_chain(call: &Call<'_>, synced: Synced, hash: BlockHash) -> Result<bool, RpcError> {
    let (chain, scope) = (&call.host.chain, call.scope);
    let Some(block) = chain.block_info(scope, BlockRef::Hash { hash })? else { return Ok(false) };
    Ok(block.height <= synced.height && ancestor(call, synced, block.height)? == hash)
}

/// The block at a height of the wallet's chain.
fn ancestor(call: &Call<'_>, synced: Synced, height: u32) -> Result<BlockHash, RpcError> {
    let mut hash = synced.hash;
    loop {
        let block = find_block(call, BlockRef::Hash { hash })?;
        if block.height <= height {
            return Ok(hash);
        }
        if block.in_best_chain {
            return Ok(find_block(call, BlockRef::Height { height })?.hash);
        }
        hash = decode_header(&block)?.prev_blockhash;
    }
}

fn unreadable_block() -> RpcError {
    RpcError::internal("Can't read block from disk")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listsinceblock_reserves_memory_for_the_whole_history_at_once() {
        let mut reply = Vec::new();
        reserve(&mut reply, 20_000);
        assert!(reply.capacity() as u64 >= 20_000 * TRANSACTION_SIZE);
        // An impossible size does not fail.
        let mut reply = Vec::new();
        reserve(&mut reply, u64::MAX);
        assert_eq!(reply.capacity(), 0);
    }
}
