//! A wallet's transactions: meeting them in blocks and in the mempool, and where each stands.

use std::collections::BTreeSet;

use bitcoin::consensus::deserialize;
use bitcoin::hashes::Hash;
use bitcoin::{Block, BlockHash, OutPoint, ScriptBuf, Transaction, Txid};

use super::Node;
use super::own::Own;
use crate::service::chain::{BlockInfo, BlockRef};
use crate::service::wallet::{Ownership, Synced, TxState, check_text};
use crate::service::{ErrorKind, Result, ServiceError};

/// How far ahead of the clock an earlier entry's time may lie and still bound later ones, in seconds.
const TOLERATED_AHEAD: u64 = 300;
/// How far a block's time may lie before that of the keys in it, in seconds.
const TIMESTAMP_WINDOW: u64 = 7200;

/// A transaction that concerns the wallet. Its arrival is its place in the list.
#[derive(Clone)]
pub struct Met {
    pub tx: Transaction,
    pub txid: Txid,
    pub state: TxState,
    /// Its smart time, and when the wallet met it, in seconds.
    pub time: u64,
    pub received: u64,
    pub metadata: Vec<(String, String)>,
}

impl Met {
    /// What it spends; nothing for a coinbase.
    pub fn inputs(&self) -> Vec<OutPoint> {
        if self.tx.is_coinbase() {
            return Vec::new();
        }
        self.tx.input.iter().map(|input| input.previous_output).collect()
    }
}

/// The scripts that it pays to.
fn scripts(tx: &Transaction) -> impl Iterator<Item = &ScriptBuf> {
    tx.output.iter().map(|output| &output.script_pubkey)
}

fn header_time(info: &BlockInfo) -> u32 {
    info.header.get(68..72).and_then(|time| time.try_into().ok()).map_or(0, u32::from_le_bytes)
}

impl Own {
    pub fn find_met(&self, txid: Txid) -> Option<usize> {
        self.met.iter().position(|met| met.txid == txid)
    }

    /// The wallet's transactions that spend an outpoint, by their arrival.
    pub fn spenders(&self, outpoint: &OutPoint) -> Vec<usize> {
        let spends = |met: &Met| met.inputs().contains(outpoint);
        (0..self.met.len()).filter(|at| self.met.get(*at).is_some_and(spends)).collect()
    }

    /// Whose an outpoint is, and its value in satoshi; none where its transaction is not known.
    pub fn outpoint(&self, outpoint: &OutPoint) -> Option<(Ownership, u64)> {
        let met = self.met.get(self.find_met(outpoint.txid)?)?;
        let output = met.tx.output.get(outpoint.vout as usize)?;
        Some((self.ownership(&output.script_pubkey), output.value.to_sat()))
    }

    /// Whether there is anything to follow.
    pub fn is_behind(&self, node: &Node) -> Result<bool> {
        let sequence = node.mempool.info(super::NO_CALL)?.sequence;
        Ok(self.synced.hash != node.tip()?.hash || self.sequence != Some(sequence))
    }

    /// Follows the chain to its tip, and takes over what is new in the mempool; all that is there where `all` says so.
    pub fn follow(&mut self, node: &Node, all: bool) -> Result<()> {
        let tip = node.tip()?;
        if self.synced.hash != tip.hash {
            let fork = node.chain.fork_point(super::NO_CALL, self.synced.hash)?.ok_or(ErrorKind::Internal)?;
            let undone = self.undo_to(&fork, node)?;
            while let Some(next) = node.block_info(BlockRef::Height { height: self.synced.height + 1 })? {
                self.connect(&node.block(next.hash)?, &next, node)?;
                self.stand_at(&next);
            }
            self.find_in_mempool(&undone, node)?;
        }
        self.take_mempool(node, all)
    }

    /// Of transactions that were taken back with a block, marks those that wait again. They are not met anew by that.
    fn find_in_mempool(&mut self, undone: &BTreeSet<Txid>, node: &Node) -> Result<()> {
        let there: BTreeSet<Txid> = node.mempool.ids(super::NO_CALL)?.into_iter().collect();
        for met in &mut self.met {
            if met.state == TxState::Inactive && undone.contains(&met.txid) && there.contains(&met.txid) {
                met.state = TxState::InMempool;
            }
        }
        Ok(())
    }

    fn stand_at(&mut self, info: &BlockInfo) {
        let (time, median_time) = (header_time(info), info.median_time);
        self.synced = Synced { hash: info.hash, height: info.height, time, median_time };
    }

    /// Takes back what blocks above `fork` said. Gives the transactions that it was said of.
    fn undo_to(&mut self, fork: &BlockInfo, node: &Node) -> Result<BTreeSet<Txid>> {
        let mut undone = BTreeSet::new();
        let mut orphans = Vec::new();
        for (at, met) in self.met.iter_mut().enumerate() {
            match met.state {
                TxState::Confirmed { height, .. } | TxState::Conflicted { height, .. } if height > fork.height => {
                    met.state = TxState::Inactive;
                    undone.insert(met.txid);
                    orphans.extend(Some(at).filter(|_| met.tx.is_coinbase()));
                }
                _ => {}
            }
        }
        orphans.into_iter().for_each(|at| self.orphan(at));
        self.stand_at(fork);
        let undone_ones = self.met.iter().filter(|met| undone.contains(&met.txid));
        let outputs: Vec<ScriptBuf> = undone_ones.flat_map(|met| scripts(&met.tx)).cloned().collect();
        self.note_payments(outputs.iter(), node)?;
        Ok(undone)
    }

    /// A coinbase is in no block of the chain: it is given up, and all that builds on it.
    fn orphan(&mut self, at: usize) {
        let Some(met) = self.met.get_mut(at) else { return };
        met.state = TxState::Abandoned;
        let txid = met.txid;
        self.children(txid).into_iter().for_each(|child| self.orphan(child));
    }

    fn connect(&mut self, block: &Block, info: &BlockInfo, node: &Node) -> Result<()> {
        for (index, tx) in (0_u32..).zip(&block.txdata) {
            let txid = tx.compute_txid();
            if !tx.is_coinbase() {
                for input in &tx.input {
                    for spender in self.spenders(&input.previous_output) {
                        if self.met.get(spender).is_some_and(|met| met.txid != txid) {
                            self.mark_conflicted(spender, info.hash, info.height);
                        }
                    }
                }
            }
            let time = block.header.time;
            self.consider(tx, TxState::Confirmed { block: info.hash, height: info.height, index, time }, node)?;
        }
        Ok(())
    }

    fn take_mempool(&mut self, node: &Node, all: bool) -> Result<()> {
        self.sequence = Some(node.mempool.info(super::NO_CALL)?.sequence);
        let ids = node.mempool.ids(super::NO_CALL)?;
        let there: BTreeSet<Txid> = ids.iter().copied().collect();
        for met in &mut self.met {
            if met.state == TxState::InMempool && !there.contains(&met.txid) {
                met.state = TxState::Inactive;
            }
        }
        for raw in node.mempool.transactions(super::NO_CALL, ids)?.into_iter().flatten() {
            let tx: Transaction = deserialize(&raw.raw).map_err(|_| ErrorKind::Internal)?;
            let txid = tx.compute_txid();
            let known = self.find_met(txid).and_then(|at| self.met.get(at)).map(|met| met.state);
            let news = match known {
                Some(TxState::Confirmed { .. }) => false,
                // The wallet may have derived the addresses that it pays to since it was met.
                Some(TxState::InMempool) => all,
                Some(_) => true,
                None => all || !self.seen.contains(&txid),
            };
            if news {
                self.consider(&tx, TxState::InMempool, node)?;
            }
        }
        self.seen = there;
        Ok(())
    }

    /// Takes over a transaction if it concerns the wallet, or moves one that is known to `state`.
    fn consider(&mut self, tx: &Transaction, state: TxState, node: &Node) -> Result<()> {
        let txid = tx.compute_txid();
        if let Some(met) = self.find_met(txid).and_then(|at| self.met.get_mut(at)) {
            // Its witness may be another one than that it was met with.
            (met.tx, met.state) = (tx.clone(), state);
            return self.note_payments(scripts(tx), node);
        }
        let ours = |ownership| ownership != Ownership::None;
        let pays = tx.output.iter().any(|output| ours(self.ownership(&output.script_pubkey)));
        let spends = |outpoint| self.outpoint(outpoint).is_some_and(|(ownership, _)| ours(ownership));
        if !pays && !tx.input.iter().any(|input| spends(&input.previous_output)) {
            return Ok(());
        }
        let received = node.time()?;
        let time = self.smart_time(received, &state);
        self.met.push(Met { tx: tx.clone(), txid, state, time, received, metadata: Vec::new() });
        self.note_payments(scripts(tx), node)
    }

    /// The time to show: when it was met, or for one first met in a block the block's, bounded by those of earlier ones.
    fn smart_time(&self, received: u64, state: &TxState) -> u64 {
        let TxState::Confirmed { time, .. } = state else { return received };
        let bounds = |met: &&Met| met.time <= received.saturating_add(TOLERATED_AHEAD);
        let earlier = self.met.iter().rev().find(bounds).map(|met| met.time);
        earlier.unwrap_or(0).max(u64::from(*time).min(received.max(earlier.unwrap_or(0))))
    }

    /// What the wallet has that spends an output of a transaction.
    fn children(&self, txid: Txid) -> Vec<usize> {
        let spends = |met: &Met| met.inputs().iter().any(|input| input.txid == txid);
        (0..self.met.len()).filter(|at| self.met.get(*at).is_some_and(spends)).collect()
    }

    /// A block made a transaction impossible, and all that builds on it. The deeper of two conflicts is kept.
    fn mark_conflicted(&mut self, at: usize, block: BlockHash, height: u32) {
        let Some(met) = self.met.get_mut(at) else { return };
        match met.state {
            TxState::Confirmed { .. } => return,
            TxState::Conflicted { height: other, .. } if other <= height => return,
            _ => met.state = TxState::Conflicted { block, height },
        }
        let txid = met.txid;
        self.children(txid).into_iter().for_each(|child| self.mark_conflicted(child, block, height));
    }

    pub fn abandon(&mut self, txid: Txid) -> Result<()> {
        let at = self.find_met(txid).ok_or_else(unknown_transaction)?;
        if self.met.get(at).is_some_and(|met| !matches!(met.state, TxState::Inactive | TxState::Abandoned)) {
            return Err(ServiceError::new(ErrorKind::Refused, "Transaction not eligible for abandonment"));
        }
        self.give_up(at);
        Ok(())
    }

    fn give_up(&mut self, at: usize) {
        let Some(met) = self.met.get_mut(at).filter(|met| met.state == TxState::Inactive) else { return };
        met.state = TxState::Abandoned;
        let txid = met.txid;
        self.children(txid).into_iter().for_each(|child| self.give_up(child));
    }

    pub fn set_metadata(&mut self, txid: Txid, key: String, value: String) -> Result<()> {
        check_text(&key, &value)?;
        let met = self.find_met(txid).and_then(|at| self.met.get_mut(at)).ok_or_else(unknown_transaction)?;
        met.metadata.retain(|(other, _)| *other != key);
        if !value.is_empty() {
            met.metadata.push((key, value));
            met.metadata.sort_unstable();
        }
        Ok(())
    }

    /// Reads the blocks again from the first on whose running-maximum time is at least `from_time` less two hours, and the
    /// whole mempool; then offers what is idle to the mempool again.
    pub fn rescan(&mut self, from_time: u64, node: &Node) -> Result<()> {
        let mut reached = false;
        for height in 0..=self.synced.height {
            let Some(info) = node.block_info(BlockRef::Height { height })? else { break };
            reached = reached || u64::from(header_time(&info)) >= from_time.saturating_sub(TIMESTAMP_WINDOW);
            if reached {
                self.connect(&node.block(info.hash)?, &info, node)?;
            }
        }
        self.take_mempool(node, true)?;
        self.resubmit(node)
    }

    /// Offers what is in neither the chain nor the mempool, and not given up, to the mempool again.
    pub fn resubmit(&mut self, node: &Node) -> Result<()> {
        for met in self.met.iter().filter(|met| met.state == TxState::Inactive && !met.tx.is_coinbase()) {
            node.mempool.submit(super::NO_CALL, bitcoin::consensus::serialize(&met.tx).into(), 0)?;
        }
        self.take_mempool(node, false)
    }
}

impl Node<'_> {
    pub fn block(&self, hash: BlockHash) -> Result<Block> {
        let raw = self.chain.block(super::NO_CALL, hash)?.ok_or(ErrorKind::Internal)?;
        deserialize(&raw).map_err(|_| ErrorKind::Internal.into())
    }
}

fn unknown_transaction() -> ServiceError {
    ServiceError::new(ErrorKind::NotFound, "Invalid or non-wallet transaction id")
}

/// The place of an outpoint among the coins.
pub fn outpoint_key(outpoint: &OutPoint) -> Vec<u8> {
    [outpoint.txid.as_byte_array().as_slice(), &outpoint.vout.to_le_bytes()].concat()
}
