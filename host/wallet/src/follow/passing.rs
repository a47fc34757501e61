//! What the node tells is compared with all wallets at once. Those that it leaves untouched move on in memory; the others
//! are given it to work on.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use bitcoin::BlockHash;
use outrigger_service::chain::BlockRef;

use super::decoded::{Decoded, previous};
use crate::live::feed::Item;
use crate::synced::synced_at;
use outrigger_node::interest::{interests, transaction_interest};

use super::thread::Follower;
use crate::Shared;
use crate::error::Result;
use crate::live::Wallet;
use crate::live::index::WalletNumber;
use crate::live::outgoing::Offered;
use outrigger_node::{NodeEvent, Removal};

impl Follower {
    /// Takes over one event for all wallets.
    pub(super) fn pass(&self, shared: &Shared, event: &NodeEvent) {
        if self.count() == 0 {
            // A wallet that is loaded reads what it was not told.
            return;
        }
        let passed = match event {
            NodeEvent::TransactionAdded { transaction, .. } => {
                let txid = transaction.compute_txid();
                self.pass_transaction(event, interests(transaction, &txid).collect());
                Ok(())
            }
            // The block that confirms it says so too, sooner or later.
            NodeEvent::TransactionRemoved { reason: Removal::Confirmed, .. } => Ok(()),
            NodeEvent::TransactionRemoved { txid, .. } => {
                self.pass_transaction(event, vec![transaction_interest(txid)]);
                Ok(())
            }
            NodeEvent::BlockConnected { hash, .. } => self.pass_connected(shared, event, *hash),
            NodeEvent::BlockDisconnected { hash, height } => self.pass_disconnected(shared, event, *hash, *height),
            NodeEvent::TipChanged { hash, .. } => {
                self.offer_to_block();
                self.pass_tip(shared, event, *hash)
            }
            NodeEvent::Reached => {
                self.give_all(event);
                Ok(())
            }
        };
        if let Err(error) = passed {
            // Each looks for itself, and says what it could not do.
            tracing::debug!(%error, "what the node told could not be read for all wallets at once");
            self.give_all(event);
        }
    }

    /// Gives an event to the wallets that have one of these interests, and to those that have more to do: these have
    /// interests that the index does not know yet.
    fn pass_transaction(&self, event: &NodeEvent, interests: Vec<u64>) {
        let _held = self.index.hold();
        let mut busy = self.busy.lock();
        let mut found = HashSet::new();
        interests.into_iter().for_each(|interest| self.index.collect(interest, &mut found));
        found.extend(busy.iter());
        for wallet in found.into_iter().filter_map(|slot| self.get(slot)) {
            self.give_to(&wallet, event, &mut busy);
        }
    }

    fn give_to(&self, wallet: &Arc<Wallet>, event: &NodeEvent, busy: &mut BTreeSet<WalletNumber>) {
        if wallet.feed.push(Item::Event(event.clone())) {
            busy.insert(wallet.slot);
            self.work_queue.queue(wallet.clone());
        }
    }

    fn pass_connected(&self, shared: &Shared, event: &NodeEvent, hash: BlockHash) -> Result<()> {
        let block = self.blocks.get(&*shared.node, hash)?;
        self.connect_for_all(event, &block);
        Ok(())
    }

    fn connect_for_all(&self, event: &NodeEvent, block: &Decoded) {
        let Some(before) = block.previous() else { return };
        let after = synced_at(&block.info);
        let _held = self.index.hold();
        let mut busy = self.busy.lock();
        let concerned = block.concerned(&self.index);
        self.for_each(|wallet| {
            if !wallet.feed.pass(before, after, |_| !concerned.contains(&wallet.slot)) {
                self.give_to(wallet, event, &mut busy);
            }
        });
    }

    fn pass_disconnected(&self, shared: &Shared, event: &NodeEvent, hash: BlockHash, height: u32) -> Result<()> {
        let block = self.blocks.get(&*shared.node, hash)?;
        let parent = block.previous().map(|hash| shared.block_info(BlockRef::Hash { hash }));
        let Some(parent) = parent.transpose()?.flatten() else { return Ok(()) };
        let _held = self.index.hold();
        let mut busy = self.busy.lock();
        self.for_each(|wallet| {
            if !wallet.feed.pass(hash, synced_at(&parent), |place| place.top < height) {
                self.give_to(wallet, event, &mut busy);
            }
        });
        Ok(())
    }

    /// Has the payments offered again that the node refused for a reason which a new block may end.
    fn offer_to_block(&self) {
        self.for_each(|wallet| {
            if !wallet.awaiting_block().is_empty() {
                self.resends.queue(wallet.slot, Offered::AwaitingBlock);
            }
        });
    }

    /// The wallets that do not stand at the tip by now read what is between: together, where it is only the tip itself.
    fn pass_tip(&self, shared: &Shared, event: &NodeEvent, hash: BlockHash) -> Result<()> {
        let mut places = HashSet::new();
        // Those that have more to do are told below, and most of them were told of the block itself.
        self.for_each(|wallet| {
            if wallet.feed.is_idle() {
                places.insert(wallet.feed.position().now.hash);
            }
        });
        places.remove(&hash);
        let tip = match places.is_empty() {
            true => None,
            false => shared.block_info(BlockRef::Hash { hash })?,
        };
        if tip.as_ref().and_then(previous).is_some_and(|before| places.contains(&before)) {
            let block = self.blocks.get(&*shared.node, hash)?;
            self.connect_for_all(event, &block);
        }
        let mut busy = self.busy.lock();
        self.for_each(|wallet| {
            if wallet.feed.position().now.hash != hash {
                self.give_to(wallet, event, &mut busy);
            }
        });
        Ok(())
    }
}
