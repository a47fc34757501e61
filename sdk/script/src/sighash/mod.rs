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
use bitcoin::{Transaction, TxOut};

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

/// A transaction, its spent outputs, and the cached common parts of its signature hashes.
pub struct TxContext<'a> {
    tx: &'a Transaction,
    spent: Cow<'a, [Option<TxOut>]>,
    with_sequences: OnceLock<legacy::Skeleton>,
    without_sequences: OnceLock<legacy::Skeleton>,
    common: OnceLock<CommonHashes>,
    segwit: OnceLock<segwit::SegwitHashes>,
    taproot: OnceLock<Option<taproot::SpentHashes>>,
}

impl<'a> TxContext<'a> {
    /// The context of a transaction and its spent outputs, in the order of its inputs. Computes no hash yet.
    ///
    /// An output that is `None` or beyond the end of the list is unknown. Its input and all taproot signatures of the
    /// transaction then cannot be verified.
    pub fn new(tx: &'a Transaction, spent: impl Into<Cow<'a, [Option<TxOut>]>>) -> TxContext<'a> {
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
        self.spent.get(input)?.as_ref()
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
