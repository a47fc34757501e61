//! What the solver has at hand for one input: what is known of outputs, what the input showed, and signatures.

use bitcoin::hashes::{Hash, hash160, ripemd160};
use bitcoin::{Script, ScriptBuf};

use super::signatures::Signatures;
use super::solving::{HashKind, SolvingSet};
use outrigger_script::TxContext;
use outrigger_service::wallet::TaprootData;

/// The stack that an input leaves for a script.
pub(super) type Elements = Vec<Vec<u8>>;

/// Solves one input.
pub(super) struct Producer<'a> {
    /// The transaction.
    pub(super) context: &'a TxContext<'a>,
    /// The input's index.
    pub(super) index: usize,
    /// What is known of outputs.
    pub(super) known: &'a SolvingSet,
    /// What the input itself shows of the output that it spends.
    pub(super) own: &'a SolvingSet,
    /// The signatures there are.
    pub(super) signatures: &'a mut Signatures,
    /// What was met on the way.
    pub(super) met: Met,
}

/// What a solver met on its way through an output's scripts.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Met {
    /// Whether the output is spent by a witness, as far as its scripts are known.
    pub witness: bool,
    /// The redeem script.
    pub redeem_script: Option<ScriptBuf>,
    /// The witness script.
    pub witness_script: Option<ScriptBuf>,
    /// What is known of a taproot output.
    pub taproot: Option<TaprootData>,
    /// The hash of a redeem script that is not known.
    pub missing_redeem_script: Option<[u8; 20]>,
    /// The hash of a witness script that is not known.
    pub missing_witness_script: Option<[u8; 32]>,
    /// The hashes of public keys that are not known.
    pub missing_public_keys: Vec<hash160::Hash>,
}

impl Producer<'_> {
    /// The script of a hash, from what is known or from the input itself.
    pub(super) fn script(&self, hash: hash160::Hash) -> Option<ScriptBuf> {
        self.known.script(hash).or_else(|| self.own.script(hash)).map(Script::to_owned)
    }

    /// The witness script of a P2WSH program.
    pub(super) fn witness_script(&self, program: &[u8; 32]) -> Option<ScriptBuf> {
        // HASH160 is RIPEMD-160 of SHA-256, so one table serves both kinds of hashes.
        self.script(hash160::Hash::from_byte_array(ripemd160::Hash::hash(program).to_byte_array()))
    }

    /// The public key of a hash, from a signature that is there or from what is known.
    pub(super) fn public_key(&self, hash: hash160::Hash) -> Option<Vec<u8>> {
        let signed = self.signatures.ecdsa_keys().find(|key| hash160::Hash::hash(key) == hash);
        signed.or_else(|| self.own.public_key(hash)).or_else(|| self.known.public_key(hash)).map(<[u8]>::to_vec)
    }

    /// What is known of the taproot output with this output key.
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

    /// The preimage of a hash.
    pub(super) fn preimage(&self, kind: HashKind, hash: &[u8]) -> Option<Vec<u8>> {
        self.own.preimage(kind, hash).map(<[u8]>::to_vec)
    }
}
