//! Validation of blocks to connect and of proposals (BIP 23), by the same code.
//!
//! [`check_block`] checks a block by itself, [`check_in_context`] on its parent, [`connect()`] against the coins.
//! [`validate_block`] runs all three on the tip. None of them writes to the store: to connect a block, the caller stores the result.
//!
//! Reasons and their order are bitcoind's, so that a block with several faults gets the same reason.

mod block;
mod connect;
mod header;
mod scripts;
mod transaction;
mod witness;

use std::borrow::Cow;

pub use block::{check_block, check_in_context};
pub use connect::connect;
pub use header::{check_header, check_proof_of_work, median};
pub use scripts::{ScriptCache, describe_input, verify_transaction};
pub use transaction::{Money, check_inputs, check_transaction, is_final, sequence_lock};
pub use witness::fill_coinbase_witness;

use outrigger_script::Flags;
use outrigger_service::chain::Tip;

use super::EmbeddedError;
use super::decode::NamedBlock;
use super::store::{Reading, Store};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValidationError {
    /// bitcoind's reject reason.
    pub reason: Cow<'static, str>,
    /// bitcoind's debug message; may be empty.
    pub detail: String,
    /// Whether other bytes with the same block hash may be valid, so that the hash must not be marked as failed.
    pub mutated: bool,
}

impl ValidationError {
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { reason: reason.into(), detail: String::new(), mutated: false }
    }

    /// An error that other bytes with the same block hash may not have.
    pub fn mutated(reason: &'static str) -> Self {
        Self { mutated: true, ..Self::new(reason) }
    }

    pub fn with_detail(self, detail: String) -> Self {
        Self { detail, ..self }
    }
}

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

#[derive(Clone, Copy)]
pub struct ValidationContext<'a> {
    pub store: &'a Store,
    /// The state of the chain whose tip is the block's parent.
    pub txn: &'a Reading<'a>,
    /// The transactions whose scripts were verified.
    pub cache: &'a ScriptCache,
    /// The number of threads for the scripts of a large block.
    pub threads: usize,
    /// The reject reason for a failed script.
    pub script_reason: &'static str,
}

/// Validates a block on the tip, except for its proof of work. Caches the verified scripts, since a valid block is usually submitted next.
///
/// # Errors
/// The first broken rule.
pub fn validate_block(
    context: &ValidationContext,
    block: &NamedBlock,
    parent: &Tip,
    now: u64,
) -> Result<(), ConnectError> {
    check_header(&block.header, parent, now)?;
    check_block(block)?;
    check_in_context(block, parent)?;
    connect(context, block, parent, true)?;
    let verified = block.transactions().map(|(_, ids)| ids.wtxid).skip(1);
    for wtxid in verified.filter(|wtxid| !context.cache.contains(wtxid, Flags::CONSENSUS)) {
        context.cache.insert(wtxid, Flags::CONSENSUS);
    }
    Ok(())
}
