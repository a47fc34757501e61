//! Bitcoin script: execution, signature hashes, counts of signature operations.
//!
//! The rules are consensus and Bitcoin Core's relay policy. [`Flags`] enable them individually. A failure is a
//! [`ScriptError`] as in Core. Numbers that are too long or not minimal give the unknown error, as in Core up to 29.
//!
//! A [`TxContext`] holds a transaction and computes the common parts of its signature hashes once. [`verify_input`]
//! verifies an input. [`verify_script`] does so with any [`Checker`], so that a signer can observe which signatures
//! verify. [`eval_script`] executes a single script.
//!
//! Invariants: the crate does not panic for any transaction, script or spent output, and execution does not allocate per
//! opcode. The crate handles no secrets and does no I/O. It does not check rules of blocks or whole transactions.
//!
//! The crate depends on no other crate of the project. The SDK exports it to plugins as the module `script`.
//!
//! # Example
//!
//! An output that anyone may spend with two numbers whose sum is five:
//!
//! ```
//! use bitcoin::opcodes::all::{OP_ADD, OP_NUMEQUAL};
//! use bitcoin::script::Builder;
//! use bitcoin::transaction::Version;
//! use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Witness, absolute::LockTime};
//! use outrigger_script::{Flags, ScriptError, TxContext, verify_input};
//!
//! let sum_to_five = Builder::new().push_opcode(OP_ADD).push_int(5).push_opcode(OP_NUMEQUAL).into_script();
//! let spent = TxOut { value: Amount::from_sat(1_000), script_pubkey: sum_to_five };
//! let spend = |first, second| Transaction {
//!     version: Version::TWO,
//!     lock_time: LockTime::ZERO,
//!     input: vec![TxIn {
//!         previous_output: OutPoint::null(),
//!         script_sig: Builder::new().push_int(first).push_int(second).into_script(),
//!         sequence: Sequence::MAX,
//!         witness: Witness::new(),
//!     }],
//!     output: vec![TxOut { value: Amount::from_sat(900), script_pubkey: ScriptBuf::new() }],
//! };
//!
//! let tx = spend(2, 3);
//! let context = TxContext::new(&tx, vec![Some(spent.clone())]);
//! assert_eq!(verify_input(&context, 0, Flags::STANDARD), Ok(()));
//!
//! let tx = spend(2, 2);
//! let context = TxContext::new(&tx, vec![Some(spent)]);
//! assert_eq!(verify_input(&context, 0, Flags::STANDARD), Err(ScriptError::EvalFalse));
//! ```

#![warn(missing_docs)]

mod checker;
mod crypto;
mod encoding;
mod error;
mod eval;
mod flags;
pub mod limits;
mod number;
pub mod parse;
mod sighash;
mod sigops;
mod stack;
mod verify;
mod witness;

#[cfg(test)]
mod tests;

pub use checker::{Checker, ExecutionData, NoTransaction, SigVersion, TransactionChecker};
pub use encoding::{check_pubkey_encoding, check_signature_encoding};
pub use error::ScriptError;
pub use eval::eval_script;
pub use flags::Flags;
pub use sighash::{SIGHASH_ALL, SIGHASH_ANYONECANPAY, SIGHASH_NONE, SIGHASH_SINGLE, TxContext, annex_hash};
pub use sigops::{
    WITNESS_SCALE_FACTOR, legacy_sigop_count, p2sh_sigop_count, script_sigop_count, transaction_sigop_cost,
    witness_sigop_count,
};
pub use stack::{Element, Stack};
pub use verify::{verify_input, verify_script};
