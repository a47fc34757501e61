//! The signatures of an input: signatures that it has, and signatures that its solver requests.

use std::collections::{BTreeMap, HashMap};

use bitcoin::Script;
use bitcoin::hashes::{Hash, hash160};
use bitcoin::taproot::{LeafVersion, TapLeafHash};

use super::sighash::Sighash;
use outrigger_script::{SigVersion, TxContext};
use outrigger_service::signer::{Scheme, SignRequest};
use outrigger_service::wire::Blob;

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
pub(super) struct MissingSignature {
    /// As in the script: 33 or 65 bytes, 32 for taproot.
    pub(super) public_key: Vec<u8>,
    pub(super) scheme: Scheme,
}

/// Whether signatures of this kind are ECDSA, for a script without witness or of witness version 0.
fn is_ecdsa(scheme: &Scheme) -> bool {
    matches!(scheme, Scheme::Legacy { .. } | Scheme::SegwitV0 { .. })
}

/// The leaf that a signature of this kind is for, if any.
fn leaf_of(scheme: &Scheme) -> Option<TapLeafHash> {
    match scheme {
        Scheme::TaprootLeaf { script, .. } => Some(TapLeafHash::from_script(script, LeafVersion::TapScript)),
        _ => None,
    }
}

impl MissingSignature {
    /// The request to the keys. `None` if a taproot signature would cover an unknown output.
    pub(super) fn request(self, context: &TxContext<'_>, index: usize, sighash: Sighash) -> Option<SignRequest> {
        let is_ecdsa = is_ecdsa(&self.scheme);
        if !is_ecdsa && !context.knows_all_spent() {
            return None;
        }
        Some(SignRequest {
            input: u32::try_from(index).ok()?,
            public_key: Blob(self.public_key),
            scheme: self.scheme,
            sighash: if is_ecdsa { sighash.ecdsa() } else { sighash.taproot() },
            annex: None,
        })
    }

    pub(super) fn asked(&self) -> Option<AskedKey> {
        match self.scheme {
            _ if is_ecdsa(&self.scheme) => Some(AskedKey::Ecdsa(self.public_key.clone())),
            Scheme::TaprootOutputKey => None,
            _ => {
                let leaf = leaf_of(&self.scheme).map(TapLeafHash::to_byte_array);
                Some(AskedKey::Taproot(self.public_key.as_slice().try_into().ok()?, leaf))
            }
        }
    }

    /// The HASH160 of the key of an ECDSA signature.
    pub(super) fn ecdsa_key(&self) -> Option<hash160::Hash> {
        is_ecdsa(&self.scheme).then(|| hash160::Hash::hash(&self.public_key))
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
    /// The Schnorr signatures by x-only key and leaf; `None` for the key path.
    schnorr: HashMap<([u8; 32], Option<TapLeafHash>), Vec<u8>>,
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
            let scheme = match version {
                SigVersion::Base => Scheme::Legacy { script_code },
                _ => Scheme::SegwitV0 { script_code },
            };
            self.wanted.push(MissingSignature { public_key, scheme });
        }
        self.ecdsa.get(public_key).cloned()
    }

    /// The signature of an x-only key for the key path or for a leaf; if missing, one of the kind `scheme` is requested.
    pub(super) fn schnorr(
        &mut self,
        public_key: [u8; 32],
        leaf: Option<TapLeafHash>,
        scheme: impl FnOnce() -> Scheme,
    ) -> Option<Vec<u8>> {
        let found = self.schnorr.get(&(public_key, leaf)).cloned();
        if found.is_none() {
            self.wanted.push(MissingSignature { public_key: public_key.to_vec(), scheme: scheme() });
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
        let leaf = |((key, leaf), signature)| ((key, Some(TapLeafHash::from_byte_array(leaf))), signature);
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
        for ((key, leaf), signature) in self.schnorr {
            match leaf {
                Some(leaf) => drop(partial.leaves.insert((key, leaf.to_byte_array()), signature)),
                None => partial.key_path = signature,
            }
        }
        partial
    }

    /// Takes the requests since the last call.
    pub(super) fn take_wanted(&mut self) -> Vec<MissingSignature> {
        std::mem::take(&mut self.wanted)
    }

    /// Adds the signature of a request and appends its hash type, except type 0 of taproot signatures.
    pub(super) fn add(&mut self, request: SignRequest, mut signature: Vec<u8>) {
        let SignRequest { public_key: Blob(public_key), scheme, sighash, .. } = request;
        signature.extend(Some(sighash).filter(|sighash| *sighash != 0));
        if is_ecdsa(&scheme) {
            self.ecdsa.insert(public_key, signature);
        } else if let Ok(x_only) = public_key.try_into() {
            self.schnorr.insert((x_only, leaf_of(&scheme)), signature);
        }
    }
}
