//! Validation: the one place where a block is checked, whether it is to be connected or only proposed.
//!
//! [`check_block`] is what a block is by itself, [`check_in_context`] what it must be on its parent, [`connect()`] what
//! it does to the coins. [`validate_block`] runs all of them on the tip. None of them writes: who connects a block persists the
//! [`Effect`] that comes out, a BIP 23 proposal throws it away.
//!
//! Reasons are worded as bitcoind words them, and found in its order, so that of several faults the same one is told.

mod block;
mod connect;
mod header;
mod scripts;
mod transaction;
mod witness;

use std::borrow::Cow;

pub use block::{check_block, check_in_context};
pub use connect::{Effect, connect};
pub use header::{check_header, check_proof_of_work, median};
pub use scripts::{ScriptCache, describe_input, verify_transaction};
pub use transaction::{InputError, Money, check_inputs, check_transaction, is_final, sequence_lock};
pub use witness::fill_coinbase_witness;

use super::EmbeddedError;
use super::decode::NamedBlock;
use super::params::ChainParams;
use super::store::{Reading, Store};

/// A rule that a block or transaction breaks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValidationError {
    /// The reason, as bitcoind words it.
    pub reason: Cow<'static, str>,
    /// More of it; may be empty.
    pub detail: String,
    /// Whether other bytes with the same block hash may well be valid, so that nothing may be remembered of the hash.
    pub mutated: bool,
}

impl ValidationError {
    /// An error with this `reason`.
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { reason: reason.into(), detail: String::new(), mutated: false }
    }

    /// An error about bytes which may not be those that the hash commits to.
    pub fn mutated(reason: &'static str) -> Self {
        Self { mutated: true, ..Self::new(reason) }
    }

    /// The same with more to say.
    pub fn with_detail(self, detail: String) -> Self {
        Self { detail, ..self }
    }
}

/// Why a block was not connected.
#[derive(Debug)]
pub enum ConnectError {
    Refused(ValidationError),
    Node(EmbeddedError),
}

impl From<ValidationError> for ConnectError {
    fn from(error: ValidationError) -> Self {
        Self::Refused(error)
    }
}

impl From<EmbeddedError> for ConnectError {
    fn from(error: EmbeddedError) -> Self {
        Self::Node(error)
    }
}

/// The block that another one builds on.
#[derive(Clone, Copy, Debug)]
pub struct Parent {
    pub height: u32,
    /// The median time of it and its ten predecessors, in seconds.
    pub median_time: u32,
}

/// What validation needs beside the block.
#[derive(Clone, Copy)]
pub struct ValidationContext<'a> {
    pub params: &'a ChainParams,
    pub store: &'a Store,
    /// The state of the chain in which the block's parent is the tip.
    pub txn: &'a Reading<'a>,
    /// The transactions whose scripts are known to be good.
    pub cache: &'a ScriptCache,
    /// The number of threads for the scripts of a large block.
    pub threads: usize,
}

/// Validates a block on the tip in full, except for its proof of work.
///
/// # Errors
/// [`ConnectError::Refused`] with the first rule that the block breaks.
pub fn validate_block(
    context: &ValidationContext,
    block: &NamedBlock,
    parent: &Parent,
    now: u64,
) -> Result<Effect, ConnectError> {
    check_header(&block.header, parent, context.params, now)?;
    check_block(block)?;
    check_in_context(block, parent)?;
    connect(context, block, parent, true)
}
