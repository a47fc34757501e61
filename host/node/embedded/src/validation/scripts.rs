//! Script verification: the cache of verified transactions, and verification on several threads.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};

use bitcoin::{Transaction, TxOut, Wtxid};
use parking_lot::Mutex;

use outrigger_script::{Flags, ScriptError, TxContext, verify_input};

/// The capacity of the cache, in transactions.
const CACHE_CAPACITY: usize = 100_000;
/// With fewer inputs, starting threads costs more time than it saves.
const PARALLEL_INPUTS: usize = 32;

/// The transactions whose scripts were verified, and under which flags.
///
/// The wtxid commits to everything that scripts depend on: the transaction, its witnesses and, by the txids in its
/// inputs, the outputs it spends. Flags only restrict, so scripts valid under some flags are valid under each subset of
/// them.
#[derive(Default)]
pub struct ScriptCache {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    flags: HashMap<Wtxid, Flags>,
    order: VecDeque<Wtxid>,
}

impl ScriptCache {
    /// Whether all scripts of a transaction are known to be valid under `flags`.
    pub fn contains(&self, wtxid: &Wtxid, flags: Flags) -> bool {
        let known = self.known.lock();
        known.flags.get(wtxid).is_some_and(|verified| verified.contains(flags))
    }

    /// Notes that all scripts of a transaction are valid under `flags`; evicts the oldest entry of a full cache.
    pub fn insert(&self, wtxid: Wtxid, flags: Flags) {
        let mut known = self.known.lock();
        if known.flags.insert(wtxid, flags).is_none() {
            known.order.push_back(wtxid);
        }
        if known.order.len() > CACHE_CAPACITY
            && let Some(oldest) = known.order.pop_front()
        {
            known.flags.remove(&oldest);
        }
    }
}

pub(super) struct Job<'a> {
    pub tx: &'a Transaction,
    pub spent: Vec<TxOut>,
}

/// Verifies all inputs of a transaction. The error is the index of the first input that fails, and why.
pub fn verify_transaction(tx: &Transaction, spent: Vec<TxOut>, flags: Flags) -> Result<(), (usize, ScriptError)> {
    let context = TxContext::new(tx, spent);
    (0..tx.input.len()).try_for_each(|index| verify_input(&context, index, flags).map_err(|error| (index, error)))
}

/// The failed input, as bitcoind's debug message names it.
pub fn describe_input(tx: &Transaction, index: usize) -> String {
    let spending = tx.input.get(index).map(|input| input.previous_output.to_string()).unwrap_or_default();
    format!("input {index} of {} (wtxid {}), spending {spending}", tx.compute_txid(), tx.compute_wtxid())
}

/// Verifies transactions. The error is the first transaction that fails, its first failing input, and why.
pub(super) fn verify_all(jobs: &[Job], flags: Flags, threads: usize) -> Result<(), (usize, usize, ScriptError)> {
    let inputs: usize = jobs.iter().map(|job| job.tx.input.len()).sum();
    let threads = if inputs < PARALLEL_INPUTS { 1 } else { threads.min(jobs.len()) };
    let failure: Mutex<Option<(usize, usize, ScriptError)>> = Mutex::new(None);
    let next = AtomicUsize::new(0);
    let first_failed = AtomicUsize::new(usize::MAX);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { break };
            // Transactions after the first failed one do not change the result.
            if index > first_failed.load(Ordering::Relaxed) {
                break;
            }
            if let Err((input, error)) = verify_transaction(job.tx, job.spent.clone(), flags) {
                first_failed.fetch_min(index, Ordering::Relaxed);
                let mut failure = failure.lock();
                if failure.is_none_or(|(earlier, ..)| index < earlier) {
                    *failure = Some((index, input, error));
                }
            }
        }
    };
    if threads <= 1 {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
    }
    failure.into_inner().map_or(Ok(()), Err)
}
