//! The naive model: recomputes the wallet's state from the raw blocks, the mempool, and the order of arrival. It is slow
//! and simple, and shares no code with the wallet.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use bitcoin::{BlockHash, OutPoint, ScriptBuf, Transaction, TxOut, Txid};
use outrigger_service::wallet::Ownership;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    pub txid: Txid,
    pub tx: Transaction,
}

impl Named {
    pub fn new(tx: Transaction) -> Rc<Self> {
        Rc::new(Self { txid: tx.compute_txid(), tx })
    }

    pub fn inputs(&self) -> impl Iterator<Item = OutPoint> {
        let inputs = self.tx.input.iter().map(|input| input.previous_output);
        inputs.filter(|_| !self.tx.is_coinbase())
    }

    pub fn spends_one_of(&self, other: &Named) -> bool {
        self.txid != other.txid && self.inputs().any(|input| other.inputs().any(|theirs| theirs == input))
    }
}

pub struct RawBlock {
    pub hash: BlockHash,
    pub previous: BlockHash,
    pub height: u32,
    pub time: u32,
    pub transactions: Vec<Rc<Named>>,
}

#[derive(Clone)]
pub struct Met {
    pub named: Rc<Named>,
    pub received: u64,
    pub time: u64,
}

pub struct Place {
    pub block: Rc<RawBlock>,
    pub index: usize,
}

/// An earlier transaction's time is a lower bound for later ones only up to this many seconds ahead of the clock.
const AHEAD: u64 = 300;

#[derive(Clone, Default)]
pub struct Naive {
    /// All blocks ever seen.
    pub blocks: BTreeMap<BlockHash, Rc<RawBlock>>,
    pub chain: Vec<Rc<RawBlock>>,
    pub pool: Vec<Rc<Named>>,
    /// The wallet's transactions, in the order of arrival.
    pub met: Vec<Met>,
    pub given_up: BTreeSet<Txid>,
    pub owned: BTreeMap<ScriptBuf, (Ownership, Vec<String>)>,
    /// The labels, by the script of the address.
    pub labels: BTreeMap<ScriptBuf, String>,
    pub remarks: BTreeMap<Txid, BTreeMap<String, String>>,
    /// The scripts of the ranged descriptor, with their indexes.
    pub indexes: Vec<(u32, ScriptBuf)>,
    /// The next index of the ranged descriptor, once it is active.
    pub next_index: Option<u32>,
}

impl Naive {
    /// Adds a block to the best chain.
    pub fn connect(&mut self, block: Rc<RawBlock>, now: u64) {
        self.blocks.insert(block.hash, block.clone());
        self.chain.push(block.clone());
        self.read(&block, now, false);
        let conflicted: Vec<Txid> = self.given_up.iter().copied().filter(|t| self.conflict(*t).is_some()).collect();
        for txid in conflicted {
            self.given_up.remove(&txid);
        }
    }

    /// Removes the tip from the best chain, and abandons its coinbase with all descendants in the wallet.
    pub fn disconnect(&mut self) {
        let Some(block) = self.chain.pop() else { return };
        let known = block.transactions.iter().filter(|named| self.find(named.txid).is_some()).cloned();
        known.collect::<Vec<_>>().iter().for_each(|named| self.note_payments(named));
        let mut doomed: Vec<Txid> = block.transactions.first().map(|coinbase| coinbase.txid).into_iter().collect();
        while let Some(txid) = doomed.pop() {
            if self.find(txid).is_some() && self.given_up.insert(txid) {
                doomed.extend(self.children(txid));
            }
        }
    }

    /// For a payment to the active descriptor, adds all addresses up to the paid one to the address book.
    fn note_payments(&mut self, named: &Named) {
        let Some(next) = &mut self.next_index else { return };
        for output in &named.tx.output {
            let paid = self.indexes.iter().find(|(_, script)| *script == output.script_pubkey);
            let Some((index, _)) = paid.filter(|(index, _)| index >= next) else { continue };
            for (_, script) in self.indexes.iter().filter(|(passed, _)| (*next..=*index).contains(passed)) {
                self.labels.entry(script.clone()).or_default();
            }
            *next = index + 1;
        }
    }

    fn children(&self, txid: Txid) -> Vec<Txid> {
        let children = self.met.iter().filter(|met| met.named.inputs().any(|input| input.txid == txid));
        children.map(|met| met.named.txid).collect()
    }

    /// Replaces the mempool.
    pub fn set_pool(&mut self, pool: Vec<Rc<Named>>, now: u64) {
        let before = std::mem::replace(&mut self.pool, pool.clone());
        for named in pool.iter().filter(|named| !before.contains(named)) {
            self.given_up.remove(&named.txid);
            self.meet(named, now, None);
        }
    }

    /// Makes the wallet read the whole chain, and then the mempool.
    pub fn rescan(&mut self, now: u64) {
        for block in self.chain.clone() {
            self.read(&block, now, true);
        }
        self.read_pool(now);
    }

    /// Makes the wallet read the whole mempool, as when it is loaded.
    pub fn read_pool(&mut self, now: u64) {
        for named in self.pool.clone() {
            self.meet(&named, now, None);
        }
    }

    /// Makes the wallet catch up with the chain and the mempool of `with`, whose changes it has not seen.
    pub fn catch_up(&mut self, with: &Self, now: u64) {
        while !with.is_in_chain(self.tip()) {
            self.disconnect();
        }
        for block in &with.chain[self.chain.len()..] {
            self.connect(block.clone(), now);
        }
        // The wallet reads the whole mempool, since the new blocks may make more transactions relevant.
        self.pool.clear();
        self.set_pool(with.pool.clone(), now);
    }

    /// Makes a script the wallet's. A spendable script stays spendable.
    pub fn own(&mut self, script: &ScriptBuf, ownership: Ownership, parent: Option<String>) {
        let (known, parents) = self.owned.entry(script.clone()).or_insert((ownership, Vec::new()));
        if *known != Ownership::Spendable {
            *known = ownership;
        }
        parents.extend(parent.filter(|parent| !parents.contains(parent)));
    }

    /// Abandons a transaction for a client. The error is the wallet's error message.
    pub fn abandon(&mut self, txid: Txid) -> Result<(), &'static str> {
        if self.find(txid).is_none() {
            return Err("Invalid or non-wallet transaction id");
        }
        if !self.is_idle(txid) && !self.given_up.contains(&txid) {
            return Err("Transaction not eligible for abandonment");
        }
        let mut doomed = vec![txid];
        while let Some(txid) = doomed.pop() {
            if self.is_idle(txid) {
                self.given_up.insert(txid);
                doomed.extend(self.children(txid));
            }
        }
        Ok(())
    }

    fn read(&mut self, block: &RawBlock, now: u64, rescanned: bool) {
        for named in &block.transactions {
            self.given_up.remove(&named.txid);
            self.meet(named, now, Some((block.time, rescanned)));
        }
    }

    fn meet(&mut self, named: &Rc<Named>, now: u64, block_time: Option<(u32, bool)>) {
        let paid = named.tx.output.iter().any(|output| self.owner(output) != Ownership::None);
        let pays = named.inputs().any(|input| self.spent(&input).is_some_and(|o| self.owner(o) != Ownership::None));
        let known = self.find(named.txid).is_some();
        if known || paid || pays {
            self.note_payments(named);
        }
        if known || !(paid || pays) {
            return;
        }
        let time = match block_time {
            None => now,
            Some((block_time, true)) => u64::from(block_time),
            Some((block_time, false)) => {
                let earlier = self.met.iter().rev().map(|met| met.time).find(|time| *time <= now + AHEAD);
                let earlier = earlier.unwrap_or(0);
                u64::from(block_time).min(now.max(earlier)).max(earlier)
            }
        };
        self.met.push(Met { named: named.clone(), received: now, time });
    }

    pub fn find(&self, txid: Txid) -> Option<&Met> {
        self.met.iter().find(|met| met.named.txid == txid)
    }

    pub fn owner(&self, output: &TxOut) -> Ownership {
        self.owned.get(&output.script_pubkey).map_or(Ownership::None, |(ownership, _)| *ownership)
    }

    /// The output that an input spends, if the wallet has the transaction with that output.
    pub fn spent(&self, input: &OutPoint) -> Option<&TxOut> {
        self.find(input.txid)?.named.tx.output.get(input.vout as usize)
    }

    pub fn place(&self, txid: Txid) -> Option<Place> {
        self.chain.iter().rev().find_map(|block| {
            let index = block.transactions.iter().position(|named| named.txid == txid)?;
            Some(Place { block: block.clone(), index })
        })
    }

    pub fn in_pool(&self, txid: Txid) -> bool {
        self.pool.iter().any(|named| named.txid == txid)
    }

    /// The height of the lowest block that conflicts with a transaction of the wallet or with its ancestor.
    pub fn conflict(&self, txid: Txid) -> Option<u32> {
        let met = self.find(txid)?;
        if self.place(txid).is_some() {
            return None;
        }
        let against = |block: &&Rc<RawBlock>| block.transactions.iter().any(|other| other.spends_one_of(&met.named));
        let own = self.chain.iter().find(against).map(|block| block.height);
        let parents = met.named.inputs().filter_map(|input| self.conflict(input.txid));
        own.into_iter().chain(parents).min()
    }

    /// Whether a transaction is neither confirmed, in the mempool, conflicted nor abandoned.
    pub fn is_idle(&self, txid: Txid) -> bool {
        self.depth(txid) == 0 && !self.in_pool(txid) && !self.given_up.contains(&txid)
    }

    pub fn tip(&self) -> &RawBlock {
        self.chain.last().unwrap()
    }

    pub fn depth(&self, txid: Txid) -> i64 {
        let depth_of = |height: u32| i64::from(self.tip().height) - i64::from(height) + 1;
        match (self.place(txid), self.conflict(txid)) {
            (Some(place), _) => depth_of(place.block.height),
            (None, Some(height)) => -depth_of(height),
            (None, None) => 0,
        }
    }

    /// The value of the wallet's coins that a transaction spends, in satoshi. `counts` selects by ownership.
    pub fn debit(&self, met: &Met, counts: impl Fn(Ownership) -> bool) -> u64 {
        let spent = met.named.inputs().filter_map(|input| self.spent(&input));
        spent.filter(|output| counts(self.owner(output))).map(|output| output.value.to_sat()).sum()
    }

    pub fn trusted(&self, txid: Txid) -> bool {
        let Some(met) = self.find(txid) else { return false };
        if self.place(txid).is_some() {
            return true;
        }
        let parent = |input: OutPoint| {
            let spendable = self.spent(&input).is_some_and(|output| self.owner(output) == Ownership::Spendable);
            spendable && self.trusted(input.txid)
        };
        self.in_pool(txid)
            && self.debit(met, |ownership| ownership != Ownership::None) > 0
            && met.named.inputs().all(parent)
    }

    pub fn replaceable(&self, txid: Txid) -> &'static str {
        let signals = |named: &Named| named.tx.input.iter().any(|input| input.sequence.0 < 0xffff_fffe);
        if self.depth(txid) > 0 {
            return "no";
        }
        if self.find(txid).is_some_and(|met| signals(&met.named)) {
            return "yes";
        }
        if !self.in_pool(txid) {
            return "unknown";
        }
        let (mut waiting, mut seen) = (vec![txid], BTreeSet::new());
        while let Some(txid) = waiting.pop() {
            let Some(named) = self.pool.iter().find(|named| named.txid == txid) else { continue };
            if signals(named) {
                return "yes";
            }
            if seen.insert(txid) {
                waiting.extend(named.inputs().map(|input| input.txid));
            }
        }
        "no"
    }

    /// The other transactions of the wallet that spend the same coins, ordered by the txids' internal bytes.
    pub fn conflicts(&self, met: &Met) -> Vec<Txid> {
        let others = self.met.iter().filter(|other| other.named.spends_one_of(&met.named));
        others.map(|other| other.named.txid).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The mempool transactions that conflict with a transaction or its ancestor; none if it is in the mempool or the chain.
    pub fn pool_conflicts(&self, met: &Met) -> Vec<Txid> {
        self.in_the_way(met).into_iter().collect()
    }

    fn in_the_way(&self, met: &Met) -> BTreeSet<Txid> {
        if self.in_pool(met.named.txid) || self.place(met.named.txid).is_some() {
            return BTreeSet::new();
        }
        let others = self.pool.iter().filter(|other| other.spends_one_of(&met.named)).map(|other| other.txid);
        let parents = met.named.inputs().filter_map(|input| self.find(input.txid));
        others.chain(parents.flat_map(|parent| self.in_the_way(parent))).collect()
    }

    /// The chain's unspent outputs, computed from its blocks.
    pub fn chain_coins(&self) -> BTreeMap<OutPoint, TxOut> {
        let mut coins = BTreeMap::new();
        for named in self.chain.iter().flat_map(|block| &block.transactions) {
            for input in named.inputs() {
                coins.remove(&input);
            }
            for (vout, output) in (0_u32..).zip(&named.tx.output) {
                coins.insert(OutPoint { txid: named.txid, vout }, output.clone());
            }
        }
        coins
    }

    /// The height of the last block that a block's branch shares with the best chain.
    pub fn fork(&self, hash: BlockHash) -> u32 {
        let mut block = &self.blocks[&hash];
        while !self.is_in_chain(block) {
            block = &self.blocks[&block.previous];
        }
        block.height
    }

    pub fn is_in_chain(&self, block: &RawBlock) -> bool {
        self.chain.get(block.height as usize).is_some_and(|other| other.hash == block.hash)
    }
}
