//! The signature hash of witness version 0 (BIP143).

use bitcoin::hashes::{Hash, HashEngine, sha256, sha256d};
use bitcoin::{Amount, Script, SegwitV0Sighash};

use super::{
    CommonHashes, OUTPUT_MASK, SIGHASH_ANYONECANPAY, SIGHASH_NONE, SIGHASH_SINGLE, TxContext, encode, sha256_of,
};

/// The placeholder for unsigned parts.
const UNSIGNED: [u8; 32] = [0; 32];

/// Double SHA-256 over all outpoints, all sequences and all outputs.
pub(super) struct SegwitHashes {
    outpoints: sha256d::Hash,
    sequences: sha256d::Hash,
    outputs: sha256d::Hash,
}

impl SegwitHashes {
    fn new(common: &CommonHashes) -> SegwitHashes {
        SegwitHashes {
            outpoints: common.outpoints.hash_again(),
            sequences: common.sequences.hash_again(),
            outputs: common.outputs.hash_again(),
        }
    }
}

impl TxContext<'_> {
    /// The signature hash of a witness version 0 input (BIP143).
    ///
    /// `script_code` is the executed script after its last executed OP_CODESEPARATOR; for P2WPKH it is the implied
    /// P2PKH script. `amount` is the value of the spent output. All bits of `hash_type` are hashed. Returns
    /// `None` if the input does not exist.
    pub fn segwit_v0_sighash(
        &self,
        input_index: usize,
        script_code: &Script,
        amount: Amount,
        hash_type: u32,
    ) -> Option<SegwitV0Sighash> {
        let input = self.tx.input.get(input_index)?;
        let hashes = self.segwit.get_or_init(|| SegwitHashes::new(self.common()));
        let all_inputs = hash_type & SIGHASH_ANYONECANPAY == 0;
        let all_outputs = !matches!(hash_type & OUTPUT_MASK, SIGHASH_NONE | SIGHASH_SINGLE);

        let mut engine = sha256::Hash::engine();
        engine.input(&self.tx.version.0.to_le_bytes());
        engine.input(if all_inputs { hashes.outpoints.as_ref() } else { &UNSIGNED });
        engine.input(if all_inputs && all_outputs { hashes.sequences.as_ref() } else { &UNSIGNED });
        encode(&mut engine, &input.previous_output);
        encode(&mut engine, script_code);
        engine.input(&amount.to_sat().to_le_bytes());
        encode(&mut engine, &input.sequence);
        if all_outputs {
            engine.input(hashes.outputs.as_ref());
        } else {
            engine.input(&self.single_output_hash(input_index, hash_type));
        }
        engine.input(&self.tx.lock_time.to_consensus_u32().to_le_bytes());
        engine.input(&hash_type.to_le_bytes());
        Some(SegwitV0Sighash::from_byte_array(sha256::Hash::from_engine(engine).hash_again().to_byte_array()))
    }

    fn single_output_hash(&self, index: usize, hash_type: u32) -> [u8; 32] {
        match self.tx.output.get(index) {
            Some(output) if hash_type & OUTPUT_MASK == SIGHASH_SINGLE => {
                sha256_of(|engine| encode(engine, output)).hash_again().to_byte_array()
            }
            _ => UNSIGNED,
        }
    }
}
