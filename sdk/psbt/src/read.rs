//! Parses a PSBT with bitcoind's checks, order and messages.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bitcoin::hashes::{Hash, hash160};
use bitcoin::secp256k1::PublicKey;
use bitcoin::taproot::{LeafVersion, TAPROOT_CONTROL_MAX_NODE_COUNT, TaprootBuilder};
use bitcoin::{Amount, ScriptBuf};
use outrigger_standard::decode::Form;

use crate::reader::{DecodeError, Reader, Result, ensure, error, public_key};
use crate::write::MAGIC;
use crate::{Bytes, ControlBlock, Fields, Input, Origin, Output, PREIMAGES, Psbt, XPUB_LEN, Xpub};

/// The bits that a leaf version may not have.
const NO_LEAF_VERSION: u8 = 1;

impl Psbt {
    /// Parses a PSBT in Base64. The error is the first rule that it breaks.
    pub fn from_base64(text: &str) -> Result<Self> {
        let bytes = BASE64_STANDARD.decode(text).map_err(|_| DecodeError("invalid base64".into()))?;
        Self::from_bytes(&bytes)
    }

    /// Parses the bytes of a PSBT. The error is the first rule that they break.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes, "DataStream");
        let psbt = Self::read(&mut reader)?;
        if reader.is_empty() { Ok(psbt) } else { Err(DecodeError("extra data after PSBT".into())) }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        ensure(reader.array()? == MAGIC, "Invalid PSBT magic bytes")?;
        let mut tx = None;
        let mut xpubs: BTreeMap<Origin, BTreeSet<Xpub>> = BTreeMap::new();
        let (mut seen, mut version) = (BTreeSet::new(), None);
        let (mut proprietary, mut unknown) = (Fields::new(), Fields::new());
        let ended = reader.pairs(|reader, kind, key| {
            match kind {
                0x00 => {
                    ensure(tx.is_none(), "Duplicate Key, unsigned tx already provided")?;
                    ensure(key.len() == 1, "Global unsigned tx key is more than one byte type")?;
                    let read = reader.sized(|reader| reader.transaction(Form::Legacy))?;
                    let empty = read.input.iter().all(|input| input.script_sig.is_empty());
                    ensure(empty, "Unsigned tx does not have empty scriptSigs and scriptWitnesses.")?;
                    tx = Some(read);
                }
                0x01 => {
                    let size = "Size of key was not the expected size for the type global xpub";
                    let xpub = Xpub(key.get(1..).and_then(|xpub| xpub.try_into().ok()).ok_or_else(|| error(size))?);
                    ensure(xpub.is_valid(), "Invalid pubkey")?;
                    ensure(seen.insert(xpub), "Duplicate key, global xpub already provided")?;
                    xpubs.entry(reader.origin_field()?).or_default().insert(xpub);
                }
                0xfb => {
                    ensure(version.is_none(), "Duplicate Key, version already provided")?;
                    ensure(key.len() == 1, "Global version key is more than one byte type")?;
                    let read = reader.sized(|reader| reader.array().map(u32::from_le_bytes))?;
                    ensure(read == 0, "Unsupported version number")?;
                    version = Some(read);
                }
                _ => reader.other(kind, key, &mut proprietary, &mut unknown)?,
            }
            Ok(())
        })?;
        ensure(ended, "Separator is missing at the end of the global map")?;
        let tx = tx.ok_or_else(|| error("No unsigned transaction was provided"))?;
        let mut psbt = Self { tx, xpubs, proprietary, unknown, inputs: Vec::new(), outputs: Vec::new() };
        psbt.read_maps(reader)?;
        Ok(psbt)
    }

    fn read_maps(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        for input in &self.tx.input {
            let missing = "Inputs provided does not match the number of inputs in transaction.";
            ensure(!reader.is_empty(), missing)?;
            let read = Input::read(reader)?;
            if let Some(transaction) = &read.non_witness_utxo {
                let outpoint = input.previous_output;
                ensure(transaction.txid() == outpoint.txid, "Non-witness UTXO does not match outpoint hash")?;
                let exists = transaction.output.len() as u64 > u64::from(outpoint.vout);
                ensure(exists, "Input specifies output index that does not exist")?;
            }
            self.inputs.push(read);
        }
        for _ in &self.tx.output {
            let missing = "Outputs provided does not match the number of outputs in transaction.";
            ensure(!reader.is_empty(), missing)?;
            self.outputs.push(Output::read(reader)?);
        }
        Ok(())
    }
}

impl Xpub {
    /// Whether the public key is on the curve, and the key has no parent if it is a master key.
    fn is_valid(&self) -> bool {
        let master_has_parent =
            matches!(&self.0, [_, _, _, _, 0, parent @ ..] if parent.iter().take(8).any(|byte| *byte != 0));
        !master_has_parent && PublicKey::from_slice(self.0.split_at(XPUB_LEN - 33).1).is_ok()
    }
}

impl Input {
    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let mut input = Self::default();
        let mut seen = BTreeSet::new();
        let ended = reader.pairs(|reader, kind, key| {
            let first = seen.insert(key.to_vec());
            // Fields whose key is the type alone.
            if let Some((of_duplicate, of_length)) = plain_input_field(kind) {
                ensure(first, &format!("Duplicate Key, input {of_duplicate} already provided"))?;
                ensure(key.len() == 1, &format!("{of_length} key is more than one byte type"))?;
                return input.read_plain(reader, kind);
            }
            input.read_keyed(reader, kind, key, first)
        })?;
        ensure(ended, "Separator is missing at the end of an input map")?;
        Ok(input)
    }

    fn read_plain(&mut self, reader: &mut Reader<'_>, kind: u64) -> Result<()> {
        match kind {
            0x00 => self.non_witness_utxo = Some(reader.previous_transaction()?),
            0x01 => {
                let output = reader.sized(Reader::output)?;
                // In bitcoind, the value -1 means no output.
                self.witness_utxo = Some(output).filter(|output| output.value != Amount::from_sat(u64::MAX));
            }
            0x03 => self.sighash_type = Some(reader.sized(|reader| reader.array().map(i32::from_le_bytes))?),
            0x04 => self.redeem_script = ScriptBuf::from_bytes(reader.bytes()?.to_vec()),
            0x05 => self.witness_script = ScriptBuf::from_bytes(reader.bytes()?.to_vec()),
            0x07 => self.final_script_sig = ScriptBuf::from_bytes(reader.bytes()?.to_vec()),
            0x08 => self.final_witness = reader.sized(Reader::witness)?,
            0x13 => self.tap_key_sig = reader.schnorr("key")?,
            0x17 => self.tap_internal_key = reader.sized(Reader::array)?.non_zero(),
            _ => self.tap_merkle_root = reader.sized(Reader::array)?.non_zero(),
        }
        Ok(())
    }

    fn read_keyed(&mut self, reader: &mut Reader<'_>, kind: u64, key: &[u8], first: bool) -> Result<()> {
        let rest = key.get(1..).unwrap_or_default();
        match kind {
            0x02 => {
                let public_key = public_key(rest, "partial signature pubkey")?;
                let hash = hash160::Hash::hash(public_key);
                let duplicate = "Duplicate Key, input partial signature for pubkey already provided";
                ensure(!self.partial_sigs.contains_key(&hash), duplicate)?;
                let signature = reader.bytes()?;
                self.partial_sigs.insert(hash, (public_key.to_vec(), signature.to_vec()));
            }
            0x06 => reader.origins(rest, &mut self.origins)?,
            0x0a..=0x0d => {
                for ((_, length, name), preimages) in
                    PREIMAGES.iter().zip(&mut self.preimages).filter(|((each, ..), _)| u64::from(*each) == kind)
                {
                    let size = format!("Size of key was not the expected size for the type {name} preimage");
                    ensure(rest.len() == *length, &size)?;
                    ensure(first, &format!("Duplicate Key, input {name} preimage already provided"))?;
                    preimages.insert(rest.to_vec(), reader.bytes()?.to_vec());
                }
            }
            0x14 => {
                ensure(first, "Duplicate Key, input Taproot script signature already provided")?;
                ensure(key.len() == 65, "Input Taproot script signature key is not 65 bytes")?;
                let mut parts = Reader::new(rest, "SpanReader");
                let place = (parts.array()?, parts.array()?);
                self.tap_script_sigs.insert(place, reader.schnorr("script")?);
            }
            0x15 => {
                ensure(first, "Duplicate Key, input Taproot leaf script already provided")?;
                ensure(key.len() >= 34, "Taproot leaf script key is not at least 34 bytes")?;
                let size = "Input Taproot leaf script key's control block size is not valid";
                ensure((key.len() - 2).is_multiple_of(32), size)?;
                let leaf = reader.bytes()?.split_last();
                let (version, script) =
                    leaf.ok_or_else(|| error("Input Taproot leaf script must be at least 1 byte"))?;
                let control_blocks = self.tap_scripts.entry((script.to_vec(), *version)).or_default();
                control_blocks.insert(ControlBlock(rest.to_vec()));
            }
            0x16 => reader.taproot_origins("Input", "input", first, rest, &mut self.tap_origins)?,
            _ => reader.other(kind, key, &mut self.proprietary, &mut self.unknown)?,
        }
        Ok(())
    }
}

/// For an input field whose key is the type alone: its names in the errors for a duplicate and for a longer key.
fn plain_input_field(kind: u64) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        0x00 => ("non-witness utxo", "Non-witness utxo"),
        0x01 => ("witness utxo", "Witness utxo"),
        0x03 => ("sighash type", "Sighash type"),
        0x04 => ("redeemScript", "Input redeemScript"),
        0x05 => ("witnessScript", "Input witnessScript"),
        0x07 => ("final scriptSig", "Final scriptSig"),
        0x08 => ("final scriptWitness", "Final scriptWitness"),
        0x13 => ("Taproot key signature", "Input Taproot key signature"),
        0x17 => ("Taproot internal key", "Input Taproot internal key"),
        0x18 => ("Taproot merkle root", "Input Taproot merkle root"),
        _ => return None,
    })
}

impl Output {
    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let mut output = Self::default();
        let mut seen = BTreeSet::new();
        let ended = reader.pairs(|reader, kind, key| {
            let first = seen.insert(key.to_vec());
            let plain = |name: &str| {
                ensure(first, &format!("Duplicate Key, output {name} already provided"))?;
                ensure(key.len() == 1, &format!("Output {name} key is more than one byte type"))
            };
            let rest = key.get(1..).unwrap_or_default();
            match kind {
                0x00 => {
                    plain("redeemScript")?;
                    output.redeem_script = ScriptBuf::from_bytes(reader.bytes()?.to_vec());
                }
                0x01 => {
                    plain("witnessScript")?;
                    output.witness_script = ScriptBuf::from_bytes(reader.bytes()?.to_vec());
                }
                0x02 => reader.origins(rest, &mut output.origins)?,
                0x05 => {
                    plain("Taproot internal key")?;
                    output.tap_internal_key = reader.sized(Reader::array)?.non_zero();
                }
                0x06 => {
                    plain("Taproot tree")?;
                    output.tap_tree = tree(reader.bytes()?)?;
                }
                0x07 => reader.taproot_origins("Output", "output", first, rest, &mut output.tap_origins)?,
                _ => reader.other(kind, key, &mut output.proprietary, &mut output.unknown)?,
            }
            Ok(())
        })?;
        ensure(ended, "Separator is missing at the end of an output map")?;
        Ok(output)
    }
}

fn tree(bytes: &[u8]) -> Result<Vec<(u8, u8, Bytes)>> {
    ensure(!bytes.is_empty(), "Output Taproot tree must not be empty")?;
    let mut reader = Reader::new(bytes, "SpanReader");
    let (mut leaves, mut builder) = (Vec::new(), Some(TaprootBuilder::new()));
    while !reader.is_empty() {
        let [depth] = reader.array()?;
        let [version] = reader.array()?;
        let script = reader.bytes()?.to_vec();
        let deep = "Output Taproot tree has as leaf greater than Taproot maximum depth";
        ensure(usize::from(depth) <= TAPROOT_CONTROL_MAX_NODE_COUNT, deep)?;
        ensure(version & NO_LEAF_VERSION == 0, "Output Taproot tree has a leaf with an invalid leaf version")?;
        // Only the shape of the tree is checked here, and the library does not accept all versions.
        let leaf = ScriptBuf::from_bytes(script.clone());
        builder = builder.and_then(|builder| builder.add_leaf_with_ver(depth, leaf, LeafVersion::TapScript).ok());
        leaves.push((depth, version, script));
    }
    ensure(builder.is_some_and(|builder| builder.is_finalizable()), "Output Taproot tree is malformed")?;
    Ok(leaves)
}

/// Zeros mean that the value is missing.
trait NonZero: Sized {
    fn non_zero(self) -> Option<Self>;
}

impl NonZero for [u8; 32] {
    fn non_zero(self) -> Option<Self> {
        Some(self).filter(|bytes| *bytes != [0; 32])
    }
}
