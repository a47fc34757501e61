//! The judge: the one place where a block is checked, whether it is to be connected or only proposed.
//!
//! [`check_block`] is what a block is by itself, [`check_in_context`] what it must be on its parent, [`connect()`] what
//! it does to the coins. [`judge`] runs all of them on the tip. None of them writes: who connects a block persists the
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
pub use transaction::{InputError, Money, check_inputs, check_transaction, is_final, is_unspendable, sequence_lock};
pub use witness::{fill_coinbase_witness, merkle_root};

use super::NodeError;
use super::decode::NamedBlock;
use super::params::ChainParams;
use super::store::{Reading, Store};

/// A rule that a block or transaction breaks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The reason, as bitcoind words it.
    pub reason: Cow<'static, str>,
    /// More of it; may be empty.
    pub detail: String,
    /// Whether other bytes with the same block hash may well be valid, so that nothing may be remembered of the hash.
    pub mutated: bool,
}

impl Refusal {
    /// A refusal for `reason`.
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { reason: reason.into(), detail: String::new(), mutated: false }
    }

    /// A refusal of bytes which may not be those that the hash commits to.
    pub fn mutated(reason: &'static str) -> Self {
        Self { mutated: true, ..Self::new(reason) }
    }

    /// The same with more to say.
    pub fn with_detail(self, detail: String) -> Self {
        Self { detail, ..self }
    }
}

/// Why no verdict in favour was reached.
#[derive(Debug)]
pub enum JudgeError {
    /// A rule is broken.
    Refused(Refusal),
    /// The node failed.
    Node(NodeError),
}

impl From<Refusal> for JudgeError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<NodeError> for JudgeError {
    fn from(error: NodeError) -> Self {
        Self::Node(error)
    }
}

/// The block that another one builds on.
#[derive(Clone, Copy, Debug)]
pub struct Parent {
    /// Its height.
    pub height: u32,
    /// The median time of it and its ten predecessors, in seconds.
    pub median_time: u32,
}

/// What the judge consults beside the block.
#[derive(Clone, Copy)]
pub struct Court<'a> {
    /// The rules.
    pub params: &'a ChainParams,
    /// The chain's tables.
    pub store: &'a Store,
    /// The state of the chain in which the block's parent is the tip.
    pub txn: &'a Reading<'a>,
    /// The transactions whose scripts are known to be good.
    pub cache: &'a ScriptCache,
    /// The number of threads for the scripts of a large block.
    pub threads: usize,
}

/// Judges a block on the tip in full, except for its proof of work.
///
/// # Errors
/// [`JudgeError::Refused`] with the first rule that the block breaks.
pub fn judge(court: &Court, block: &NamedBlock, parent: &Parent, now: u64) -> Result<Effect, JudgeError> {
    check_header(&block.header, parent, court.params, now)?;
    check_block(block)?;
    check_in_context(block, parent)?;
    connect(court, block, parent, true)
}
