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
/// How many inputs a thread takes at a time.
const BATCH: usize = 8;

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

/// Verifies all inputs of a transaction. The error is the index of the first input that fails, and why.
pub fn verify_transaction(
    tx: &Transaction,
    spent: Vec<Option<TxOut>>,
    flags: Flags,
) -> Result<(), (usize, ScriptError)> {
    let context = TxContext::new(tx, spent);
    (0..tx.input.len()).try_for_each(|index| verify_input(&context, index, flags).map_err(|error| (index, error)))
}

/// The failed input, as bitcoind's debug message names it.
pub fn describe_input(tx: &Transaction, index: usize) -> String {
    let spending = tx.input.get(index).map(|input| input.previous_output.to_string()).unwrap_or_default();
    format!("input {index} of {} (wtxid {}), spending {spending}", tx.compute_txid(), tx.compute_wtxid())
}

/// Verifies the inputs of all transactions. The error is the first transaction that fails, its first failing input, and why.
pub(super) fn verify_all(
    transactions: &[TxContext<'_>],
    flags: Flags,
    threads: usize,
) -> Result<(), (usize, usize, ScriptError)> {
    let of = |(place, context): (usize, &TxContext<'_>)| (0..context.tx().input.len()).map(move |input| (place, input));
    let inputs: Vec<(usize, usize)> = transactions.iter().enumerate().flat_map(of).collect();
    let failure: Mutex<Option<(usize, ScriptError)>> = Mutex::new(None);
    let next = AtomicUsize::new(0);
    let first_failed = AtomicUsize::new(usize::MAX);
    let work = || {
        loop {
            let from = next.fetch_add(BATCH, Ordering::Relaxed);
            // Inputs after the first failed one do not change the result.
            if from >= inputs.len() || from > first_failed.load(Ordering::Relaxed) {
                break;
            }
            for (at, (place, input)) in inputs.iter().enumerate().skip(from).take(BATCH) {
                let Some(context) = transactions.get(*place) else { break };
                if let Err(error) = verify_input(context, *input, flags) {
                    first_failed.fetch_min(at, Ordering::Relaxed);
                    let mut failure = failure.lock();
                    if failure.is_none_or(|(earlier, _)| at < earlier) {
                        *failure = Some((at, error));
                    }
                    break;
                }
            }
        }
    };
    if inputs.len() < PARALLEL_INPUTS || threads <= 1 {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
    }
    let failed =
        failure.into_inner().and_then(|(at, error)| inputs.get(at).map(|(place, input)| (*place, *input, error)));
    failed.map_or(Ok(()), Err)
}
