//! The signatures of several copies of a transaction in one (`combinerawtransaction`).

use bitcoin::{Transaction, TxIn, TxOut};

use super::collect::{Observer, ShownScripts, collect};
use super::produce::Production;
use super::producer::{Met, Producer};
use super::signatures::Signatures;
use super::solving::SolvingSet;
use super::{INPUTS_PER_BATCH, SignError};
use outrigger_memory::parallel::map_while;
use outrigger_script::TxContext;

/// Puts into each input of a transaction what it and the inputs of the same index of the others have: one that verifies in its
/// own transaction as it is; else their signatures and scripts together. `spent` are the outputs that the first one spends; an
/// input that spends none of them stays empty. Of taproot inputs the first one is taken that verifies in the first transaction,
/// since its signature covers all outputs that are spent.
///
/// As in Bitcoin Core, only the index of an input says which ones belong together, and the first script shown is the one that counts.
///
/// # Errors
/// [`SignError::Unwanted`] where `wanted` says so, which is asked every few inputs.
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
        let Some(carried) = collect(&mut observer, input, spent) else {
            return Production { script_sig: input.script_sig.clone(), witness: input.witness.clone() };
        };
        shown.redeem = shown.redeem.or(carried.shown.redeem);
        shown.witness = shown.witness.or(carried.shown.witness);
        signatures.extend(observer.signatures);
    }
    let mut producer = Producer {
        context: first,
        index,
        known: &SolvingSet::default(),
        own: &shown.into_solving(),
        signatures: &mut signatures,
        met: Met::default(),
    };
    producer.produce(&spent.script_pubkey, &TxIn::default())
}
