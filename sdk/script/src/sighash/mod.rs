//! Signature hashes.
//!
//! A [`TxContext`] holds a transaction and the outputs that it spends. It computes parts common to all inputs once, at
//! first use. It is `Sync`, so threads may verify inputs of one transaction in parallel.
//!
//! Invariant: a hash depends only on the transaction, the spent outputs and the arguments.

mod legacy;
mod segwit;
mod taproot;

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

use bitcoin::consensus::Encodable;
use bitcoin::hashes::{Hash, sha256};
use bitcoin::io::Write;
use bitcoin::{Transaction, TxIn, TxOut};

pub use taproot::annex_hash;
pub(super) use taproot::{tap_leaf_hash, tap_merkle_root};

/// Signature hash type: all outputs.
pub const SIGHASH_ALL: u32 = 1;
/// Signature hash type: no outputs.
pub const SIGHASH_NONE: u32 = 2;
/// Signature hash type: the output with the input's index.
pub const SIGHASH_SINGLE: u32 = 3;
/// Signature hash type bit: no other inputs.
pub const SIGHASH_ANYONECANPAY: u32 = 0x80;
/// The bits of an ECDSA signature hash type that select the outputs.
const OUTPUT_MASK: u32 = 0x1f;

/// Why a signature hash cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SighashError {
    /// The transaction has no such input.
    #[error("input {index} of a transaction with {inputs} inputs")]
    InputIndex {
        /// The input's index.
        index: usize,
        /// The number of inputs.
        inputs: usize,
    },
    /// The hash type is invalid for taproot.
    #[error("taproot signature hash type {0:#04x}")]
    HashType(u8),
    /// A taproot signature of type SINGLE has no matching output.
    #[error("no output {index} for signature hash type SINGLE")]
    NoMatchingOutput {
        /// The input's index.
        index: usize,
    },
    /// A spent output is unknown. Taproot signatures commit to all of them.
    #[error("the output spent by input {index} is not known")]
    MissingSpentOutput {
        /// The input's index.
        index: usize,
    },
}

/// The outputs that a transaction spends, in the order of its inputs.
#[derive(Clone, Debug)]
pub enum SpentOutputs<'a> {
    /// All outputs are known.
    All(Cow<'a, [TxOut]>),
    /// Some outputs are unknown.
    Some(Cow<'a, [Option<TxOut>]>),
}

impl SpentOutputs<'_> {
    /// The output that an input spends; `None` if unknown.
    pub fn get(&self, input: usize) -> Option<&TxOut> {
        match self {
            SpentOutputs::All(outputs) => outputs.get(input),
            SpentOutputs::Some(outputs) => outputs.get(input).and_then(Option::as_ref),
        }
    }
}

impl From<Vec<TxOut>> for SpentOutputs<'_> {
    fn from(outputs: Vec<TxOut>) -> Self {
        SpentOutputs::All(Cow::Owned(outputs))
    }
}

impl<'a> From<&'a [TxOut]> for SpentOutputs<'a> {
    fn from(outputs: &'a [TxOut]) -> Self {
        SpentOutputs::All(Cow::Borrowed(outputs))
    }
}

impl From<Vec<Option<TxOut>>> for SpentOutputs<'_> {
    fn from(outputs: Vec<Option<TxOut>>) -> Self {
        SpentOutputs::Some(Cow::Owned(outputs))
    }
}

impl<'a> From<&'a [Option<TxOut>]> for SpentOutputs<'a> {
    fn from(outputs: &'a [Option<TxOut>]) -> Self {
        SpentOutputs::Some(Cow::Borrowed(outputs))
    }
}

/// A transaction, its spent outputs, and the cached common parts of its signature hashes.
pub struct TxContext<'a> {
    tx: &'a Transaction,
    spent: SpentOutputs<'a>,
    with_sequences: OnceLock<legacy::Skeleton>,
    without_sequences: OnceLock<legacy::Skeleton>,
    common: OnceLock<CommonHashes>,
    segwit: OnceLock<segwit::SegwitHashes>,
    taproot: OnceLock<Result<taproot::SpentHashes, SighashError>>,
}

impl<'a> TxContext<'a> {
    /// The context of a transaction and its spent outputs, in the order of its inputs. Computes no hash yet.
    ///
    /// An output that is `None` or beyond the end of the list is unknown. Its input and all taproot signatures of the
    /// transaction then cannot be verified.
    pub fn new(tx: &'a Transaction, spent: impl Into<SpentOutputs<'a>>) -> TxContext<'a> {
        TxContext {
            tx,
            spent: spent.into(),
            with_sequences: OnceLock::new(),
            without_sequences: OnceLock::new(),
            common: OnceLock::new(),
            segwit: OnceLock::new(),
            taproot: OnceLock::new(),
        }
    }

    /// The transaction.
    pub const fn tx(&self) -> &'a Transaction {
        self.tx
    }

    /// The output that an input spends; `None` if unknown.
    pub fn spent_output(&self, input: usize) -> Option<&TxOut> {
        self.spent.get(input)
    }

    fn input(&self, index: usize) -> Result<&'a TxIn, SighashError> {
        let inputs = &self.tx.input;
        inputs.get(index).ok_or(SighashError::InputIndex { index, inputs: inputs.len() })
    }

    fn common(&self) -> &CommonHashes {
        self.common.get_or_init(|| CommonHashes::new(self.tx))
    }
}

impl fmt::Debug for TxContext<'_> {
    /// Formats the context without the cached hashes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TxContext").field("tx", self.tx).field("spent", &self.spent).finish_non_exhaustive()
    }
}

/// SHA-256 over all outpoints, sequences and outputs (BIP341). BIP143 uses the double hash.
struct CommonHashes {
    outpoints: sha256::Hash,
    sequences: sha256::Hash,
    outputs: sha256::Hash,
}

impl CommonHashes {
    fn new(tx: &Transaction) -> CommonHashes {
        CommonHashes {
            outpoints: sha256_of(|engine| tx.input.iter().for_each(|input| encode(engine, &input.previous_output))),
            sequences: sha256_of(|engine| tx.input.iter().for_each(|input| encode(engine, &input.sequence))),
            outputs: sha256_of(|engine| tx.output.iter().for_each(|output| encode(engine, output))),
        }
    }
}

fn sha256_of(write: impl FnOnce(&mut sha256::HashEngine)) -> sha256::Hash {
    let mut engine = sha256::Hash::engine();
    write(&mut engine);
    sha256::Hash::from_engine(engine)
}

fn encode(writer: &mut impl Write, item: &(impl Encodable + ?Sized)) {
    // Writing to a hash engine or a vector cannot fail.
    let _ = item.consensus_encode(writer);
}
