//! A digest of the node's mempool: the ids, and for each transaction the interests that show whether it may concern a
//! wallet.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use bitcoin::{Amount, BlockHash, Transaction, Txid};
use outrigger_node::interest::{interests, outpoint_interest};
use outrigger_node::{NodeEvent, Removal};
use outrigger_values::amount::Saturating;
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::answers::{EntryAnswer, MempoolAnswer};
use super::blocks::transactions;
use super::error::{AskError, known};
use super::rpc::{Question, Rpc};
use super::zmq::Event;

/// How many transactions are fetched at once. The host keeps them in memory until it emits them.
const PART: usize = 500;

struct Entry {
    /// In the order of [`interests`].
    interests: Box<[u64]>,
    outputs: u32,
    number: u64,
}

impl Entry {
    /// The interests for the outputs that the transaction spends.
    fn spent(&self) -> &[u64] {
        let end = self.interests.len().saturating_sub(self.outputs as usize);
        self.interests.get(1..end).unwrap_or_default()
    }
}

#[derive(Default)]
struct MempoolState {
    entries: HashMap<Txid, Entry>,
    /// The last spender of each output that entries spend, by [`outpoint_interest`].
    spenders: HashMap<u64, Txid>,
    /// In the order of first sight.
    order: BTreeMap<u64, Txid>,
    /// Counts additions and removals.
    moves: u64,
    /// Counts additions, removals, and other changes of the next block's selection: new tips and fee deltas.
    sequence: u64,
    read: Option<Reading>,
}

/// The host compares these figures of the node with those of the last reading. If they differ, it reads the mempool.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Figures {
    transactions: u64,
    /// The sum of their virtual sizes, in virtual bytes.
    virtual_size: u64,
    fees: Amount,
}

impl From<MempoolAnswer> for Figures {
    fn from(info: MempoolAnswer) -> Self {
        Self { transactions: info.size, virtual_size: info.bytes, fees: info.total_fee.0 }
    }
}

impl Figures {
    fn add(&mut self, entry: &EntryAnswer) {
        self.transactions = self.transactions.saturating_add(1);
        self.virtual_size = self.virtual_size.saturating_add(entry.vsize);
        self.fees = self.fees.saturating_add(entry.fees.base.0);
    }
}

struct Reading {
    /// The node's figures at the reading, and the submitted transactions that the host has added since. `None` after notifications
    /// were applied.
    figures: Option<Figures>,
    best: BlockHash,
    /// The sequence number of the node's next change.
    next: u64,
}

/// `getrawmempool` with its sequence.
#[derive(Deserialize)]
struct ContentAnswer {
    txids: Vec<Txid>,
    mempool_sequence: u64,
}

#[derive(Default)]
pub struct Mempool(Mutex<MempoolState>);

impl Mempool {
    /// Reads the changes, and emits them with the time of `clock`, in Unix seconds. Only one thread may call it at a time.
    /// `forced`: reads even if the node's figures equal those of the last reading, which may be a coincidence. After an
    /// error, the changes emitted so far remain applied.
    pub fn sync(
        &self,
        rpc: &Rpc,
        forced: bool,
        clock: &dyn Fn() -> u64,
        catch_up: &dyn Fn(BlockHash),
        emit: &dyn Fn(NodeEvent),
    ) -> Result<(), AskError> {
        let figures: Figures = rpc.ask::<MempoolAnswer>("getmempoolinfo", &json!([]))?.into();
        let best: BlockHash = rpc.ask("getbestblockhash", &json!([]))?;
        if !forced && self.0.lock().is_current(figures, best) {
            return Ok(());
        }
        self.0.lock().read = None;
        let ContentAnswer { txids, mempool_sequence: next } = rpc.ask("getrawmempool", &json!([false, true]))?;
        // Read the clock after the list: during the requests, setmocktime may have run and a transaction arrived.
        let time = clock();
        // Removals due to a block are emitted after the block.
        catch_up(rpc.ask("getbestblockhash", &json!([]))?);
        let present: HashSet<Txid> = txids.iter().copied().collect();
        let (gone, new): (Vec<Txid>, Vec<Txid>) = {
            let state = self.0.lock();
            let gone = state.entries.keys().filter(|txid| !present.contains(*txid)).copied().collect();
            (gone, txids.into_iter().filter(|txid| !state.entries.contains_key(txid)).collect())
        };
        for txid in gone {
            let event = self.0.lock().remove(txid);
            emit(event);
        }
        self.fetch(rpc, &new, time, emit)?;
        self.0.lock().read = Some(Reading { figures: Some(figures), best, next });
        Ok(())
    }

    /// Applies notifications since the last reading, as of `time`, in Unix seconds. Only one thread may call it at a
    /// time, as for [`Self::sync`]. After an error, the caller must read everything again.
    pub fn apply(&self, rpc: &Rpc, events: &[Event], time: u64, emit: &dyn Fn(NodeEvent)) -> Result<(), AskError> {
        // Notifications apply only to a complete reading.
        let Some(reading) = self.0.lock().read.take() else { return Ok(()) };
        let (mut new, mut gone) = (Vec::new(), HashSet::<Txid>::new());
        for event in events {
            match *event {
                Event::Added(txid, number) if number >= reading.next => new.push(txid),
                Event::Removed(txid, number) if number >= reading.next => gone.extend([txid]),
                _ => {}
            }
        }
        // A transaction may have entered and left several times, so the node's current state decides.
        let gone: Vec<Txid> = gone.into_iter().filter(|txid| self.has(txid)).collect();
        let questions: Vec<Question> = gone.iter().map(|txid| ("getmempoolentry", json!([txid]))).collect();
        for (txid, answer) in gone.into_iter().zip(rpc.batch::<IgnoredAny>(&questions)?) {
            if matches!(known(answer), Ok(None)) {
                let event = self.0.lock().remove(txid);
                emit(event);
            }
        }
        let mut seen = HashSet::new();
        new.retain(|txid| !self.has(txid) && seen.insert(*txid));
        self.fetch(rpc, &new, time, emit)?;
        self.0.lock().read = Some(Reading { figures: None, ..reading });
        Ok(())
    }

    /// Adds a transaction that the node has just accepted, as of `time`, in Unix seconds. Only one thread may call it at
    /// a time, as for [`Self::sync`]. Returns false if the caller must read everything: the transaction replaced others, or has
    /// unknown parents.
    pub fn add_submitted(
        &self,
        transaction: &Transaction,
        entry: &EntryAnswer,
        time: u64,
        emit: &dyn Fn(NodeEvent),
    ) -> bool {
        let txid = transaction.compute_txid();
        let mut state = self.0.lock();
        if state.entries.contains_key(&txid) {
            return true;
        }
        let is_alone = state.read.is_some() && !state.has_spender_of(transaction);
        if !(is_alone && entry.depends.iter().all(|parent| state.entries.contains_key(parent))) {
            return false;
        }
        let event = state.add(txid, transaction.clone(), time);
        // getmempoolinfo is not asked: for `unbroadcastcount` the node copies the ids of all transactions that no peer has requested.
        // If other transactions came or left, the sums differ from the node's, and the next check reads the whole mempool.
        if let Some(figures) = state.read.as_mut().and_then(|read| read.figures.as_mut()) {
            figures.add(entry);
        }
        drop(state);
        emit(event);
        true
    }

    /// Fetches and adds these transactions, which bitcoind lists and announces parents first. Skips a transaction that has
    /// left the node's mempool.
    fn fetch(&self, rpc: &Rpc, txids: &[Txid], time: u64, emit: &dyn Fn(NodeEvent)) -> Result<(), AskError> {
        for part in txids.chunks(PART) {
            for (txid, transaction) in transactions(rpc, part)? {
                let event = self.0.lock().add(txid, transaction, time);
                emit(event);
            }
        }
        Ok(())
    }

    /// In the order of first sight.
    pub fn ids(&self) -> Vec<Txid> {
        self.0.lock().order.values().copied().collect()
    }

    pub fn has(&self, txid: &Txid) -> bool {
        self.0.lock().entries.contains_key(txid)
    }

    /// The number of changes of mempool, tip and fee deltas.
    pub fn sequence(&self) -> u64 {
        self.0.lock().sequence
    }

    /// Counts additions and removals.
    pub fn moves(&self) -> u64 {
        self.0.lock().moves
    }

    /// Counts a change without a transaction: a new tip or a fee delta.
    pub fn count_change(&self) {
        self.0.lock().sequence += 1;
    }

    /// The transactions with an interest that `wanted` accepts, and their descendants, parents first.
    pub fn concerning(&self, wanted: &dyn Fn(u64) -> bool) -> Vec<Txid> {
        let state = self.0.lock();
        let (mut found, mut outputs) = (Vec::new(), HashSet::new());
        for txid in state.order.values() {
            let Some(entry) = state.entries.get(txid) else { continue };
            if entry.interests.iter().any(|interest| wanted(*interest) || outputs.contains(interest)) {
                let own = (0..entry.outputs).map(|vout| outpoint_interest(&bitcoin::OutPoint { txid: *txid, vout }));
                outputs.extend(own);
                found.push(*txid);
            }
        }
        found
    }
}

impl MempoolState {
    fn is_current(&self, figures: Figures, best: BlockHash) -> bool {
        self.read.as_ref().filter(|read| read.best == best).is_some_and(|read| match read.figures {
            Some(last) => last == figures,
            None => self.entries.len() as u64 == figures.transactions,
        })
    }

    /// Whether an entry spends one of the same outputs.
    fn has_spender_of(&self, transaction: &Transaction) -> bool {
        let mut inputs = transaction.input.iter();
        inputs.any(|input| self.spenders.contains_key(&outpoint_interest(&input.previous_output)))
    }

    fn add(&mut self, txid: Txid, transaction: Transaction, time: u64) -> NodeEvent {
        self.sequence += 1;
        self.moves += 1;
        let outputs = u32::try_from(transaction.output.len()).unwrap_or(u32::MAX);
        let number = self.sequence;
        let entry = Entry { interests: interests(&transaction, &txid).collect(), outputs, number };
        self.spenders.extend(entry.spent().iter().map(|spent| (*spent, txid)));
        self.entries.insert(txid, entry);
        self.order.insert(number, txid);
        NodeEvent::TransactionAdded { transaction: Arc::new(transaction), time, sequence: self.sequence }
    }

    fn remove(&mut self, txid: Txid) -> NodeEvent {
        self.sequence += 1;
        self.moves += 1;
        if let Some(entry) = self.entries.remove(&txid) {
            self.order.remove(&entry.number);
            for spent in entry.spent() {
                // After a replacement, the replacing entry may be added before the replaced one is removed.
                if self.spenders.get(spent) == Some(&txid) {
                    self.spenders.remove(spent);
                }
            }
        }
        // Blocks are emitted first, so wallets already know a confirmed transaction's block.
        NodeEvent::TransactionRemoved { txid, reason: Removal::Dropped, sequence: self.sequence }
    }
}

#[cfg(test)]
mod tests {
    use bitcoin::absolute::LockTime;
    use bitcoin::hashes::Hash;
    use bitcoin::transaction::Version;
    use bitcoin::{OutPoint, ScriptBuf, Sequence, TxIn, TxOut, Witness};
    use outrigger_node::interest::script_interest;

    use super::*;

    fn spend(previous: Txid, mark: u8) -> Transaction {
        let input = TxIn {
            previous_output: OutPoint { txid: previous, vout: 0 },
            script_sig: ScriptBuf::new(),
            sequence: Sequence::MAX,
            witness: Witness::new(),
        };
        let output = TxOut { value: Amount::from_sat(1), script_pubkey: ScriptBuf::from_bytes(vec![mark]) };
        Transaction { version: Version::TWO, lock_time: LockTime::ZERO, input: vec![input], output: vec![output] }
    }

    #[test]
    fn digest_knows_the_spenders_of_outputs_before_and_after_a_replacement() {
        let (replaced, replacing) = ([1, 2]).map(|mark| spend(Txid::from_byte_array([1; 32]), mark)).into();
        let mut state = MempoolState::default();
        assert!(!state.has_spender_of(&replaced));
        state.add(replaced.compute_txid(), replaced.clone(), 0);
        state.add(replacing.compute_txid(), replacing.clone(), 0);
        state.remove(replaced.compute_txid());
        assert!(state.has_spender_of(&replaced));
        state.remove(replacing.compute_txid());
        assert!(!state.has_spender_of(&replaced) && state.spenders.is_empty());
    }

    #[test]
    fn digest_finds_a_wallets_transactions_and_their_descendants() {
        let first = spend(Txid::from_byte_array([1; 32]), 1);
        let second = spend(first.compute_txid(), 2);
        let third = spend(Txid::from_byte_array([3; 32]), 3);
        let mempool = Mempool::default();
        let mut state = mempool.0.lock();
        for transaction in [&third, &first, &second] {
            state.add(transaction.compute_txid(), transaction.clone(), 0);
        }
        drop(state);
        let script = script_interest(&ScriptBuf::from_bytes(vec![1]));
        assert_eq!(mempool.concerning(&|interest| interest == script), [first.compute_txid(), second.compute_txid()]);
        mempool.0.lock().remove(first.compute_txid());
        assert!(mempool.concerning(&|interest| interest == script).is_empty());
        assert_eq!((mempool.sequence(), mempool.moves(), mempool.ids().len()), (4, 4, 2));
        mempool.count_change();
        assert_eq!((mempool.sequence(), mempool.moves()), (5, 4), "a block came");
    }
}
