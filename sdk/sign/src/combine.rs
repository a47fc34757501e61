//! Combines the signatures of several copies of a transaction (`combinerawtransaction`).

use bitcoin::{Transaction, TxIn, TxOut};

use super::collect::{Observer, ShownScripts, collect};
use super::job::Job;
use super::produce::Production;
use super::signatures::Signatures;
use super::solving::SolvingSet;
use super::{INPUTS_PER_BATCH, SignError};
use outrigger_memory::parallel::map_while;
use outrigger_script::TxContext;

/// Combines each input of `first` with the inputs of the same index in `others`. An input that verifies
/// in its own transaction is used unchanged. Otherwise the signatures and scripts of all are merged. `spent` are the outputs
/// that `first` spends; an input with an unknown output becomes empty. A taproot input must verify in `first`, since
/// its signature covers all spent outputs.
///
/// As in Bitcoin Core, inputs match by index alone, and the first script found counts. Fails with
/// [`SignError::Unwanted`] when `wanted`, called every few inputs, returns false.
pub fn combine_transactions(
    first: &Transaction,
    others: &[Transaction],
    spent: &[Option<TxOut>],
    wanted: &(dyn Fn() -> bool + Sync),
) -> Result<Transaction, SignError> {
    let context = TxContext::new(first, spent);
    let others: Vec<_> = others.iter().map(|other| TxContext::new(other, spent)).collect();
    let combine = |index| combine_input(&context, &others, index);
    let indexes = (0..first.input.len()).collect();
    let combined = map_while(indexes, INPUTS_PER_BATCH, wanted, combine).ok_or(SignError::Unwanted)?;
    let mut transaction = first.clone();
    for (input, production) in transaction.input.iter_mut().zip(combined) {
        (input.script_sig, input.witness) = (production.script_sig, production.witness);
    }
    Ok(transaction)
}

fn combine_input(first: &TxContext<'_>, others: &[TxContext<'_>], index: usize) -> Production {
    let (mut signatures, mut shown) = (Signatures::default(), ShownScripts::default());
    let Some(spent) = first.spent_output(index) else { return Production::default() };
    for context in std::iter::once(first).chain(others) {
        let Some(input) = context.tx().input.get(index) else { continue };
        let mut observer = Observer::new(if spent.script_pubkey.is_p2tr() { first } else { context }, index);
        let Some((_, carried)) = collect(&mut observer, input, spent) else {
            return Production { script_sig: input.script_sig.clone(), witness: input.witness.clone() };
        };
        shown.redeem = shown.redeem.or(carried.redeem);
        shown.witness = shown.witness.or(carried.witness);
        signatures.extend(observer.signatures);
    }
    let (original, nothing) = (TxIn::default(), SolvingSet::default());
    let mut job = Job::new(first, index, &original, &nothing);
    (job.script, job.own) = (Some(&*spent.script_pubkey), shown.into_solving());
    job.observer.signatures = signatures;
    job.produce().unwrap_or_default()
}
