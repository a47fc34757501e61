//! Partially signed transactions (BIP 174, with the taproot fields of BIP 371) as Bitcoin Core 29 keeps them.
//!
//! rust-bitcoin's type is not used, since it refuses what bitcoind takes (signatures of unknown hash types, keys that are on no
//! curve in taproot fields), and writes fields in another order. Here what is read is written as bitcoind writes it: known
//! fields in its order, then proprietary and unknown ones byte for byte, each sorted by key.

#![warn(missing_docs)]

mod combine;
mod previous;
mod read;
mod reader;
mod write;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use bitcoin::hashes::hash160;
use bitcoin::{OutPoint, ScriptBuf, Transaction, TxIn, TxOut, Witness};

pub use previous::PreviousTransaction;
pub use reader::DecodeError;

/// The length of an extended public key with its version, in bytes.
pub const XPUB_LEN: usize = 78;

/// A string of bytes.
pub type Bytes = Vec<u8>;
/// Fields that are kept as they came, by their whole keys.
pub type Fields = BTreeMap<Bytes, Bytes>;
/// The key of a proprietary field: identifier and subtype.
pub type Proprietary<'a> = (&'a [u8], u64);
/// The leaves that an x-only key signs for, and where it comes from.
pub type TaprootOrigin = (BTreeSet<[u8; 32]>, Origin);

/// A partially signed transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Psbt {
    /// The transaction without scriptSigs and witnesses.
    pub tx: Transaction,
    /// Extended public keys by their origins.
    pub xpubs: BTreeMap<Origin, BTreeSet<Xpub>>,
    /// Proprietary fields.
    pub proprietary: Fields,
    /// Fields of unknown types.
    pub unknown: Fields,
    /// What is known of each input.
    pub inputs: Vec<Input>,
    /// What is known of each output.
    pub outputs: Vec<Output>,
}

/// Where a key comes from (BIP 32).
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Origin {
    /// The master key's fingerprint.
    pub fingerprint: [u8; 4],
    /// The steps from there; those above 2^31 are hardened.
    pub path: Vec<u32>,
}

impl Ord for Origin {
    /// Shorter paths come first.
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |origin: &Self| (origin.fingerprint, origin.path.len());
        key(self).cmp(&key(other)).then_with(|| self.path.cmp(&other.path))
    }
}

impl PartialOrd for Origin {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An extended public key with its version.
#[derive(Clone, Copy, Debug)]
pub struct Xpub(pub [u8; XPUB_LEN]);

impl Xpub {
    /// The public key and the chain code: the same key if they are the same.
    fn identity(&self) -> (&[u8], &[u8]) {
        let (chain_code, public_key) = self.0.split_at(XPUB_LEN - 33);
        (public_key, chain_code.split_at(13).1)
    }
}

impl Ord for Xpub {
    fn cmp(&self, other: &Self) -> Ordering {
        self.identity().cmp(&other.identity())
    }
}

impl PartialOrd for Xpub {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Xpub {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Xpub {}

/// A control block. Shorter ones come first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControlBlock(pub Bytes);

impl Ord for ControlBlock {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0.len(), &self.0).cmp(&(other.0.len(), &other.0))
    }
}

impl PartialOrd for ControlBlock {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What is known of an input. Scripts and keys that are empty or none are not there.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Input {
    /// The transaction whose output it spends.
    pub non_witness_utxo: Option<PreviousTransaction>,
    /// The output it spends.
    pub witness_utxo: Option<TxOut>,
    /// Public keys and signatures, by the keys' HASH160.
    pub partial_sigs: BTreeMap<hash160::Hash, (Bytes, Bytes)>,
    /// The hash type that signatures are to have.
    pub sighash_type: Option<i32>,
    /// The redeem script.
    pub redeem_script: ScriptBuf,
    /// The witness script.
    pub witness_script: ScriptBuf,
    /// Where public keys come from.
    pub origins: BTreeMap<Bytes, Origin>,
    /// The final scriptSig.
    pub final_script_sig: ScriptBuf,
    /// The final witness.
    pub final_witness: Witness,
    /// Preimages by their hashes, for each of [`PREIMAGES`].
    pub preimages: [Fields; 4],
    /// The signature of the taproot key path.
    pub tap_key_sig: Bytes,
    /// Signatures in taproot leaves, by x-only key and leaf hash.
    pub tap_script_sigs: BTreeMap<([u8; 32], [u8; 32]), Bytes>,
    /// The control blocks of leaves, by script and leaf version.
    pub tap_scripts: BTreeMap<(Bytes, u8), BTreeSet<ControlBlock>>,
    /// Where x-only keys come from.
    pub tap_origins: BTreeMap<[u8; 32], TaprootOrigin>,
    /// The internal key.
    pub tap_internal_key: Option<[u8; 32]>,
    /// The root of the script tree.
    pub tap_merkle_root: Option<[u8; 32]>,
    /// Proprietary fields.
    pub proprietary: Fields,
    /// Fields of unknown types.
    pub unknown: Fields,
}

/// What is known of an output. Scripts and keys that are empty or none are not there.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Output {
    /// The redeem script.
    pub redeem_script: ScriptBuf,
    /// The witness script.
    pub witness_script: ScriptBuf,
    /// Where public keys come from.
    pub origins: BTreeMap<Bytes, Origin>,
    /// The internal key.
    pub tap_internal_key: Option<[u8; 32]>,
    /// The leaves in depth-first order: depth, leaf version, script.
    pub tap_tree: Vec<(u8, u8, Bytes)>,
    /// Where x-only keys come from.
    pub tap_origins: BTreeMap<[u8; 32], TaprootOrigin>,
    /// Proprietary fields.
    pub proprietary: Fields,
    /// Fields of unknown types.
    pub unknown: Fields,
}

/// The types of the preimages' fields, the lengths of their hashes in bytes, and their names.
pub const PREIMAGES: [(u8, usize, &str); 4] =
    [(0x0a, 20, "ripemd160"), (0x0b, 32, "sha256"), (0x0c, 20, "hash160"), (0x0d, 32, "hash256")];

impl Psbt {
    /// A PSBT that knows nothing of its transaction.
    pub fn new(tx: Transaction) -> Self {
        let (inputs, outputs) = (vec![Input::default(); tx.input.len()], vec![Output::default(); tx.output.len()]);
        let (xpubs, proprietary, unknown) = Default::default();
        Self { tx, xpubs, proprietary, unknown, inputs, outputs }
    }

    /// The inputs of the transaction and what is known of each.
    pub fn each_input(&self) -> impl Iterator<Item = (&TxIn, &Input)> {
        self.tx.input.iter().zip(&self.inputs)
    }

    /// The outputs that the inputs spend, as far as they are known.
    pub fn spent(&self) -> Vec<Option<TxOut>> {
        self.each_input().map(|(input, known)| known.spent(input.previous_output).cloned()).collect()
    }
}

impl Input {
    /// The output that it spends: that of the whole transaction, where it is there.
    pub fn spent(&self, outpoint: OutPoint) -> Option<&TxOut> {
        match &self.non_witness_utxo {
            Some(transaction) => transaction.output(outpoint),
            None => self.witness_utxo.as_ref(),
        }
    }

    /// Whether it has a final scriptSig or witness.
    pub fn is_final(&self) -> bool {
        !self.final_script_sig.is_empty() || !self.final_witness.is_empty()
    }
}

/// Identifier and subtype of a proprietary field's key, which was checked when it was read.
pub fn proprietary(key: &[u8]) -> Option<Proprietary<'_>> {
    reader::proprietary(key).ok()
}
