//! Solving data: the scripts of script hashes, the public keys of key hashes, taproot data, and preimages.

use std::collections::HashMap;

use bitcoin::hashes::{Hash, hash160};
use bitcoin::key::TapTweak;
use bitcoin::{Script, ScriptBuf, XOnlyPublicKey};

use super::secp::SECP;
use outrigger_service::wallet::{SolvingData, TaprootData};

/// The length of an x-only public key, in bytes.
const X_LEN: usize = 32;
/// The length of a P2TR script before its program, in bytes.
const P2TR_PREFIX_LEN: usize = 2;

/// The solving data for a transaction. Data that came with one output serves all inputs.
#[derive(Clone, Debug, Default)]
pub struct SolvingSet {
    scripts: HashMap<hash160::Hash, ScriptBuf>,
    public_keys: HashMap<hash160::Hash, Vec<u8>>,
    taproot: HashMap<[u8; X_LEN], TaprootData>,
    preimages: HashMap<(HashKind, Vec<u8>), Vec<u8>>,
}

/// The hash functions of miniscript preimages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HashKind {
    /// RIPEMD-160.
    Ripemd160,
    /// SHA-256.
    Sha256,
    /// RIPEMD-160 of SHA-256.
    Hash160,
    /// SHA-256, twice.
    Hash256,
}

impl SolvingSet {
    /// Adds the wallet's solving data for an output script.
    pub fn add(&mut self, script_pubkey: &Script, data: SolvingData) {
        for script in data.scripts {
            self.add_script(script);
        }
        for key in &data.public_keys {
            self.add_public_key(key);
        }
        if let (Some(taproot), Some(output_key)) = (data.taproot, taproot_output_key(script_pubkey)) {
            self.taproot.insert(output_key, taproot);
        }
    }

    /// Adds a redeem script or a witness script.
    pub fn add_script(&mut self, script: ScriptBuf) {
        self.scripts.insert(hash160::Hash::hash(script.as_bytes()), script);
    }

    /// Adds a public key of 33 or 65 bytes, or an x-only one, found by its own HASH160.
    pub fn add_public_key(&mut self, key: &[u8]) {
        self.public_keys.insert(hash160::Hash::hash(key), key.to_vec());
    }

    /// Adds the preimage of a hash. The interpreter checks it when the script runs.
    pub fn add_preimage(&mut self, kind: HashKind, hash: Vec<u8>, preimage: Vec<u8>) {
        self.preimages.insert((kind, hash), preimage);
    }

    /// Adds the key path output of an internal key (BIP 86), unless the key is not on the curve.
    pub fn add_bip86(&mut self, internal_key: [u8; X_LEN]) {
        if let Ok(key) = XOnlyPublicKey::from_slice(&internal_key) {
            let (output_key, _) = key.tap_tweak(&SECP, None);
            let data = TaprootData { internal_key, merkle_root: None, leaves: Vec::new() };
            self.taproot.insert(output_key.to_x_only_public_key().serialize(), data);
        }
    }

    /// The script with this HASH160, which is also RIPEMD-160 of the P2WSH program.
    pub fn script(&self, hash: hash160::Hash) -> Option<&Script> {
        self.scripts.get(&hash).map(ScriptBuf::as_script)
    }

    pub(super) fn preimage(&self, kind: HashKind, hash: &[u8]) -> Option<&[u8]> {
        self.preimages.get(&(kind, hash.to_vec())).map(Vec::as_slice)
    }

    pub(super) fn public_key(&self, hash: hash160::Hash) -> Option<&[u8]> {
        self.public_keys.get(&hash).map(Vec::as_slice)
    }

    /// The taproot data of a P2TR output script.
    pub fn taproot_of(&self, script_pubkey: &Script) -> Option<&TaprootData> {
        self.taproot(&taproot_output_key(script_pubkey)?)
    }

    pub(super) fn taproot(&self, output_key: &[u8; X_LEN]) -> Option<&TaprootData> {
        self.taproot.get(output_key)
    }
}

pub(super) fn taproot_output_key(script: &Script) -> Option<[u8; X_LEN]> {
    if !script.is_p2tr() {
        return None;
    }
    script.as_bytes().get(P2TR_PREFIX_LEN..)?.try_into().ok()
}
