//! listsinceblock.
//!
//! The cost is that of what is returned: the confirmed transactions are read from the fork's height on, through the index
//! by height, and each entry is written into the reply as it is read.

use std::ops::ControlFlow;

use bitcoin::hashes::Hash;
use bitcoin::{Block, BlockHash, Txid, consensus};
use outrigger_sdk::params::{hash_text, int32, text};
use outrigger_sdk::service::chain::{BlockInfo, BlockRef};
use outrigger_sdk::service::wallet::{HistoryBatch, HistoryBatchView, HistoryRange, HistoryRowView, Synced};
use outrigger_sdk::wire::Encoded;

use crate::entry::{EntryWriter, Selection, WalletTx};
use crate::error::HistoryError;
use crate::list::{Batches, walk};
use crate::viewpoint::WalletViewpoint;
use crate::{CallContext, json};

/// About what a transaction with one entry takes in the reply, in bytes.
const TRANSACTION_SIZE: u64 = 768;

/// Everything since the block that a client named.
struct Since {
    /// The block, when one was named.
    block: Option<BlockInfo>,
    /// The height of the last block that it and the wallet's chain share; listing begins above it.
    fork: Option<u32>,
}

/// listsinceblock.
pub fn list_since_block(context: &CallContext<'_>) -> Result<Vec<u8>, HistoryError> {
    let wallet = context.wallet()?;
    let params = &context.params;
    let since = since(context, wallet.synced)?;
    let target = params.given(1).map_or(Ok(1), int32)?;
    let target = u32::try_from(target).ok().filter(|target| *target >= 1).ok_or(HistoryError::TargetConfirmations)?;
    let viewpoint = WalletViewpoint::of(context, &wallet, params.get(2))?;
    let include_removed = params.flag_or(3, true)?;
    let change = params.flag_or(4, false)?;
    let label = params.given(5).map(text).transpose()?;
    if label == Some("*") {
        return Err(HistoryError::ReservedLabel);
    }
    let selection = Selection { label, change, any_depth: false };

    let mut writer = EntryWriter::new(context, viewpoint);
    let mut reply = Vec::new();
    if since.fork.is_none() && label.is_none() {
        reserve(&mut reply, wallet.transactions);
    }
    reply.extend_from_slice(b"{\"transactions\":[");
    listed(context, &mut writer, selection, since.fork, &mut reply)?;
    reply.push(b']');
    if include_removed {
        reply.extend_from_slice(b",\"removed\":[");
        removed(context, &mut writer, selection, &since, &mut reply)?;
        reply.push(b']');
    }
    json::key!(&mut reply, "lastblock");
    json::hash(&mut reply, last_block(context, wallet.synced, target)?.as_byte_array());
    reply.push(b'}');
    Ok(reply)
}

/// Makes room for the whole history at once, so that it lies in huge pages from its begin. Memory that is not written to is not
/// taken from the system. Where there is no such room, the reply grows piece by piece.
fn reserve(reply: &mut Vec<u8>, transactions: u64) {
    let size = transactions.saturating_mul(TRANSACTION_SIZE);
    let _ = reply.try_reserve_exact(usize::try_from(size).unwrap_or(usize::MAX));
}

fn since(context: &CallContext<'_>, synced: Synced) -> Result<Since, HistoryError> {
    let given = context.params.given(0).map(text).transpose()?.filter(|hash| !hash.is_empty());
    let Some(given) = given else {
        return Ok(Since { block: None, fork: None });
    };
    let hash = BlockHash::from_byte_array(hash_text(given, "blockhash")?);
    let (chain, scope) = (&context.host.chain, context.scope);
    let block = chain.block_info(scope, BlockRef::Hash { hash })?.ok_or(HistoryError::UnknownBlock)?;
    let fork = chain.fork_point(scope, hash)?.ok_or(HistoryError::UnknownBlock)?;
    // The wallet may stand on a branch that was left a moment ago: then what both share is lower still.
    let own = chain.fork_point(scope, synced.hash)?.map_or(0, |own| own.height);
    Ok(Since { fork: Some(fork.height.min(own)), block: Some(block) })
}

/// The transactions above the fork: in the order of the chain, then the others by their order_position.
fn listed(
    context: &CallContext<'_>,
    writer: &mut EntryWriter<'_>,
    selection: Selection<'_>,
    fork: Option<u32>,
    reply: &mut Vec<u8>,
) -> Result<(), HistoryError> {
    let from_height = fork.map_or(0, |fork| fork + 1);
    let batches = |range| Batches::new(context, range, false, u32::MAX);
    let mut tell = |tx: &WalletTx<'_>| writer.write_all(reply, tx, selection);
    walk(batches(HistoryRange::Confirmed { from_height }), |tx| tell(tx).map(ControlFlow::Continue))?;

    // The conflicted ones come by the height of their conflict: they are kept until their turn, as the host gave them.
    let conflicted = batches(HistoryRange::Conflicted { from_height }).collect::<Result<Vec<_>, _>>()?;
    let conflicted = by_order_position(&conflicted)?;
    let mut waiting = conflicted.iter().peekable();
    walk(batches(HistoryRange::Unconfirmed), |tx| {
        while let Some((_, row, batch)) =
            waiting.next_if(|(order_position, ..)| *order_position < tx.transaction.order_position)
        {
            tell(&WalletTx::open(row, *batch)?)?;
        }
        tell(tx).map(ControlFlow::Continue)
    })?;
    waiting.try_for_each(|(_, row, batch)| tell(&WalletTx::open(row, *batch)?))
}

/// A row with the number by which it is sorted, and its batch.
type Sorted<'b> = (u64, HistoryRowView<'b>, HistoryBatchView<'b>);

/// The rows of some batches by their order_position.
fn by_order_position(batches: &[Encoded<HistoryBatch>]) -> Result<Vec<Sorted<'_>>, HistoryError> {
    let mut rows = Vec::new();
    for batch in batches {
        let batch = batch.view()?;
        for row in batch.rows {
            rows.push((row.open()?.0.order_position, row, batch));
        }
    }
    rows.sort_unstable_by_key(|(order_position, ..)| *order_position);
    Ok(rows)
}

/// The wallet's transactions of the blocks from the named one back to the fork, whatever became of them.
fn removed(
    context: &CallContext<'_>,
    writer: &mut EntryWriter<'_>,
    selection: Selection<'_>,
    since: &Since,
    reply: &mut Vec<u8>,
) -> Result<(), HistoryError> {
    let selection = Selection { any_depth: true, ..selection };
    let mut at = since.block.as_ref().map(|block| (block.hash, block.height));
    while let (Some((hash, height)), Some(fork)) = (at, since.fork) {
        if height <= fork || on_wallet_chain(context, writer.viewpoint.synced, hash)? {
            break;
        }
        let raw = context.host.chain.block(context.scope, hash)?.ok_or(HistoryError::UnreadableBlock)?;
        let block: Block = consensus::deserialize(&raw).map_err(|_| HistoryError::UnreadableBlock)?;
        let txids: Vec<Txid> = block.txdata.iter().map(bitcoin::Transaction::compute_txid).collect();
        let found = context.host.wallet.transactions(context.scope, txids)?;
        let batch = found.view()?;
        for row in batch.rows {
            writer.write_all(reply, &WalletTx::open(&row, batch)?, selection)?;
        }
        at = Some((block.header.prev_blockhash, height - 1));
    }
    Ok(())
}

/// Whether a block is an ancestor of the wallet's last one.
fn on_wallet_chain(context: &CallContext<'_>, synced: Synced, hash: BlockHash) -> Result<bool, HistoryError> {
    let (chain, scope) = (&context.host.chain, context.scope);
    let Some(block) = chain.block_info(scope, BlockRef::Hash { hash })? else { return Ok(false) };
    Ok(block.height <= synced.height && ancestor(context, synced, block.height)? == hash)
}

/// The block at a height of the chain that ends with the wallet's last block.
fn ancestor(context: &CallContext<'_>, synced: Synced, height: u32) -> Result<BlockHash, HistoryError> {
    let (chain, scope) = (&context.host.chain, context.scope);
    let mut hash = synced.hash;
    loop {
        let block = chain.block_info(scope, BlockRef::Hash { hash })?.ok_or(HistoryError::UnknownBlock)?;
        if block.height <= height {
            return Ok(hash);
        }
        if block.in_best_chain {
            let block = chain.block_info(scope, BlockRef::Height { height })?.ok_or(HistoryError::UnknownBlock)?;
            return Ok(block.hash);
        }
        let header: bitcoin::block::Header =
            consensus::deserialize(&block.header).map_err(|_| HistoryError::UnreadableBlock)?;
        hash = header.prev_blockhash;
    }
}

/// The `target`-th block from the wallet's last one backwards, or the genesis block.
fn last_block(context: &CallContext<'_>, synced: Synced, target: u32) -> Result<BlockHash, HistoryError> {
    let height = (synced.height + 1).saturating_sub(target);
    ancestor(context, synced, height)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listsinceblock_makes_room_for_the_whole_history_at_once() {
        let mut reply = Vec::new();
        reserve(&mut reply, 20_000);
        assert!(reply.capacity() as u64 >= 20_000 * TRANSACTION_SIZE);
        // More than there can be is no failure: the reply grows as it is written.
        let mut reply = Vec::new();
        reserve(&mut reply, u64::MAX);
        assert_eq!(reply.capacity(), 0);
    }
}
