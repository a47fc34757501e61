//! Compares events of the node with all wallets at once. Untouched wallets move their position in memory; the others
//! are queued with the event.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use bitcoin::BlockHash;
use outrigger_service::chain::BlockRef;

use super::decoded::{previous, synced_at};
use crate::live::feed::Item;
use outrigger_node::interest::{interests, transaction_interest};

use super::thread::Follower;
use crate::Shared;
use crate::error::Result;
use crate::live::Wallet;
use crate::live::index::WalletNumber;
use outrigger_node::{NodeEvent, Removal};

impl Follower {
    pub(super) fn pass(&self, shared: &Shared, event: &NodeEvent) {
        if self.count() == 0 {
            // A load reads everything that the wallet has missed.
            return;
        }
        let passed = match event {
            NodeEvent::TransactionAdded { transaction, .. } => {
                let txid = transaction.compute_txid();
                return self.pass_transaction(event, interests(transaction, &txid).collect());
            }
            // The event of the block that confirms it changes its state.
            NodeEvent::TransactionRemoved { reason: Removal::Confirmed, .. } => return,
            NodeEvent::TransactionRemoved { txid, .. } => {
                return self.pass_transaction(event, vec![transaction_interest(txid)]);
            }
            NodeEvent::BlockConnected { hash, .. } => self.pass_connected(shared, event, *hash),
            NodeEvent::BlockDisconnected { hash, height } => self.pass_disconnected(shared, event, *hash, *height),
            NodeEvent::TipChanged { hash, .. } => {
                self.for_each(|wallet| wallet.offer_to_block());
                self.pass_tip(shared, event, *hash)
            }
            NodeEvent::Reached => return self.give_all(event),
        };
        if let Err(error) = passed {
            // Each wallet then processes the event on its own, and reports its own failure.
            tracing::debug!(%error, "an event of the node could not be matched; every wallet processes it by itself");
            self.give_all(event);
        }
    }

    /// Queues an event for the wallets with one of these interests, and for busy ones: the index may lack some of their
    /// interests.
    fn pass_transaction(&self, event: &NodeEvent, interests: Vec<u64>) {
        let _held = self.index.hold();
        let mut busy = self.busy.lock();
        let mut found = HashSet::new();
        interests.into_iter().for_each(|interest| self.index.collect(interest, &mut found));
        found.extend(busy.iter());
        for wallet in found.into_iter().filter_map(|slot| self.get(slot)) {
            self.give_to(&wallet, Item::Event(event.clone()), &mut busy);
        }
    }

    pub(super) fn give_to(&self, wallet: &Arc<Wallet>, item: Item, busy: &mut BTreeSet<WalletNumber>) {
        if wallet.feed.push(item) {
            busy.insert(wallet.slot);
            self.work_queue.queue(wallet.clone());
        }
    }

    fn pass_connected(&self, shared: &Shared, event: &NodeEvent, hash: BlockHash) -> Result<()> {
        let block = self.blocks.get(&*shared.node, hash)?;
        let Some(before) = block.previous() else { return Ok(()) };
        let after = synced_at(&block.info);
        let _held = self.index.hold();
        let mut busy = self.busy.lock();
        let concerned = block.concerned(&self.index);
        self.for_each(|wallet| {
            if !wallet.feed.pass(before, after, |_| !concerned.contains(&wallet.slot)) {
                self.give_to(wallet, Item::Event(event.clone()), &mut busy);
            }
        });
        Ok(())
    }

    fn pass_disconnected(&self, shared: &Shared, event: &NodeEvent, hash: BlockHash, height: u32) -> Result<()> {
        let block = self.blocks.get(&*shared.node, hash)?;
        let parent = block.previous().map(|hash| shared.block_info(BlockRef::Hash { hash }));
        let Some(parent) = parent.transpose()?.flatten() else { return Ok(()) };
        let _held = self.index.hold();
        let mut busy = self.busy.lock();
        self.for_each(|wallet| {
            if !wallet.feed.pass(hash, synced_at(&parent), |place| place.top < height) {
                self.give_to(wallet, Item::Event(event.clone()), &mut busy);
            }
        });
        Ok(())
    }

    /// Lets wallets that are not at the tip read on. If idle wallets lack only the tip's block, it is connected for all
    /// wallets at once.
    fn pass_tip(&self, shared: &Shared, event: &NodeEvent, hash: BlockHash) -> Result<()> {
        let mut places = HashSet::new();
        // Busy wallets get the event below. Most of them have got the block's event.
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
            self.pass_connected(shared, event, hash)?;
        }
        let mut busy = self.busy.lock();
        self.for_each(|wallet| {
            if wallet.feed.position().now.hash != hash {
                self.give_to(wallet, Item::Event(event.clone()), &mut busy);
            }
        });
        Ok(())
    }
}
