//! A digest of the node's mempool: the ids, and by what each transaction may concern wallets.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bitcoin::consensus::deserialize;
use bitcoin::{Transaction, Txid};
use outrigger_node::interest::{interests, outpoint_interest};
use outrigger_node::{NodeEvent, Removal};
use parking_lot::Mutex;
use serde_json::json;

use super::answers::{Hex, MempoolAnswer};
use super::error::AskError;
use super::rpc::{Question, Rpc};

/// How often a mempool that changes while it is read is read again.
const READINGS: usize = 3;

/// What is kept of a transaction.
struct Entry {
    interests: Box<[u64]>,
    outputs: u32,
}

#[derive(Default)]
struct State {
    entries: HashMap<Txid, Entry>,
    /// In the order in which they were seen.
    order: Vec<Txid>,
    /// Counts the changes.
    sequence: u64,
    /// What the node said of its mempool when it was last read.
    read: Option<MempoolAnswer>,
}

/// The digest.
#[derive(Default)]
pub struct Mempool(Mutex<State>);

impl Mempool {
    /// Reads what has changed, and gives the events that tell of it, as of `time` in Unix seconds. The caller lets one thread do so
    /// at a time.
    ///
    /// # Errors
    /// The node's absence.
    pub fn sync(&self, rpc: &Rpc, time: u64) -> Result<Vec<NodeEvent>, AskError> {
        let mut events = Vec::new();
        for _ in 0..READINGS {
            let info: MempoolAnswer = rpc.ask("getmempoolinfo", &json!([]))?;
            if self.0.lock().read.as_ref() == Some(&info) {
                break;
            }
            events.extend(self.read(rpc, time)?);
            self.0.lock().read = Some(info);
        }
        Ok(events)
    }

    fn read(&self, rpc: &Rpc, time: u64) -> Result<Vec<NodeEvent>, AskError> {
        let txids: Vec<Txid> = rpc.ask("getrawmempool", &json!([]))?;
        let present: HashSet<Txid> = txids.iter().copied().collect();
        let new: Vec<Txid> = {
            let state = self.0.lock();
            txids.into_iter().filter(|txid| !state.entries.contains_key(txid)).collect()
        };
        let fetched = fetch(rpc, &new)?;
        let mut state = self.0.lock();
        let gone: Vec<Txid> = state.entries.keys().filter(|txid| !present.contains(*txid)).copied().collect();
        let mut events: Vec<NodeEvent> = gone.into_iter().map(|txid| state.remove(txid)).collect();
        events.extend(in_order(fetched).into_iter().map(|(txid, transaction)| state.add(txid, transaction, time)));
        Ok(events)
    }

    /// The ids, in the order in which they were seen.
    pub fn ids(&self) -> Vec<Txid> {
        self.0.lock().order.clone()
    }

    /// Whether a transaction is in it.
    pub fn has(&self, txid: &Txid) -> bool {
        self.0.lock().entries.contains_key(txid)
    }

    /// How often it has changed.
    pub fn sequence(&self) -> u64 {
        self.0.lock().sequence
    }

    /// The ids of the transactions that have a wanted interest, and of those that spend their outputs, parents first.
    pub fn concerning(&self, wanted: &dyn Fn(u64) -> bool) -> Vec<Txid> {
        let state = self.0.lock();
        let (mut found, mut outputs) = (Vec::new(), HashSet::new());
        for txid in &state.order {
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
    fn add(&mut self, txid: Txid, transaction: Transaction, time: u64) -> NodeEvent {
        self.sequence += 1;
        let outputs = u32::try_from(transaction.output.len()).unwrap_or(u32::MAX);
        self.entries.insert(txid, Entry { interests: interests(&transaction, &txid).collect(), outputs });
        self.order.push(txid);
        NodeEvent::TransactionAdded { transaction: Arc::new(transaction), time, sequence: self.sequence }
    }

    fn remove(&mut self, txid: Txid) -> NodeEvent {
        self.sequence += 1;
        self.entries.remove(&txid);
        self.order.retain(|other| *other != txid);
        // Blocks are told before: a transaction that one of them confirmed is none of the mempool for the wallets any more.
        NodeEvent::TransactionRemoved { txid, reason: Removal::Dropped, sequence: self.sequence }
    }
}

/// The time now, in Unix seconds.
pub fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// These transactions of the mempool, as far as they are still there.
///
/// # Errors
/// The node's absence.
pub fn fetch(rpc: &Rpc, txids: &[Txid]) -> Result<Vec<(Txid, Transaction)>, AskError> {
    let questions: Vec<Question> = txids.iter().map(|txid| ("getrawtransaction", json!([txid]))).collect();
    let answers = rpc.batch::<Hex>(&questions)?;
    let read = |(txid, answer): (&Txid, Result<Hex, AskError>)| Some((*txid, deserialize(&answer.ok()?.0).ok()?));
    Ok(txids.iter().zip(answers).filter_map(read).collect())
}

/// The transactions with parents before their children.
fn in_order(transactions: Vec<(Txid, Transaction)>) -> Vec<(Txid, Transaction)> {
    let mut left: HashMap<Txid, Transaction> = transactions.iter().cloned().collect();
    let mut ordered = Vec::with_capacity(transactions.len());
    for (txid, _) in &transactions {
        // Depth first, without recursion: a mempool's chains are bounded, but not the node's word.
        let mut stack = vec![*txid];
        while let Some(last) = stack.last().copied() {
            let parents = left.get(&last).map(|transaction| {
                let ids = transaction.input.iter().map(|input| input.previous_output.txid);
                ids.filter(|parent| left.contains_key(parent) && !stack.contains(parent)).collect::<Vec<_>>()
            });
            match parents {
                Some(parents) if !parents.is_empty() => stack.extend(parents),
                _ => {
                    stack.pop();
                    if let Some(transaction) = left.remove(&last) {
                        ordered.push((last, transaction));
                    }
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
        assert_eq!((mempool.sequence(), mempool.ids().len()), (4, 2));
    }
}
