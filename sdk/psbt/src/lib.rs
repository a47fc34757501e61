//! Partially signed transactions (BIP 174, version 2 of BIP 370, the fields of BIP 371 and BIP 373) as in Bitcoin Core.
//! `outrigger_standard::release` has the differences between its releases.
//!
//! rust-bitcoin's type refuses PSBTs that bitcoind accepts (signatures with undefined hash types, taproot keys off the
//! curve), and writes fields in another order. This crate writes fields as bitcoind does: known ones in its order, then
//! proprietary and unknown ones unchanged, sorted by key.

#![warn(missing_docs)]

mod combine;
mod fields;
mod previous;
mod read;
mod reader;
#[cfg(test)]
mod tests;
mod version;
mod write;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use bitcoin::hashes::hash160;
use bitcoin::{OutPoint, ScriptBuf, Transaction, TxIn, TxOut, Witness};

pub use previous::PreviousTransaction;
pub use reader::DecodeError;
pub use version::VersionTwo;

/// The length of an extended public key with its version, in bytes.
pub const XPUB_LEN: usize = 78;

/// A byte string.
pub type Bytes = Vec<u8>;
/// Uninterpreted fields by their full keys.
pub type Fields = BTreeMap<Bytes, Bytes>;
/// The key of a proprietary field: identifier and subtype.
pub type Proprietary<'a> = (&'a [u8], u64);
/// The hashes of the taproot leaves that contain an x-only key, and the key's origin.
pub type TaprootOrigin = (BTreeSet<[u8; 32]>, Origin);
/// A compressed public key of MuSig2.
pub type MuSig2Key = [u8; 33];
/// The key data of a pubnonce or partial signature (BIP 373): aggregate key, leaf hash (`None` for the key path), participant key.
pub type MuSig2Signer = (MuSig2Key, Option<[u8; 32]>, MuSig2Key);

/// A partially signed transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Psbt {
    /// The transaction without scriptSigs and witnesses. In version 2 the reader builds it from the maps. Its locktime is
    /// [`Psbt::lock_time`], or 0 if there is none.
    pub tx: Transaction,
    /// The global fields of version 2; `None` in version 0.
    pub v2: Option<VersionTwo>,
    /// Extended public keys by origin.
    pub xpubs: BTreeMap<Origin, BTreeSet<Xpub>>,
    /// Proprietary fields.
    pub proprietary: Fields,
    /// Fields of unknown types.
    pub unknown: Fields,
    /// The fields of each input.
    pub inputs: Vec<Input>,
    /// The fields of each output.
    pub outputs: Vec<Output>,
}

/// The origin of a key (BIP 32).
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Origin {
    /// The fingerprint of the master key.
    pub fingerprint: [u8; 4],
    /// The derivation steps from the master key. Steps from 2^31 on are hardened.
    pub path: Vec<u32>,
}

impl Ord for Origin {
    /// Orders by fingerprint, then shorter paths first, as bitcoind does.
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
    /// Public key and chain code, which identify the key.
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

/// A control block. Shorter ones come first, as in bitcoind.
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

/// The fields of an input. Empty and `None` mean missing.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Input {
    /// The transaction whose output the input spends.
    pub non_witness_utxo: Option<PreviousTransaction>,
    /// The output that the input spends.
    pub witness_utxo: Option<TxOut>,
    /// The public keys and signatures, by HASH160 of the key.
    pub partial_sigs: BTreeMap<hash160::Hash, (Bytes, Bytes)>,
    /// The hash type for signatures.
    pub sighash_type: Option<i32>,
    /// The redeem script.
    pub redeem_script: ScriptBuf,
    /// The witness script.
    pub witness_script: ScriptBuf,
    /// The origins of public keys.
    pub origins: BTreeMap<Bytes, Origin>,
    /// The final scriptSig.
    pub final_script_sig: ScriptBuf,
    /// The final witness.
    pub final_witness: Witness,
    /// The preimages by hash, for each of [`PREIMAGES`].
    pub preimages: [Fields; 4],
    /// The signature of the taproot key path.
    pub tap_key_sig: Bytes,
    /// The signatures of taproot leaves, by x-only key and leaf hash.
    pub tap_script_sigs: BTreeMap<([u8; 32], [u8; 32]), Bytes>,
    /// The control blocks of leaves, by script and leaf version.
    pub tap_scripts: BTreeMap<(Bytes, u8), BTreeSet<ControlBlock>>,
    /// The origins of x-only keys.
    pub tap_origins: BTreeMap<[u8; 32], TaprootOrigin>,
    /// The taproot internal key.
    pub tap_internal_key: Option<[u8; 32]>,
    /// The Merkle root of the script tree.
    pub tap_merkle_root: Option<[u8; 32]>,
    /// The MuSig2 participant public keys by aggregate key, in the order of aggregation.
    pub musig2_participants: BTreeMap<MuSig2Key, Vec<MuSig2Key>>,
    /// The MuSig2 public nonces.
    pub musig2_nonces: BTreeMap<MuSig2Signer, [u8; 66]>,
    /// The MuSig2 partial signatures.
    pub musig2_sigs: BTreeMap<MuSig2Signer, [u8; 32]>,
    /// In version 2, whether the input map has a sequence. Without it the sequence is 0xffffffff.
    pub has_sequence: bool,
    /// The required time-based locktime (version 2).
    pub time_lock: Option<u32>,
    /// The required height-based locktime (version 2).
    pub height_lock: Option<u32>,
    /// Proprietary fields.
    pub proprietary: Fields,
    /// Fields of unknown types.
    pub unknown: Fields,
}

/// The fields of an output. Empty and `None` mean missing.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Output {
    /// The redeem script.
    pub redeem_script: ScriptBuf,
    /// The witness script.
    pub witness_script: ScriptBuf,
    /// The origins of public keys.
    pub origins: BTreeMap<Bytes, Origin>,
    /// The taproot internal key.
    pub tap_internal_key: Option<[u8; 32]>,
    /// The leaves depth first: depth, leaf version, script.
    pub tap_tree: Vec<(u8, u8, Bytes)>,
    /// The origins of x-only keys.
    pub tap_origins: BTreeMap<[u8; 32], TaprootOrigin>,
    /// The MuSig2 participant public keys by aggregate key, in the order of aggregation.
    pub musig2_participants: BTreeMap<MuSig2Key, Vec<MuSig2Key>>,
    /// Proprietary fields.
    pub proprietary: Fields,
    /// Fields of unknown types.
    pub unknown: Fields,
}

/// The field types of the preimages of RIPEMD160, SHA256, HASH160 and HASH256.
pub const PREIMAGES: [u8; 4] = [0x0a, 0x0b, 0x0c, 0x0d];

impl Psbt {
    /// A PSBT of version 0 of a transaction, without any fields.
    pub fn new(tx: Transaction) -> Self {
        let (inputs, outputs) = (vec![Input::default(); tx.input.len()], vec![Output::default(); tx.output.len()]);
        let (xpubs, proprietary, unknown) = Default::default();
        Self { tx, v2: None, xpubs, proprietary, unknown, inputs, outputs }
    }

    /// The inputs of the transaction with their fields.
    pub fn each_input(&self) -> impl Iterator<Item = (&TxIn, &Input)> {
        self.tx.input.iter().zip(&self.inputs)
    }

    /// The outputs that the inputs spend; `None` if unknown.
    pub fn spent(&self) -> Vec<Option<TxOut>> {
        self.each_input().map(|(input, known)| known.spent(input.previous_output).cloned()).collect()
    }
}

impl Input {
    /// The output that the input spends: from the previous transaction if present, else `witness_utxo`.
    pub fn spent(&self, outpoint: OutPoint) -> Option<&TxOut> {
        match &self.non_witness_utxo {
            Some(transaction) => transaction.output(outpoint),
            None => self.witness_utxo.as_ref(),
        }
    }

    /// Whether the input has a final scriptSig or witness.
    pub fn is_final(&self) -> bool {
        !self.final_script_sig.is_empty() || !self.final_witness.is_empty()
    }
}

/// The identifier and subtype of a proprietary field's key. Parsing has checked it.
pub fn proprietary(key: &[u8]) -> Option<Proprietary<'_>> {
    reader::proprietary(key).ok()
}
