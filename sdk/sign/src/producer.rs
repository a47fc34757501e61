//! What the solver has at hand for one input: what is known of outputs, what the input showed, and signatures.

use bitcoin::hashes::{Hash, hash160, ripemd160};
use bitcoin::{Script, ScriptBuf};

use super::signatures::Signatures;
use super::solving::SolvingSet;
use outrigger_script::TxContext;

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
    /// Scripts that the input itself showed.
    pub(super) carried_scripts: &'a [ScriptBuf],
    /// The signatures there are.
    pub(super) signatures: &'a mut Signatures,
}

impl Producer<'_> {
    /// The script of a hash, from what is known or from the input itself.
    pub(super) fn script(&self, hash: hash160::Hash) -> Option<ScriptBuf> {
        let shown = || self.carried_scripts.iter().find(|script| hash160::Hash::hash(script.as_bytes()) == hash);
        self.known.script(hash).map(Script::to_owned).or_else(|| shown().cloned())
    }

    /// The witness script of a P2WSH program.
    pub(super) fn witness_script(&self, program: &[u8; 32]) -> Option<ScriptBuf> {
        // HASH160 is RIPEMD-160 of SHA-256, so one table serves both kinds of hashes.
        self.script(hash160::Hash::from_byte_array(ripemd160::Hash::hash(program).to_byte_array()))
    }

    /// The public key of a hash, from a signature that is there or from what is known.
    pub(super) fn public_key(&self, hash: hash160::Hash) -> Option<Vec<u8>> {
        let signed = self.signatures.ecdsa_keys().find(|key| hash160::Hash::hash(key) == hash);
        signed.or_else(|| self.known.public_key(hash)).map(<[u8]>::to_vec)
    }
}
