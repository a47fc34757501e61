//! The signature hash of taproot (BIP341, BIP342), and the hashes of script trees.

use bitcoin::hashes::{Hash, HashEngine, sha256};
use bitcoin::taproot::{TapLeafHash, TapNodeHash};
use bitcoin::{Script, TapSighash, VarInt};

use super::{TxContext, encode, sha256_of};

/// The hash type of signatures without a hash type byte. It signs like [`ALL`].
const DEFAULT: u8 = 0;
const ALL: u8 = 1;
const SINGLE: u8 = 3;
const OUTPUT_MASK: u8 = 3;
const ANYONECANPAY: u8 = 0x80;

/// The sighash epoch (BIP341).
const EPOCH: u8 = 0;
/// The version of 32-byte public keys in tapscript (BIP342).
const KEY_VERSION: u8 = 0;

/// SHA-256 over the amounts and the scripts of all spent outputs.
pub(super) struct SpentHashes {
    amounts: sha256::Hash,
    scripts: sha256::Hash,
}

impl SpentHashes {
    fn new(context: &TxContext<'_>) -> Option<SpentHashes> {
        let mut amounts = sha256::Hash::engine();
        let mut scripts = sha256::Hash::engine();
        for index in 0..context.tx.input.len() {
            let spent = context.spent_output(index)?;
            amounts.input(&spent.value.to_sat().to_le_bytes());
            encode(&mut scripts, &spent.script_pubkey);
        }
        Some(SpentHashes { amounts: sha256::Hash::from_engine(amounts), scripts: sha256::Hash::from_engine(scripts) })
    }
}

impl TxContext<'_> {
    /// Whether all spent outputs are known. Taproot signatures commit to all of them.
    pub fn knows_all_spent(&self) -> bool {
        self.taproot.get_or_init(|| SpentHashes::new(self)).is_some()
    }

    /// The signature hash of a taproot input (BIP341).
    ///
    /// `hash_type` is 0 for a signature without a hash type byte. `annex` is the [`annex_hash`] of the witness's annex,
    /// if any. `leaf` is given for the script path: the leaf hash, and the opcode position of the last executed
    /// OP_CODESEPARATOR, `u32::MAX` if none. Returns `None` if the input does not exist, if a spent output is unknown,
    /// or if by consensus no signature of this type is valid.
    pub fn taproot_sighash(
        &self,
        input_index: usize,
        hash_type: u8,
        annex: Option<sha256::Hash>,
        leaf: Option<(TapLeafHash, u32)>,
    ) -> Option<TapSighash> {
        let spent = self.taproot.get_or_init(|| SpentHashes::new(self)).as_ref()?;
        if input_index >= self.tx.input.len() || !matches!(hash_type, 0..=3 | 0x81..=0x83) {
            return None;
        }
        let outputs = if hash_type == DEFAULT { ALL } else { hash_type & OUTPUT_MASK };

        let mut engine = TapSighash::engine();
        engine.input(&[EPOCH, hash_type]);
        engine.input(&self.tx.version.0.to_le_bytes());
        engine.input(&self.tx.lock_time.to_consensus_u32().to_le_bytes());
        if hash_type & ANYONECANPAY == 0 {
            engine.input(self.common().outpoints.as_ref());
            engine.input(spent.amounts.as_ref());
            engine.input(spent.scripts.as_ref());
            engine.input(self.common().sequences.as_ref());
        }
        if outputs == ALL {
            engine.input(self.common().outputs.as_ref());
        }
        self.write_spend(&mut engine, input_index, hash_type, annex, leaf.is_some())?;
        if outputs == SINGLE {
            let output = self.tx.output.get(input_index)?;
            engine.input(sha256_of(|engine| encode(engine, output)).as_ref());
        }
        if let Some((leaf_hash, code_separator)) = leaf {
            engine.input(leaf_hash.as_ref());
            engine.input(&[KEY_VERSION]);
            engine.input(&code_separator.to_le_bytes());
        }
        Some(TapSighash::from_engine(engine))
    }

    /// Writes the part of the message for the signed input.
    fn write_spend(
        &self,
        engine: &mut sha256::HashEngine,
        index: usize,
        hash_type: u8,
        annex: Option<sha256::Hash>,
        script_path: bool,
    ) -> Option<()> {
        engine.input(&[u8::from(script_path) << 1 | u8::from(annex.is_some())]);
        if hash_type & ANYONECANPAY == 0 {
            engine.input(&(index as u32).to_le_bytes());
        } else {
            let (input, spent) = (self.tx.input.get(index)?, self.spent_output(index)?);
            encode(engine, &input.previous_output);
            encode(engine, spent);
            encode(engine, &input.sequence);
        }
        if let Some(annex) = annex {
            engine.input(annex.as_ref());
        }
        Some(())
    }
}

/// The hash of an annex for the signature message (BIP341). The annex includes its first byte, 0x50.
pub fn annex_hash(annex: &[u8]) -> sha256::Hash {
    sha256_of(|engine| {
        encode(engine, &VarInt::from(annex.len()));
        engine.input(annex);
    })
}

pub(crate) fn tap_leaf_hash(version: u8, script: &[u8]) -> TapLeafHash {
    let mut engine = TapLeafHash::engine();
    engine.input(&[version]);
    encode(&mut engine, Script::from_bytes(script));
    TapLeafHash::from_engine(engine)
}

/// The Merkle root of the script tree, from a leaf and the 32-byte nodes of its path.
pub(crate) fn tap_merkle_root(leaf: TapLeafHash, path: &[u8]) -> TapNodeHash {
    path.as_chunks::<32>().0.iter().fold(TapNodeHash::from(leaf), |node, sibling| {
        TapNodeHash::from_node_hashes(node, TapNodeHash::from_byte_array(*sibling))
    })
}
