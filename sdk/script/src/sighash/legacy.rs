//! The signature hash of inputs without a witness.
//!
//! It hashes a copy of the transaction with the scripts of the other inputs blanked. A [`Skeleton`] holds that copy
//! serialised, and the state of the hash before each input, so that hashing resumes there.

use bitcoin::hashes::{Hash, HashEngine, sha256};
use bitcoin::{LegacySighash, Script, Sequence, Transaction, TxIn, VarInt};

use super::{OUTPUT_MASK, SIGHASH_ANYONECANPAY, SIGHASH_NONE, SIGHASH_SINGLE, TxContext, encode};
use crate::parse::code_pieces;

/// Serialised size of a blank input, in bytes: outpoint, zero length, sequence.
const BLANK_INPUT_SIZE: usize = 36 + 1 + 4;

/// A blank output: amount -1, no script. With SINGLE it replaces the outputs before the signed one.
const BLANK_OUTPUT: [u8; 9] = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0];

/// A transaction serialised with blank inputs.
pub(super) struct Skeleton {
    /// Version, blank inputs, outputs, locktime.
    bytes: Vec<u8>,
    /// The offset of the first input in `bytes`.
    inputs_start: usize,
    /// The offset of the number of outputs in `bytes`.
    inputs_end: usize,
    before_input: Vec<sha256::HashEngine>,
}

impl Skeleton {
    /// Serialises `tx`. For NONE and SINGLE `keep_sequences` is false, and the sequences of the other inputs are zero.
    pub(super) fn new(tx: &Transaction, keep_sequences: bool) -> Skeleton {
        let mut bytes = Vec::with_capacity(tx.base_size());
        encode(&mut bytes, &tx.version);
        encode(&mut bytes, &VarInt::from(tx.input.len()));
        let inputs_start = bytes.len();
        for input in &tx.input {
            encode(&mut bytes, &input.previous_output);
            bytes.push(0);
            encode(&mut bytes, if keep_sequences { &input.sequence } else { &Sequence::ZERO });
        }
        let inputs_end = bytes.len();
        encode(&mut bytes, &tx.output);
        encode(&mut bytes, &tx.lock_time);
        let before_input = hash_states(&bytes, inputs_start, tx.input.len());
        Skeleton { bytes, inputs_start, inputs_end, before_input }
    }

    fn inputs_after(&self, index: usize) -> &[u8] {
        let start = self.inputs_start + (index + 1) * BLANK_INPUT_SIZE;
        self.bytes.get(start..self.inputs_end).unwrap_or_default()
    }

    fn outputs_and_lock_time(&self) -> &[u8] {
        self.bytes.get(self.inputs_end..).unwrap_or_default()
    }
}

/// The states of the hash over `bytes` before each of the blank inputs, which begin at `start`.
fn hash_states(bytes: &[u8], start: usize, inputs: usize) -> Vec<sha256::HashEngine> {
    let mut engine = sha256::Hash::engine();
    let (header, rest) = bytes.split_at_checked(start).unwrap_or((bytes, &[]));
    engine.input(header);
    let mut states = Vec::with_capacity(inputs);
    for input in rest.chunks(BLANK_INPUT_SIZE).take(inputs) {
        states.push(engine.clone());
        engine.input(input);
    }
    states
}

impl TxContext<'_> {
    /// The signature hash of an input without a witness.
    ///
    /// `script_code` is the executed script after its last executed OP_CODESEPARATOR, without the signatures that it
    /// contains. This function skips further OP_CODESEPARATORs. All bits of `hash_type` are hashed. SINGLE without a
    /// matching output hashes to the number one, a bug of the first client that is consensus. Returns `None` if the
    /// input does not exist.
    pub fn legacy_sighash(&self, input_index: usize, script_code: &Script, hash_type: u32) -> Option<LegacySighash> {
        let input = self.tx.input.get(input_index)?;
        let outputs = hash_type & OUTPUT_MASK;
        if outputs == SIGHASH_SINGLE && input_index >= self.tx.output.len() {
            let mut one = [0; 32];
            one[0] = 1;
            return Some(LegacySighash::from_byte_array(one));
        }
        let all_outputs = outputs != SIGHASH_NONE && outputs != SIGHASH_SINGLE;
        let mut engine = if hash_type & SIGHASH_ANYONECANPAY != 0 {
            self.hash_single_input(input, script_code)
        } else {
            self.hash_all_inputs(input_index, input, script_code, all_outputs)
        };
        if all_outputs {
            engine.input(self.skeleton(true).outputs_and_lock_time());
        } else {
            self.hash_chosen_output(&mut engine, input_index, outputs == SIGHASH_SINGLE);
        }
        engine.input(&hash_type.to_le_bytes());
        Some(LegacySighash::from_byte_array(sha256::Hash::from_engine(engine).hash_again().to_byte_array()))
    }

    fn hash_single_input(&self, input: &TxIn, script_code: &Script) -> sha256::HashEngine {
        let mut engine = sha256::Hash::engine();
        engine.input(&self.tx.version.0.to_le_bytes());
        engine.input(&[1]);
        write_signed_input(&mut engine, input, script_code);
        engine
    }

    fn hash_all_inputs(
        &self,
        index: usize,
        input: &TxIn,
        script_code: &Script,
        keep_sequences: bool,
    ) -> sha256::HashEngine {
        let skeleton = self.skeleton(keep_sequences);
        // There is a state for each input, and the caller checked the index.
        let mut engine = skeleton.before_input.get(index).cloned().unwrap_or_else(sha256::Hash::engine);
        write_signed_input(&mut engine, input, script_code);
        engine.input(skeleton.inputs_after(index));
        engine
    }

    fn hash_chosen_output(&self, engine: &mut sha256::HashEngine, index: usize, single: bool) {
        let chosen = self.tx.output.get(index).filter(|_| single);
        match chosen {
            None => engine.input(&[0]),
            Some(output) => {
                encode(engine, &VarInt::from(index + 1));
                (0..index).for_each(|_| engine.input(&BLANK_OUTPUT));
                encode(engine, output);
            }
        }
        engine.input(&self.tx.lock_time.to_consensus_u32().to_le_bytes());
    }

    fn skeleton(&self, keep_sequences: bool) -> &Skeleton {
        let cell = if keep_sequences { &self.with_sequences } else { &self.without_sequences };
        cell.get_or_init(|| Skeleton::new(self.tx, keep_sequences))
    }
}

/// Hashes the signed input, whose script is the scriptCode.
fn write_signed_input(engine: &mut sha256::HashEngine, input: &TxIn, script_code: &Script) {
    encode(engine, &input.previous_output);
    let (length, pieces) = code_pieces(script_code.as_bytes());
    encode(engine, &VarInt::from(length));
    pieces.for_each(|piece| engine.input(piece));
    encode(engine, &input.sequence);
}
