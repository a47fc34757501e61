//! The signatures of an input: signatures that it has, and signatures that its solver requests.

use std::collections::{BTreeMap, HashMap};

use bitcoin::hashes::{Hash, hash160};
use bitcoin::taproot::{LeafVersion, TapLeafHash};
use bitcoin::{Script, ScriptBuf};

use super::sighash::Sighash;
use outrigger_script::{SigVersion, TxContext};
use outrigger_service::signer::{Scheme, SignRequest};
use outrigger_service::wire::Blob;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum TaprootPath {
    /// By the internal key, tweaked with the script tree's root.
    InternalKey { merkle_root: Option<[u8; 32]> },
    /// By the untweaked output key.
    OutputKey,
    /// By the script of this leaf.
    Leaf(TapLeafHash),
}

/// A public key whose signature the solver requested.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AskedKey {
    /// For a script: 33 or 65 bytes.
    Ecdsa(Vec<u8>),
    /// For a taproot output, x-only: as the internal key, or in the leaf with this hash.
    Taproot([u8; 32], Option<[u8; 32]>),
}

/// A missing signature that would help.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum MissingSignature {
    /// For a script without witness, or of witness version 0.
    Ecdsa { public_key: Vec<u8>, script_code: ScriptBuf, version: SigVersion },
    /// For a taproot witness, by an x-only key. `leaf` is the script of the path's leaf.
    Schnorr { public_key: [u8; 32], path: TaprootPath, leaf: Option<ScriptBuf> },
}

impl MissingSignature {
    pub(super) fn public_key(&self) -> &[u8] {
        match self {
            Self::Ecdsa { public_key, .. } => public_key,
            Self::Schnorr { public_key, .. } => public_key,
        }
    }

    /// The request to the keys, and the slot for the signature. `None` if a taproot signature would cover an unknown output.
    pub(super) fn request(
        self,
        context: &TxContext<'_>,
        index: usize,
        sighash: Sighash,
    ) -> Option<(Slot, SignRequest)> {
        let byte = if matches!(self, Self::Ecdsa { .. }) { sighash.ecdsa() } else { sighash.taproot() };
        let (slot, public_key, scheme) = match self {
            Self::Ecdsa { public_key, script_code, version } => {
                let scheme = match version {
                    SigVersion::Base => Scheme::Legacy { script_code },
                    _ => Scheme::SegwitV0 { script_code },
                };
                (Slot::Ecdsa(public_key.clone()), public_key, scheme)
            }
            Self::Schnorr { public_key, path, leaf } => {
                context.knows_all_spent().then_some(())?;
                let scheme = match path {
                    TaprootPath::InternalKey { merkle_root } => Scheme::TaprootKey { merkle_root },
                    TaprootPath::OutputKey => Scheme::TaprootOutputKey,
                    // No supported leaf script executes OP_CODESEPARATOR.
                    TaprootPath::Leaf(_) => Scheme::TaprootLeaf {
                        script: leaf?,
                        version: LeafVersion::TapScript.to_consensus(),
                        code_separator: u32::MAX,
                    },
                };
                (Slot::Schnorr(public_key, path), public_key.to_vec(), scheme)
            }
        };
        let input = u32::try_from(index).ok()?;
        Some((slot, SignRequest { input, public_key: Blob(public_key), scheme, sighash: byte, annex: None }))
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Slot {
    /// The ECDSA signature of this public key.
    Ecdsa(Vec<u8>),
    /// The Schnorr signature of this x-only key.
    Schnorr([u8; 32], TaprootPath),
}

impl Slot {
    /// Whether the signature in this slot suffices for the input.
    pub(super) fn is_key_path(&self) -> bool {
        matches!(self, Self::Schnorr(_, TaprootPath::InternalKey { .. } | TaprootPath::OutputKey))
    }
}

/// The signatures of a PSBT input, each with its hash type.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PartialSignatures {
    /// Public keys and their ECDSA signatures, by the HASH160 of the key.
    pub ecdsa: BTreeMap<hash160::Hash, (Vec<u8>, Vec<u8>)>,
    /// The signature of the taproot key path; empty if missing.
    pub key_path: Vec<u8>,
    /// The signatures of taproot leaves, by x-only key and leaf hash.
    pub leaves: BTreeMap<([u8; 32], [u8; 32]), Vec<u8>>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Signatures {
    /// The ECDSA signatures by public key.
    pub(super) ecdsa: HashMap<Vec<u8>, Vec<u8>>,
    schnorr: HashMap<([u8; 32], TaprootPath), Vec<u8>>,
    /// The signature of the taproot key path that came with the input.
    pub(super) key_path: Option<Vec<u8>>,
    wanted: Vec<MissingSignature>,
}

impl Signatures {
    /// Adds a verified ECDSA signature, unless its key has one.
    pub(super) fn keep_verified(&mut self, public_key: &[u8], signature: &[u8]) {
        self.ecdsa.entry(public_key.to_vec()).or_insert_with(|| signature.to_vec());
    }

    /// The signature of a public key for a script. A missing one is requested, except of uncompressed keys in
    /// witnesses.
    pub(super) fn ecdsa(&mut self, public_key: &[u8], script_code: &Script, version: SigVersion) -> Option<Vec<u8>> {
        let found = self.ecdsa.get(public_key);
        let may_sign = version == SigVersion::Base || public_key.len() == secp256k1::constants::PUBLIC_KEY_SIZE;
        if found.is_none() && may_sign {
            let (public_key, script_code) = (public_key.to_vec(), script_code.to_owned());
            self.wanted.push(MissingSignature::Ecdsa { public_key, script_code, version });
        }
        self.ecdsa.get(public_key).cloned()
    }

    /// The signature of an x-only key for a path, whose `leaf` has this script; if missing, it is requested.
    pub(super) fn schnorr(
        &mut self,
        public_key: [u8; 32],
        path: TaprootPath,
        leaf: Option<&Script>,
    ) -> Option<Vec<u8>> {
        let found = self.schnorr.get(&(public_key, path)).cloned();
        if found.is_none() {
            let leaf = leaf.map(Script::to_owned);
            self.wanted.push(MissingSignature::Schnorr { public_key, path, leaf });
        }
        found
    }

    /// Adds the ECDSA signatures of keys that have none.
    pub(super) fn extend(&mut self, other: Self) {
        for (key, signature) in other.ecdsa {
            self.ecdsa.entry(key).or_insert(signature);
        }
    }

    pub(super) fn of_partial(partial: PartialSignatures) -> Self {
        let leaf = |((key, leaf), signature)| ((key, TaprootPath::Leaf(TapLeafHash::from_byte_array(leaf))), signature);
        Self {
            ecdsa: partial.ecdsa.into_values().collect(),
            schnorr: partial.leaves.into_iter().map(leaf).collect(),
            key_path: Some(partial.key_path).filter(|signature| !signature.is_empty()),
            wanted: Vec::new(),
        }
    }

    pub(super) fn into_partial(self) -> PartialSignatures {
        let mut partial = PartialSignatures { key_path: self.key_path.unwrap_or_default(), ..Default::default() };
        let by_hash = |(key, signature): (Vec<u8>, _)| (hash160::Hash::hash(&key), (key, signature));
        partial.ecdsa = self.ecdsa.into_iter().map(by_hash).collect();
        for ((key, path), signature) in self.schnorr {
            match path {
                TaprootPath::Leaf(leaf) => drop(partial.leaves.insert((key, leaf.to_byte_array()), signature)),
                _ => partial.key_path = signature,
            }
        }
        partial
    }

    /// Takes the requests since the last call.
    pub(super) fn take_wanted(&mut self) -> Vec<MissingSignature> {
        std::mem::take(&mut self.wanted)
    }

    /// Adds a signature and appends its hash type, except type 0 of taproot signatures.
    pub(super) fn add(&mut self, slot: Slot, mut signature: Vec<u8>, sighash: Sighash) {
        match slot {
            Slot::Ecdsa(public_key) => {
                signature.push(sighash.ecdsa());
                self.ecdsa.insert(public_key, signature);
            }
            Slot::Schnorr(public_key, path) => {
                signature.extend(Some(sighash.taproot()).filter(|sighash| *sighash != 0));
                self.schnorr.insert((public_key, path), signature);
            }
        }
    }
}
