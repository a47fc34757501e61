//! Signing: the solver behind `signrawtransactionwithkey`, `signrawtransactionwithwallet` and wallet payments.
//!
//! [`sign_transaction`] follows bitcoind's rules. It leaves an input that verifies as it is. From any other it collects
//! the valid signatures and the scripts, requests missing signatures, and assembles as much as possible. It verifies
//! the result under the standard flags, and reports failures with the messages of these RPCs.
//!
//! The solver runs twice per input: first to learn which signatures could help, then with the new ones. In between it
//! calls the [`KeySource`] once for the signatures of all inputs, and before that, if an input can be spent in several
//! ways, once for the available keys. A signer may thus be in another process. Several threads work on the inputs.
//!
//! Invariants: secrets stay in [`LocalKeys`] (wiped on drop) or in the host; only a successful call changes the
//! transaction; no transaction, script or spent output makes this crate panic.

#![warn(missing_docs)]

mod collect;
mod combine;
mod digest;
mod findings;
mod job;
mod keys;
mod message;
pub mod methods;
mod partial;
mod policy;
mod produce;
mod satisfaction;
mod secp;
mod sighash;
mod signatures;
mod solving;
mod taproot;
mod wif;

#[cfg(test)]
mod tests;

use bitcoin::{Transaction, TxIn, TxOut};

pub use combine::combine_transactions;
pub use digest::{SignatureKind, digest, sign_requests, signs_anything};
pub use findings::SolverFindings;
pub use keys::{KeySource, LocalKeys, WalletKeys, sign_digest, verify_digest};
pub use message::{message_digest, message_signature, message_signer, sign_message};
pub use partial::{PartialInput, PartialOutcome, PartialTransaction, inspect_scripts};
pub use sighash::Sighash;
pub use signatures::{AskedKey, PartialSignatures};
pub use solving::{HashKind, SolvingSet};
pub use wif::{WifError, WifKey};

use collect::collect;
use job::{Job, check_spent, solve};
use outrigger_script::{ScriptError, TxContext};
use outrigger_service::{ErrorKind, ServiceError};
use outrigger_values::RpcError;
use produce::Production;

/// Why an input is incomplete. `Display` yields bitcoind's message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InputError {
    /// The spent output is unknown.
    #[error("Input not found or already spent")]
    NotFound,
    /// The input does not verify.
    #[error("{}", .0.signing_text())]
    Script(ScriptError),
}

/// The greatest total size of the spent outputs' scripts, counted once per input, in bytes. No block comes near it, but
/// a request that names one output repeatedly can.
pub const MAX_SPENT_SCRIPTS: usize = 64 << 20;
/// The greatest total size of new input contents, in bytes: several blocks.
pub const MAX_SIGNED: usize = 32 << 20;
/// The number of inputs that a thread takes at a time. Each takes 10 us or more.
const INPUTS_PER_BATCH: usize = 8;

/// Why the solver signs nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SignError {
    /// The keys are not accessible.
    #[error("{0}")]
    Keys(#[from] ServiceError),
    /// The transaction exceeds [`MAX_SPENT_SCRIPTS`] or [`MAX_SIGNED`].
    #[error("The transaction is too large to sign")]
    TooLarge,
    /// The caller no longer waits for the result.
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

impl From<SignError> for RpcError {
    fn from(error: SignError) -> Self {
        match error {
            SignError::Keys(error) => error.into(),
            other => Self::invalid_parameter(other.to_string()),
        }
    }
}

/// Signs a transaction as far as possible. `spent` are the outputs that it spends, in the order of its inputs. A
/// missing or `None` output is unknown, and its input stays as it is. The solver relies on the amounts.
///
/// Returns for each input why it is incomplete; `None` if it is complete. Fails if the keys fail, if the transaction is
/// too large, and when `wanted`, called every few inputs, returns false: legacy signature hashes cover all inputs, so a
/// transaction with very many takes long. After an error the transaction is unchanged.
pub fn sign_transaction(
    tx: &mut Transaction,
    spent: &[Option<TxOut>],
    known: &SolvingSet,
    keys: &dyn KeySource,
    sighash: Sighash,
    wanted: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Option<InputError>>, SignError> {
    check_spent(spent)?;
    let outcomes = {
        // No signature hash covers scriptSigs or witnesses, so one context serves both runs.
        let context = TxContext::new(tx, spent);
        let begin = |(index, input)| begin(&context, index, input, known, sighash);
        solve((0..).zip(&tx.input).collect(), begin, finish, keys, sighash, wanted)?
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

/// Verifies an input as it is, and collects its signatures and scripts.
fn begin<'a>(
    context: &'a TxContext<'a>,
    index: usize,
    input: &'a TxIn,
    known: &'a SolvingSet,
    sighash: Sighash,
) -> Job<'a> {
    let mut job = Job::new(context, index, input, known);
    let Some(spent) = context.spent_output(index) else {
        job.error = Some(InputError::NotFound);
        return job;
    };
    let Some((error, shown)) = collect(&mut job.observer, input, spent) else { return job };
    job.error = Some(InputError::Script(error));
    let lacks_output = sighash.is_single() && index >= context.tx().output.len();
    (job.script, job.own) = ((!lacks_output).then_some(&*spent.script_pubkey), shown.into_solving());
    job
}

/// The new contents if they differ, and the error of an incomplete input.
fn finish(mut job: Job<'_>) -> (usize, (Option<Production>, Option<InputError>)) {
    let production = job.produce().filter(|production| !production.is_of(job.original));
    let (Some(Production { script_sig, witness }), Some(script)) = (&production, job.script) else {
        return (0, (None, job.error));
    };
    let error = job.observer.verify(script_sig, script, witness).err().map(InputError::Script);
    (production.as_ref().map_or(0, Production::size), (production, error))
}
