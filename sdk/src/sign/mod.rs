//! Signing: the solver behind `signrawtransactionwithkey`, `signrawtransactionwithwallet` and payments of a wallet.
//!
//! [`sign_transaction`] goes by bitcoind's rules. An input that verifies already is kept. Of any other it keeps the
//! signatures that verify and the scripts it shows, asks for what is missing, and puts together as much as it can;
//! whatever comes of that is verified under the standard flags, and the reason of a failure is given in the words that
//! these RPCs use.
//!
//! The inputs are solved twice: first to learn which signatures could help, then with those that the keys made. Between
//! the two a [`KeySource`] is asked for all inputs together: once which keys it has, and once for the signatures. This
//! is what a signer in another process needs.
//!
//! Invariants: secrets stay in [`LocalKeys`] (wiped on drop) or in the host; only a successful call changes the
//! transaction; nothing here panics, whatever the transaction, the scripts and the spent outputs hold.

mod collect;
mod job;
mod keys;
mod policy;
mod produce;
mod satisfaction;
mod sighash;
mod signatures;
mod solving;
mod taproot;
mod wif;

#[cfg(test)]
mod tests;

use bitcoin::{Transaction, TxOut};

pub use keys::{KeySource, LocalKeys, WalletKeys, sign_digest};
pub use sighash::{Sighash, SighashNameError};
pub use solving::SolvingSet;
pub use wif::{WifError, WifKey};

use crate::script::{ScriptError, TxContext};
use crate::service::ServiceError;
use job::{Job, sign_wanted};

/// Why an input of the transaction is not complete. `Display` gives bitcoind's sentence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InputError {
    /// The output it spends is not known.
    #[error("Input not found or already spent")]
    NotFound,
    /// It does not verify.
    #[error("{}", .0.signing_text())]
    Script(ScriptError),
}

/// Signs what can be signed. `spent` are the outputs that the inputs spend, in their order; one that is not there is
/// unknown, and its input stays as it came.
///
/// Gives for each input why it is not complete; none for those that are. Whether a signature without the right amount
/// is worth anything is up to the caller: the amounts are taken as they are given.
///
/// # Errors
/// Where the keys cannot be used at all. The transaction is then unchanged.
pub fn sign_transaction(
    tx: &mut Transaction,
    spent: &[Option<TxOut>],
    known: &SolvingSet,
    keys: &dyn KeySource,
    sighash: Sighash,
) -> Result<Vec<Option<InputError>>, ServiceError> {
    let outcomes = {
        // No signature hash covers scriptSigs or witnesses, so one context serves from beginning to end.
        let context = TxContext::new(tx, spent);
        let mut jobs: Vec<Job<'_>> =
            (0..).zip(&tx.input).map(|(index, input)| Job::new(&context, index, input)).collect();
        let wanted = jobs.iter_mut().flat_map(|job| job.wanted(&context, known, sighash)).collect();
        for (wanted, signature) in sign_wanted(&context, wanted, keys, sighash)? {
            if let Some(job) = jobs.get_mut(wanted.index) {
                job.add(&wanted.want, signature, sighash);
            }
        }
        jobs.into_iter().map(|job| job.finish(&context, known, sighash)).collect::<Vec<_>>()
    };
    let mut errors = Vec::with_capacity(outcomes.len());
    for (input, (production, error)) in tx.input.iter_mut().zip(outcomes) {
        if let Some(production) = production {
            input.script_sig = production.script_sig;
            input.witness = production.witness;
        }
        errors.push(error);
    }
    Ok(errors)
}
