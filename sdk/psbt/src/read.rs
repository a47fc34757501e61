//! Parses a PSBT with bitcoind's checks, order and messages.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bitcoin::absolute::{LOCK_TIME_THRESHOLD, LockTime};
use bitcoin::hashes::{Hash, hash160};
use bitcoin::secp256k1::PublicKey;
use bitcoin::taproot::{LeafVersion, TAPROOT_CONTROL_MAX_NODE_COUNT, TaprootBuilder};
use bitcoin::transaction::Version;
use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid};
use outrigger_script::{Flags, check_signature_encoding};
use outrigger_standard::decode::Form;
use outrigger_standard::release::Rules;

use crate::fields::{GLOBAL, INPUT, Keys, OUTPUT, forbidden};
use crate::reader::{DecodeError, Reader, Result, ensure, error, musig2_signer, public_key};
use crate::version::{self, VersionTwo};
use crate::write::MAGIC;
use crate::{Bytes, ControlBlock, Fields, Input, Origin, Output, PREIMAGES, Psbt, XPUB_LEN, Xpub};

/// The bits that must be 0 in a leaf version.
const NO_LEAF_VERSION: u8 = 1;

impl Psbt {
    /// Parses a PSBT in Base64 by the rules of a release. The error is for the first violated rule.
    pub fn from_base64(text: &str, rules: &Rules) -> Result<Self> {
        let bytes = BASE64_STANDARD.decode(text).map_err(|_| DecodeError("invalid base64".into()))?;
        Self::from_bytes(&bytes, rules)
    }

    /// Parses the bytes of a PSBT by the rules of a release. The error is for the first violated rule.
    pub fn from_bytes(bytes: &[u8], rules: &Rules) -> Result<Self> {
        let mut reader = Reader::new(bytes, rules.byte_reader);
        let psbt = Self::read(&mut reader, rules)?;
        if reader.is_empty() { Ok(psbt) } else { Err(DecodeError("extra data after PSBT".into())) }
    }

    fn read(reader: &mut Reader<'_>, rules: &Rules) -> Result<Self> {
        ensure(reader.array()? == MAGIC, "Invalid PSBT magic bytes")?;
        let mut global = Global::read(reader, rules)?;
        let (tx, v2, inputs, outputs) = global.check()?;
        let Global { xpubs, proprietary, unknown, .. } = global;
        let mut psbt = Self { tx, v2, xpubs, proprietary, unknown, inputs: Vec::new(), outputs: Vec::new() };
        for index in 0..inputs {
            let missing = "Inputs provided does not match the number of inputs in transaction.";
            ensure(!reader.is_empty(), missing)?;
            psbt.read_input(index, reader, rules)?;
        }
        for _ in 0..outputs {
            let missing = "Outputs provided does not match the number of outputs in transaction.";
            ensure(!reader.is_empty(), missing)?;
            let (output, paid) = Output::read(reader, rules, psbt.v2.is_some())?;
            psbt.tx.output.extend(paid);
            psbt.outputs.push(output);
        }
        psbt.update_lock_time();
        Ok(psbt)
    }

    fn read_input(&mut self, index: usize, reader: &mut Reader<'_>, rules: &Rules) -> Result<()> {
        let (input, spends) = Input::read(reader, rules, self.v2.is_some())?;
        self.tx.input.extend(spends);
        if let (Some(transaction), Some(spends)) = (&input.non_witness_utxo, self.tx.input.get(index)) {
            let outpoint = spends.previous_output;
            ensure(transaction.txid() == outpoint.txid, "Non-witness UTXO does not match outpoint hash")?;
            let exists = transaction.output.len() as u64 > u64::from(outpoint.vout);
            ensure(exists, "Input specifies output index that does not exist")?;
        }
        self.inputs.push(input);
        Ok(())
    }
}

/// The fields of the global map.
#[derive(Default)]
struct Global {
    tx: Option<Transaction>,
    xpubs: BTreeMap<Origin, BTreeSet<Xpub>>,
    proprietary: Fields,
    unknown: Fields,
    version: Option<u32>,
    tx_version: Option<i32>,
    fallback_lock_time: Option<u32>,
    inputs: Option<usize>,
    outputs: Option<usize>,
    modifiable: Option<u8>,
}

impl Global {
    fn read(reader: &mut Reader<'_>, rules: &Rules) -> Result<Self> {
        let mut global = Self::default();
        // The version may come after the fields that it requires or forbids, so a later step checks them.
        let (mut keys, mut xpubs) = (Keys::new(&GLOBAL, rules, true), BTreeSet::new());
        let ended = reader.pairs(|reader, kind, key| {
            let known = match kind {
                // Until 31, bitcoind compares extended keys by public key and chain code alone, below.
                0x01 if !rules.psbt_v2 => keys.check_length(kind, key)?,
                _ => keys.check(kind, key)?,
            };
            match kind {
                _ if !known => reader.other(kind, key, &mut global.proprietary, &mut global.unknown)?,
                0x00 => {
                    let read = reader.sized(|reader| reader.transaction(Form::Legacy))?;
                    let empty = read.input.iter().all(|input| input.script_sig.is_empty());
                    ensure(empty, "Unsigned tx does not have empty scriptSigs and scriptWitnesses.")?;
                    global.tx = Some(read);
                }
                0x01 => {
                    let missing = || error("Invalid pubkey");
                    let xpub = Xpub(key.get(1..).and_then(|xpub| xpub.try_into().ok()).ok_or_else(missing)?);
                    ensure(xpub.is_valid(), "Invalid pubkey")?;
                    let first = xpubs.insert(xpub) || rules.psbt_v2;
                    ensure(first, "Duplicate key, global xpub already provided")?;
                    global.xpubs.entry(reader.origin_field()?).or_default().insert(xpub);
                }
                0x02 => global.tx_version = Some(reader.sized(Reader::array).map(i32::from_le_bytes)?),
                0x03 => global.fallback_lock_time = Some(reader.sized(Reader::array).map(u32::from_le_bytes)?),
                0x04 => global.inputs = Some(reader.sized(Reader::length)?),
                0x05 => global.outputs = Some(reader.sized(Reader::length)?),
                0x06 => global.modifiable = Some(reader.sized(Reader::array).map(u8::from_le_bytes)?),
                _ => {
                    let version = reader.sized(Reader::array).map(u32::from_le_bytes)?;
                    let last = if rules.psbt_v2 { version::TWO } else { version::ZERO };
                    ensure(version <= last, "Unsupported version number")?;
                    global.version = Some(version);
                }
            }
            Ok(())
        })?;
        ensure(ended, "Separator is missing at the end of the global map")?;
        Ok(global)
    }

    /// Refuses fields that the version lacks or forbids. Returns the transaction, the fields of version 2 and the numbers of
    /// inputs and outputs. In version 2 the transaction is still empty.
    fn check(&mut self) -> Result<(Transaction, Option<VersionTwo>, usize, usize)> {
        let (inputs, outputs) = (self.inputs, self.outputs);
        // Whether each field of version 2 is present, and whether the version requires it.
        let present = [
            (self.tx_version.is_some(), true),
            (self.fallback_lock_time.is_some(), false),
            (inputs.is_some(), true),
            (outputs.is_some(), true),
            (self.modifiable.is_some(), false),
        ];
        let mut fields = GLOBAL.version_two.iter().zip(present);
        match self.version.unwrap_or(version::ZERO) {
            version::ZERO => {
                let tx = self.tx.take().ok_or_else(|| error("No unsigned transaction was provided"))?;
                if let Some((field, _)) = fields.find(|(_, (present, _))| *present) {
                    return Err(forbidden(field));
                }
                let (inputs, outputs) = (tx.input.len(), tx.output.len());
                Ok((tx, None, inputs, outputs))
            }
            version::TWO => {
                if let Some((field, _)) = fields.find(|(_, (present, required))| *required && !present) {
                    return Err(error(&format!("{} is required in PSBTv2", field.presence)));
                }
                ensure(self.tx.is_none(), "PSBT_GLOBAL_UNSIGNED_TX is not allowed in PSBTv2")?;
                let v2 = VersionTwo { fallback_lock_time: self.fallback_lock_time, modifiable: self.modifiable };
                let version = Version(self.tx_version.unwrap_or_default());
                let tx = Transaction { version, lock_time: LockTime::ZERO, input: Vec::new(), output: Vec::new() };
                Ok((tx, Some(v2), inputs.unwrap_or_default(), outputs.unwrap_or_default()))
            }
            _ => Err(error("There is no PSBT version 1")),
        }
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

/// The version 2 fields of an input map that form the input of the transaction.
#[derive(Default)]
struct Spends {
    txid: Option<Txid>,
    vout: Option<u32>,
    sequence: Option<u32>,
}

impl Spends {
    fn check(self) -> Result<TxIn> {
        let txid = self.txid.ok_or_else(|| error("Previous TXID is required in PSBTv2"))?;
        let vout = self.vout.ok_or_else(|| error("Previous output's index is required in PSBTv2"))?;
        let sequence = self.sequence.map_or(Sequence::MAX, Sequence);
        Ok(TxIn { previous_output: OutPoint::new(txid, vout), sequence, ..TxIn::default() })
    }
}

impl Input {
    /// Reads an input map. In version 2 it also returns the input of the transaction.
    fn read(reader: &mut Reader<'_>, rules: &Rules, version_two: bool) -> Result<(Self, Option<TxIn>)> {
        let (mut input, mut spends) = (Self::default(), Spends::default());
        let mut keys = Keys::new(&INPUT, rules, version_two);
        let ended = reader.pairs(|reader, kind, key| {
            let known = keys.check(kind, key)?;
            let rest = key.get(1..).unwrap_or_default();
            match kind {
                _ if !known => reader.other(kind, key, &mut input.proprietary, &mut input.unknown),
                0x02 | 0x06 | 0x0a..=0x0d | 0x14..=0x16 => input.read_keyed(reader, kind, rest, rules),
                0x0e..=0x12 => input.read_spends(reader, kind, &mut spends),
                0x1a..=0x1c => input.read_musig2(reader, kind, rest),
                _ => input.read_plain(reader, kind),
            }
        })?;
        ensure(ended, "Separator is missing at the end of an input map")?;
        Ok((input, version_two.then(|| spends.check()).transpose()?))
    }

    /// Reads a field without key data.
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
            0x17 => self.tap_internal_key = non_zero(reader.sized(Reader::array)?),
            _ => self.tap_merkle_root = non_zero(reader.sized(Reader::array)?),
        }
        Ok(())
    }

    /// Reads a field of version 2 (BIP 370).
    fn read_spends(&mut self, reader: &mut Reader<'_>, kind: u64, spends: &mut Spends) -> Result<()> {
        if kind == 0x0e {
            spends.txid = Some(Txid::from_byte_array(reader.sized(Reader::array)?));
            return Ok(());
        }
        let number = reader.sized(Reader::array).map(u32::from_le_bytes)?;
        match kind {
            0x0f => spends.vout = Some(number),
            0x10 => {
                spends.sequence = Some(number);
                self.has_sequence = true;
            }
            0x11 => {
                let early = "Required time based locktime is invalid (less than 500000000)";
                ensure(number >= LOCK_TIME_THRESHOLD, early)?;
                self.time_lock = Some(number);
            }
            _ => {
                ensure(number > 0, "Required height based locktime is invalid (0)")?;
                let high = "Required height based locktime is invalid (greater than or equal to 500000000)";
                ensure(number < LOCK_TIME_THRESHOLD, high)?;
                self.height_lock = Some(number);
            }
        }
        Ok(())
    }

    /// Reads a field with key data.
    fn read_keyed(&mut self, reader: &mut Reader<'_>, kind: u64, key: &[u8], rules: &Rules) -> Result<()> {
        match kind {
            0x02 => {
                let public_key = public_key(key, "partial signature pubkey")?;
                let signature = reader.bytes()?;
                let flags = Flags::DERSIG | Flags::STRICTENC;
                let is_valid = !signature.is_empty() && check_signature_encoding(signature, flags).is_ok();
                ensure(is_valid || !rules.psbt_sighashes, "Signature is not a valid encoding")?;
                self.partial_sigs.insert(hash160::Hash::hash(public_key), (public_key.to_vec(), signature.to_vec()));
            }
            0x06 => reader.origins(key, &mut self.origins)?,
            0x14 => {
                let mut parts = Reader::new(key, "SpanReader");
                let place = (parts.array()?, parts.array()?);
                self.tap_script_sigs.insert(place, reader.schnorr("script")?);
            }
            0x15 => {
                let prefix = if rules.psbt_v2 { "Input " } else { "" };
                ensure(key.len() >= 33, &format!("{prefix}Taproot leaf script key is not at least 34 bytes"))?;
                let size = "Input Taproot leaf script key's control block size is not valid";
                ensure((key.len() - 1).is_multiple_of(32), size)?;
                let leaf = reader.bytes()?.split_last();
                let (version, script) =
                    leaf.ok_or_else(|| error("Input Taproot leaf script must be at least 1 byte"))?;
                let control_blocks = self.tap_scripts.entry((script.to_vec(), *version)).or_default();
                control_blocks.insert(ControlBlock(key.to_vec()));
            }
            0x16 => reader.taproot_origins("Input", key, &mut self.tap_origins)?,
            _ => {
                for (_, preimages) in
                    PREIMAGES.iter().zip(&mut self.preimages).filter(|(each, _)| u64::from(**each) == kind)
                {
                    preimages.insert(key.to_vec(), reader.bytes()?.to_vec());
                }
            }
        }
        Ok(())
    }

    /// Reads a MuSig2 field with its key data.
    fn read_musig2(&mut self, reader: &mut Reader<'_>, kind: u64, key: &[u8]) -> Result<()> {
        match kind {
            0x1a => reader.musig2_participants("Input", key, &mut self.musig2_participants)?,
            0x1b => {
                let place = musig2_signer("pubnonce", key)?;
                let nonce = reader.bytes()?.try_into();
                let nonce = nonce.map_err(|_| error("Input musig2 pubnonce value is not 66 bytes"))?;
                self.musig2_nonces.entry(place).or_insert(nonce);
            }
            _ => {
                let place = musig2_signer("partial sig", key)?;
                let signature = reader.sized(Reader::array)?;
                self.musig2_sigs.entry(place).or_insert(signature);
            }
        }
        Ok(())
    }
}

impl Output {
    /// Reads an output map. In version 2 it also returns the output of the transaction.
    fn read(reader: &mut Reader<'_>, rules: &Rules, version_two: bool) -> Result<(Self, Option<TxOut>)> {
        let mut output = Self::default();
        let (mut amount, mut script) = (None, None);
        let mut keys = Keys::new(&OUTPUT, rules, version_two);
        let ended = reader.pairs(|reader, kind, key| {
            let known = keys.check(kind, key)?;
            let rest = key.get(1..).unwrap_or_default();
            match kind {
                _ if !known => reader.other(kind, key, &mut output.proprietary, &mut output.unknown)?,
                0x00 => output.redeem_script = ScriptBuf::from_bytes(reader.bytes()?.to_vec()),
                0x01 => output.witness_script = ScriptBuf::from_bytes(reader.bytes()?.to_vec()),
                0x02 => reader.origins(rest, &mut output.origins)?,
                0x03 => amount = Some(reader.sized(Reader::array).map(u64::from_le_bytes)?),
                0x04 => script = Some(ScriptBuf::from_bytes(reader.bytes()?.to_vec())),
                0x05 => output.tap_internal_key = non_zero(reader.sized(Reader::array)?),
                0x06 => output.tap_tree = tree(reader.bytes()?)?,
                0x07 => reader.taproot_origins("Output", rest, &mut output.tap_origins)?,
                _ => reader.musig2_participants("Output", rest, &mut output.musig2_participants)?,
            }
            Ok(())
        })?;
        ensure(ended, "Separator is missing at the end of an output map")?;
        if !version_two {
            return Ok((output, None));
        }
        let value = amount.map(Amount::from_sat).ok_or_else(|| error("Output amount is required in PSBTv2"))?;
        let script_pubkey = script.ok_or_else(|| error("Output script is required in PSBTv2"))?;
        Ok((output, Some(TxOut { value, script_pubkey })))
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
fn non_zero(bytes: [u8; 32]) -> Option<[u8; 32]> {
    Some(bytes).filter(|bytes| *bytes != [0; 32])
}
