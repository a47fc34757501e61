//! The solver's data for one input, and its findings.

use bitcoin::hashes::{Hash, hash160, ripemd160};
use bitcoin::{Script, ScriptBuf};

use super::job::Job;
use super::solving::HashKind;
use outrigger_service::wallet::TaprootData;

/// The initial stack of a script, bottom first.
pub(super) type Elements = Vec<Vec<u8>>;

/// The solver's findings in an output's scripts.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SolverFindings {
    /// Whether a witness spends the output, as far as its scripts are known.
    pub witness: bool,
    /// The redeem script, if known.
    pub redeem_script: Option<ScriptBuf>,
    /// The witness script, if known.
    pub witness_script: Option<ScriptBuf>,
    /// The taproot data, if known.
    pub taproot: Option<TaprootData>,
    /// The hash of an unknown redeem script.
    pub missing_redeem_script: Option<[u8; 20]>,
    /// The hash of an unknown witness script.
    pub missing_witness_script: Option<[u8; 32]>,
    /// The hashes of unknown public keys.
    pub missing_public_keys: Vec<hash160::Hash>,
}

impl Job<'_> {
    pub(super) fn script(&self, hash: hash160::Hash) -> Option<ScriptBuf> {
        self.known.script(hash).or_else(|| self.own.script(hash)).map(Script::to_owned)
    }

    pub(super) fn witness_script(&self, program: &[u8; 32]) -> Option<ScriptBuf> {
        // HASH160 is RIPEMD-160 of SHA-256, so one table serves both hashes.
        self.script(hash160::Hash::from_byte_array(ripemd160::Hash::hash(program).to_byte_array()))
    }

    /// The public key with this HASH160, among those with signatures and in the solving data.
    pub(super) fn public_key(&self, hash: hash160::Hash) -> Option<Vec<u8>> {
        let signed =
            self.observer.signatures.ecdsa.keys().find(|key| hash160::Hash::hash(key) == hash).map(Vec::as_slice);
        signed.or_else(|| self.own.public_key(hash)).or_else(|| self.known.public_key(hash)).map(<[u8]>::to_vec)
    }

    /// The merged taproot data of the output with this key.
    pub(super) fn taproot(&self, output_key: &[u8; 32]) -> Option<TaprootData> {
        let (Some(known), Some(own)) = (self.known.taproot(output_key), self.own.taproot(output_key)) else {
            return self.known.taproot(output_key).or_else(|| self.own.taproot(output_key)).cloned();
        };
        let mut both = own.clone();
        if both.internal_key == [0; 32] {
            both.internal_key = known.internal_key;
        }
        both.merkle_root = both.merkle_root.or(known.merkle_root);
        both.leaves.extend(known.leaves.iter().filter(|leaf| !own.leaves.contains(leaf)).cloned());
        Some(both)
    }

    pub(super) fn preimage(&self, kind: HashKind, hash: &[u8]) -> Option<Vec<u8>> {
        self.own.preimage(kind, hash).map(<[u8]>::to_vec)
    }
}
