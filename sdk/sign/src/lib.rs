//! Signing: the solver behind `signrawtransactionwithkey`, `signrawtransactionwithwallet` and payments of a wallet.
//!
//! [`sign_transaction`] goes by bitcoind's rules. An input that verifies already is kept. Of any other it keeps the
//! signatures that verify and the scripts it shows, asks for what is missing, and puts together as much as it can;
//! whatever comes of that is verified under the standard flags, and the reason of a failure is given in the words that
//! these RPCs use.
//!
//! The inputs are solved twice: first to learn which signatures could help, then with those that the keys made. Between
//! the two a [`KeySource`] is asked for all inputs together: once for the signatures, and before that, where an input can
//! be spent in several ways, once which keys it has. This is what a signer in another process needs. The inputs are
//! independent, so several threads work on them.
//!
//! Invariants: secrets stay in [`LocalKeys`] (wiped on drop) or in the host; only a successful call changes the
//! transaction; nothing here panics, whatever the transaction, the scripts and the spent outputs hold.

#![warn(missing_docs)]

mod collect;
mod combine;
mod job;
mod keys;
mod message;
pub mod methods;
mod partial;
mod policy;
mod produce;
mod producer;
mod satisfaction;
mod secp;
mod sighash;
mod signatures;
mod solving;
mod taproot;
mod wif;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicUsize, Ordering};

use bitcoin::{Transaction, TxOut};

pub use combine::combine_transactions;
pub use keys::{KeySource, LocalKeys, WalletKeys, sign_digest};
pub use message::{MalformedSignature, message_digest, message_signature, message_signer, sign_message};
pub use partial::{AskedKey, PartialInput, PartialOutcome, PartialTransaction, inspect_scripts};
pub use producer::Met;
pub use sighash::{Sighash, SighashNameError};
pub use signatures::PartialSignatures;
pub use solving::{HashKind, SolvingSet};
pub use wif::{WifError, WifKey};

use job::{Job, Made, sign_wanted};
use outrigger_memory::parallel::map_while;
use outrigger_script::{ScriptError, TxContext};
use outrigger_service::{ErrorKind, ServiceError};
use produce::Production;

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

/// The most bytes that the scripts of the spent outputs may have together, an output counted for each input that spends
/// it. A block holds not nearly as many; a request that names one output again and again can.
pub const MAX_SPENT_SCRIPTS: usize = 64 << 20;
/// The most bytes that signing may put into the inputs of a transaction: several times what a block holds.
pub const MAX_SIGNED: usize = 32 << 20;
/// The inputs that are worth a thread of their own: work on one takes some 10 us or more.
const INPUTS_PER_BATCH: usize = 8;

/// Why nothing was signed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SignError {
    /// The keys cannot be used at all.
    #[error("{0}")]
    Keys(#[from] ServiceError),
    /// What it spends, or what it would become, is beyond [`MAX_SPENT_SCRIPTS`] or [`MAX_SIGNED`].
    #[error("The transaction is too large to sign")]
    TooLarge,
    /// Nobody waits for the signatures any more.
    #[error("The signatures are not wanted any more")]
    Unwanted,
}

impl From<SignError> for ServiceError {
    fn from(error: SignError) -> Self {
        match error {
            SignError::Keys(error) => error,
            SignError::TooLarge => Self::new(ErrorKind::Refused, error.to_string()),
            SignError::Unwanted => Self::new(ErrorKind::Stale, error.to_string()),
        }
    }
}

/// Signs what can be signed. `spent` are the outputs that the inputs spend, in their order; one that is not there is
/// unknown, and its input stays as it came.
///
/// Gives for each input why it is not complete; none for those that are. Whether a signature without the right amount
/// is worth anything is up to the caller: the amounts are taken as they are given.
///
/// # Errors
/// Where the keys cannot be used at all, and [`ErrorKind::Refused`] for a transaction that is too large ([`SignError`]). The
/// transaction is then unchanged.
pub fn sign_transaction(
    tx: &mut Transaction,
    spent: &[Option<TxOut>],
    known: &SolvingSet,
    keys: &dyn KeySource,
    sighash: Sighash,
) -> Result<Vec<Option<InputError>>, ServiceError> {
    Ok(sign_transaction_while(tx, spent, known, keys, sighash, &|| true)?)
}

/// As [`sign_transaction`], as long as `wanted` says so, which is asked every few inputs. Signature hashes of inputs
/// without witness cover all inputs, so that a transaction with very many of them keeps a machine busy for long.
///
/// # Errors
/// As there, and [`SignError::Unwanted`]. The transaction is then unchanged.
pub fn sign_transaction_while(
    tx: &mut Transaction,
    spent: &[Option<TxOut>],
    known: &SolvingSet,
    keys: &dyn KeySource,
    sighash: Sighash,
    wanted: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Option<InputError>>, SignError> {
    if spent.iter().flatten().map(|spent| spent.script_pubkey.len()).sum::<usize>() > MAX_SPENT_SCRIPTS {
        return Err(SignError::TooLarge);
    }
    let outcomes = {
        // No signature hash covers scriptSigs or witnesses, so one context serves from beginning to end.
        let context = TxContext::new(tx, spent);
        let inputs: Vec<_> = (0..).zip(&tx.input).collect();
        let begin = |(index, input)| {
            let mut job = Job::new(&context, index, input);
            let wanted = job.wanted(known, sighash);
            (job, wanted)
        };
        let begun = map_while(inputs, INPUTS_PER_BATCH, wanted, begin).ok_or(SignError::Unwanted)?;
        let (mut jobs, wants): (Vec<_>, Vec<_>) = begun.into_iter().unzip();
        for Made { index, slot, signature } in sign_wanted(wants.into_iter().flatten().collect(), keys)? {
            if let Some(job) = jobs.get_mut(index) {
                job.add(slot, signature, sighash);
            }
        }
        finish(jobs, known, sighash, wanted)?
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

/// What became of each input.
type Outcomes = Vec<(Option<Production>, Option<InputError>)>;

/// Puts the inputs together, and verifies them.
fn finish(
    jobs: Vec<Job<'_>>,
    known: &SolvingSet,
    sighash: Sighash,
    wanted: &(dyn Fn() -> bool + Sync),
) -> Result<Outcomes, SignError> {
    let signed = AtomicUsize::new(0);
    let go_on = || signed.load(Ordering::Relaxed) <= MAX_SIGNED && wanted();
    let outcomes = map_while(jobs, INPUTS_PER_BATCH, &go_on, |job| {
        let outcome = job.finish(known, sighash);
        signed.fetch_add(outcome.0.as_ref().map_or(0, Production::size), Ordering::Relaxed);
        outcome
    });
    if signed.into_inner() > MAX_SIGNED {
        return Err(SignError::TooLarge);
    }
    outcomes.ok_or(SignError::Unwanted)
}
