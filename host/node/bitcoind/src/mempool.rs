//! A digest of the node's mempool: the ids, and by what each transaction may concern wallets.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use bitcoin::{BlockHash, Transaction, Txid};
use outrigger_node::interest::{interests, outpoint_interest};
use outrigger_node::{NodeEvent, Removal};
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::answers::{EntryAnswer, MempoolAnswer};
use super::blocks::transactions;
use super::error::AskError;
use super::rpc::{INVALID_ADDRESS_OR_KEY, Question, Rpc};
use super::zmq::Event;

/// How many transactions are fetched at a time: they are held until they were told of.
const PART: usize = 500;

/// What is kept of a transaction.
struct Entry {
    interests: Box<[u64]>,
    outputs: u32,
    /// Its place in the order.
    number: u64,
}

#[derive(Default)]
struct State {
    entries: HashMap<Txid, Entry>,
    /// In the order in which they were seen.
    order: BTreeMap<u64, Txid>,
    /// Counts the transactions that came and those that left.
    moves: u64,
    /// Counts these, and all else that changes the selection for the next block: new tips, and fee deltas.
    sequence: u64,
    /// The last reading; none where it was not whole.
    read: Option<Reading>,
}

/// A reading of the node's mempool.
struct Reading {
    /// What the node said of it then; none once the digest has followed what the node told since.
    info: Option<MempoolAnswer>,
    /// Its best block then.
    best: BlockHash,
    /// The number that the node gives to the next change.
    next: u64,
}

/// `getrawmempool` with its sequence.
#[derive(Deserialize)]
struct ContentAnswer {
    txids: Vec<Txid>,
    mempool_sequence: u64,
}

/// The digest.
#[derive(Default)]
pub struct Mempool(Mutex<State>);

impl Mempool {
    /// Reads what has changed, and tells of it as of the time by `clock`, in Unix seconds. The caller lets one thread do so at a
    /// time. `forced`: also where the node's figures are those of the last reading, as they may be by chance.
    ///
    /// # Errors
    /// The node's absence. What was told until then was taken over.
    pub fn sync(
        &self,
        rpc: &Rpc,
        forced: bool,
        clock: &dyn Fn() -> u64,
        catch_up: &dyn Fn(BlockHash),
        emit: &dyn Fn(NodeEvent),
    ) -> Result<(), AskError> {
        let info: MempoolAnswer = rpc.ask("getmempoolinfo", &json!([]))?;
        let best: BlockHash = rpc.ask("getbestblockhash", &json!([]))?;
        if !forced && self.0.lock().is_current(&info, best) {
            return Ok(());
        }
        self.0.lock().read = None;
        let ContentAnswer { txids, mempool_sequence: next } = rpc.ask("getrawmempool", &json!([false, true]))?;
        // Asked now: the node may have got a transaction after its time was set, and that after this reading began.
        let time = clock();
        // What a block took out of the mempool is told after the block.
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
        self.0.lock().read = Some(Reading { info: Some(info), best, next });
        Ok(())
    }

    /// Takes over what the node has told since the last reading, as of `time`, in Unix seconds. As for [`Self::sync`], the caller
    /// lets one thread do so at a time.
    ///
    /// # Errors
    /// The node's absence: all is to be read again.
    pub fn apply(&self, rpc: &Rpc, events: &[Event], time: u64, emit: &dyn Fn(NodeEvent)) -> Result<(), AskError> {
        // Before a whole reading there is nothing that a change could be made to.
        let Some(reading) = self.0.lock().read.take() else { return Ok(()) };
        let (mut new, mut gone) = (Vec::new(), HashSet::<Txid>::new());
        for event in events {
            match *event {
                Event::Added(txid, number) if number >= reading.next => new.push(txid),
                Event::Removed(txid, number) if number >= reading.next => gone.extend([txid]),
                _ => {}
            }
        }
        // What has come and gone, or gone and come back, is as the node says now.
        let gone: Vec<Txid> = gone.into_iter().filter(|txid| self.has(txid)).collect();
        let questions: Vec<Question> = gone.iter().map(|txid| ("getmempoolentry", json!([txid]))).collect();
        for (txid, answer) in gone.into_iter().zip(rpc.batch::<IgnoredAny>(&questions)?) {
            if answer.is_err_and(|error| error.code() == Some(INVALID_ADDRESS_OR_KEY)) {
                let event = self.0.lock().remove(txid);
                emit(event);
            }
        }
        let mut seen = HashSet::new();
        new.retain(|txid| !self.has(txid) && seen.insert(*txid));
        self.fetch(rpc, &new, time, emit)?;
        self.0.lock().read = Some(Reading { info: None, ..reading });
        Ok(())
    }

    /// Takes over a transaction that the node has just taken, as of `time`, in Unix seconds. False where all is to be read: it took the
    /// place of others, builds on what was not seen yet, or is gone again. As for [`Self::sync`], the caller lets one thread do so at
    /// a time.
    ///
    /// # Errors
    /// The node's absence.
    pub fn add_submitted(
        &self,
        rpc: &Rpc,
        transaction: &Transaction,
        time: u64,
        emit: &dyn Fn(NodeEvent),
    ) -> Result<bool, AskError> {
        let txid = transaction.compute_txid();
        {
            let state = self.0.lock();
            if state.entries.contains_key(&txid) {
                return Ok(true);
            }
            if state.read.is_none() || state.has_spender_of(transaction) {
                return Ok(false);
            }
        }
        let entry: EntryAnswer = match rpc.ask("getmempoolentry", &json!([txid])) {
            Err(error) if error.code() == Some(INVALID_ADDRESS_OR_KEY) => return Ok(false),
            entry => entry?,
        };
        let info: MempoolAnswer = rpc.ask("getmempoolinfo", &json!([]))?;
        let mut state = self.0.lock();
        if !entry.depends.iter().all(|parent| state.entries.contains_key(parent)) {
            return Ok(false);
        }
        let event = state.add(txid, transaction.clone(), time);
        // Where something else has changed meanwhile, the figures of the last reading stay, and the next look reads all.
        if state.entries.len() as u64 == info.size {
            state.read.iter_mut().for_each(|read| read.info = Some(info.clone()));
        }
        drop(state);
        emit(event);
        Ok(true)
    }

    /// Adds transactions of the node's mempool, as far as they are still there.
    fn fetch(&self, rpc: &Rpc, txids: &[Txid], time: u64, emit: &dyn Fn(NodeEvent)) -> Result<(), AskError> {
        for part in txids.chunks(PART) {
            for (txid, transaction) in in_order(transactions(rpc, part)?) {
                let event = self.0.lock().add(txid, transaction, time);
                emit(event);
            }
        }
        Ok(())
    }

    /// The ids, in the order in which they were seen.
    pub fn ids(&self) -> Vec<Txid> {
        self.0.lock().order.values().copied().collect()
    }

    /// Whether a transaction is in it.
    pub fn has(&self, txid: &Txid) -> bool {
        self.0.lock().entries.contains_key(txid)
    }

    /// How often it has changed, and its tip.
    pub fn sequence(&self) -> u64 {
        self.0.lock().sequence
    }

    /// How many transactions have come and left.
    pub fn moves(&self) -> u64 {
        self.0.lock().moves
    }

    /// Counts a change that is of no transaction: a new tip, or a fee delta.
    pub fn count_change(&self) {
        self.0.lock().sequence += 1;
    }

    /// The ids of the transactions that have a wanted interest, and of those that spend their outputs, parents first.
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

impl State {
    /// Whether the digest is what the node says of its mempool.
    fn is_current(&self, info: &MempoolAnswer, best: BlockHash) -> bool {
        self.read.as_ref().filter(|read| read.best == best).is_some_and(|read| match &read.info {
            Some(last) => last == info,
            None => self.entries.len() as u64 == info.size,
        })
    }

    /// Whether a transaction spends what this one does.
    fn has_spender_of(&self, transaction: &Transaction) -> bool {
        let inputs = transaction.input.iter();
        let spent: HashSet<u64> = inputs.map(|input| outpoint_interest(&input.previous_output)).collect();
        self.entries.values().any(|entry| entry.interests.iter().any(|interest| spent.contains(interest)))
    }

    fn add(&mut self, txid: Txid, transaction: Transaction, time: u64) -> NodeEvent {
        self.sequence += 1;
        self.moves += 1;
        let outputs = u32::try_from(transaction.output.len()).unwrap_or(u32::MAX);
        let number = self.sequence;
        self.entries.insert(txid, Entry { interests: interests(&transaction, &txid).collect(), outputs, number });
        self.order.insert(number, txid);
        NodeEvent::TransactionAdded { transaction: Arc::new(transaction), time, sequence: self.sequence }
    }

    fn remove(&mut self, txid: Txid) -> NodeEvent {
        self.sequence += 1;
        self.moves += 1;
        if let Some(entry) = self.entries.remove(&txid) {
            self.order.remove(&entry.number);
        }
        // Blocks are told before: a transaction that one of them confirmed is none of the mempool for the wallets any more.
        NodeEvent::TransactionRemoved { txid, reason: Removal::Dropped, sequence: self.sequence }
    }
}

/// The time now, in Unix seconds.
pub fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// The transactions with parents before their children.
fn in_order(transactions: Vec<(Txid, Transaction)>) -> Vec<(Txid, Transaction)> {
    let ids: Vec<Txid> = transactions.iter().map(|(txid, _)| *txid).collect();
    let mut left: HashMap<Txid, Transaction> = transactions.into_iter().collect();
    let mut ordered = Vec::with_capacity(ids.len());
    for txid in ids {
        // Depth first, without recursion: a mempool's chains are bounded, but not the node's word.
        let mut stack = vec![txid];
        while let Some(last) = stack.last().copied() {
            let parent = left.get(&last).and_then(|transaction| {
                let mut ids = transaction.input.iter().map(|input| input.previous_output.txid);
                ids.find(|parent| *parent != last && left.contains_key(parent))
            });
            match parent {
                // No transaction can descend from itself: a longer way than there are transactions is none.
                Some(parent) if stack.len() <= left.len() => stack.push(parent),
                _ => {
                    stack.pop();
                    ordered.extend(left.remove(&last).map(|transaction| (last, transaction)));
                }
            }
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use bitcoin::absolute::LockTime;
    use bitcoin::hashes::Hash;
    use bitcoin::transaction::Version;
    use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, TxIn, TxOut, Witness};
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
    fn digest_finds_what_concerns_a_wallet_and_what_spends_it() {
        let first = spend(Txid::from_byte_array([1; 32]), 1);
        let second = spend(first.compute_txid(), 2);
        let third = spend(Txid::from_byte_array([3; 32]), 3);
        let all = [&second, &third, &first].map(|transaction| (transaction.compute_txid(), transaction.clone()));
        let ordered = in_order(all.to_vec());
        let at = |transaction: &Transaction| ordered.iter().position(|(_, other)| other == transaction);
        assert!(ordered.len() == 3 && at(&first) < at(&second));
        let mempool = Mempool::default();
        let mut state = mempool.0.lock();
        ordered.into_iter().for_each(|(txid, transaction)| drop(state.add(txid, transaction, 0)));
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
