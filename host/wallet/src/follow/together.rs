//! Wallets loaded together at startup follow the chain side by side: each block, and the mempool, is read once for all.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bitcoin::{Transaction, Txid};

use outrigger_node::interest::interests;

use super::blocks::TIME_PER_TURN;
use super::decoded::MAX_BLOCKS;
use crate::Shared;
use crate::error::Result;
use crate::live::Wallet;
use crate::live::index::WalletNumber;

/// Brings wallets, whose interests are in the index, to the tip and synchronises them with the mempool. Skips wallets
/// that are far behind or fail; they catch up alone. Returns the sequence of the mempool; `None` if the node did not
/// answer.
pub fn catch_up_together(shared: &Shared, wallets: &[Arc<Wallet>]) -> Option<u64> {
    walk_blocks(shared, wallets);
    let sequence = read_mempool(shared, wallets);
    sequence.inspect_err(|error| tracing::debug!(%error, "the mempool could not be read for all wallets together")).ok()
}

/// Walks from the lowest position to the tip, as many blocks at a time as the cache holds. Each wallet passes them
/// before the next ones are read.
fn walk_blocks(shared: &Shared, wallets: &[Arc<Wallet>]) {
    let mut walking: Vec<&Arc<Wallet>> = wallets.iter().filter(|wallet| !wallet.is_far()).collect();
    while !shared.stopping.load(Ordering::Relaxed)
        && let Some(lowest) = walking.iter().map(|wallet| wallet.synced().height).min()
        && lowest < shared.node.tip().height
    {
        let up_to = lowest.saturating_add(MAX_BLOCKS as u32);
        walking.retain(|wallet| wallet.read_blocks(Instant::now() + TIME_PER_TURN, up_to).is_ok());
    }
}

/// Reads the mempool and stores in each wallet the transactions that concern it. Returns its sequence.
fn read_mempool(shared: &Shared, wallets: &[Arc<Wallet>]) -> Result<u64> {
    let (node, index) = (&shared.node, &shared.follower.index);
    let sequence = node.mempool_sequence()?;
    let present: HashSet<Txid> = node.mempool_ids()?.into_iter().collect();
    let mut of_wallets: HashMap<WalletNumber, Vec<(Txid, Arc<Transaction>)>> = HashMap::new();
    for (txid, transaction) in node.mempool_concerning(&|interest| index.has_any(interest))? {
        let mut concerned = HashSet::new();
        interests(&transaction, &txid).for_each(|interest| index.collect(interest, &mut concerned));
        for slot in concerned {
            of_wallets.entry(slot).or_default().push((txid, transaction.clone()));
        }
    }
    // A wallet that lacks blocks does not know all of its coins yet. It reads the mempool by itself later.
    let tip = node.tip().hash;
    for wallet in wallets.iter().filter(|wallet| wallet.synced().hash == tip) {
        let found = of_wallets.remove(&wallet.slot).unwrap_or_default();
        // A payment may have derived scripts that the query did not cover. Such a wallet reads the mempool again by
        // itself.
        if let Ok(false) = wallet.enter_all(&present, &found) {
            wallet.feed.note_mempool(sequence);
        }
    }
    Ok(sequence)
}
