//! Serialises a PSBT as bitcoind does.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bitcoin::consensus::encode::VarInt;
use bitcoin::consensus::serialize;
use bitcoin::{TxIn, TxOut};

use crate::previous::without_witness;
use crate::version::{self, VersionTwo};
use crate::{Bytes, Fields, Input, MuSig2Key, MuSig2Signer, Origin, Output, PREIMAGES, Psbt, TaprootOrigin};

pub(super) const MAGIC: [u8; 5] = *b"psbt\xff";

impl Psbt {
    /// The PSBT in Base64.
    pub fn to_base64(&self) -> String {
        BASE64_STANDARD.encode(self.to_bytes())
    }

    /// The bytes of the PSBT.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = MAGIC.to_vec();
        if self.v2.is_none() {
            pair(&mut out, &[0x00], &without_witness(&self.tx));
        }
        for (origin, xpubs) in &self.xpubs {
            xpubs.iter().for_each(|xpub| typed(&mut out, 1, &xpub.0, &origin.to_bytes()));
        }
        if let Some(v2) = &self.v2 {
            self.write_globals(&mut out, v2);
        }
        fields(&mut out, &self.proprietary);
        fields(&mut out, &self.unknown);
        out.push(0);
        let in_map = self.v2.is_some();
        self.each_input().for_each(|(spends, input)| input.write(&mut out, in_map.then_some(spends)));
        let outputs = self.tx.output.iter().zip(&self.outputs);
        outputs.for_each(|(paid, output)| output.write(&mut out, in_map.then_some(paid)));
        out
    }

    /// Writes the global fields of version 2.
    fn write_globals(&self, out: &mut Bytes, v2: &VersionTwo) {
        pair(out, &[0x02], &self.tx.version.0.to_le_bytes());
        if let Some(lock_time) = v2.fallback_lock_time {
            pair(out, &[0x03], &lock_time.to_le_bytes());
        }
        pair(out, &[0x04], &serialize(&VarInt::from(self.tx.input.len())));
        pair(out, &[0x05], &serialize(&VarInt::from(self.tx.output.len())));
        if let Some(modifiable) = v2.modifiable {
            pair(out, &[0x06], &[modifiable]);
        }
        pair(out, &[0xfb], &version::TWO.to_le_bytes());
    }
}

impl Origin {
    pub(super) fn to_bytes(&self) -> Bytes {
        self.path.iter().fold(self.fingerprint.to_vec(), |bytes, step| [bytes, step.to_le_bytes().to_vec()].concat())
    }
}

impl Input {
    /// Writes the map. `spends` is the input of the transaction in version 2.
    fn write(&self, out: &mut Bytes, spends: Option<&TxIn>) {
        if let Some(transaction) = &self.non_witness_utxo {
            pair(out, &[0x00], transaction.bytes());
        }
        if let Some(output) = &self.witness_utxo {
            pair(out, &[0x01], &serialize(output));
        }
        // A final input has no fields for signing, as in bitcoind.
        if !self.is_final() {
            self.write_parts(out);
        }
        optional(out, 0x07, self.final_script_sig.as_bytes());
        if !self.final_witness.is_empty() {
            pair(out, &[0x08], &serialize(&self.final_witness));
        }
        if let Some(spends) = spends {
            self.write_spends(out, spends);
        }
        fields(out, &self.proprietary);
        fields(out, &self.unknown);
        out.push(0);
    }

    fn write_parts(&self, out: &mut Bytes) {
        for (key, signature) in self.partial_sigs.values() {
            typed(out, 0x02, key, signature);
        }
        if let Some(sighash_type) = self.sighash_type {
            pair(out, &[0x03], &sighash_type.to_le_bytes());
        }
        optional(out, 0x04, self.redeem_script.as_bytes());
        optional(out, 0x05, self.witness_script.as_bytes());
        for (key, origin) in &self.origins {
            typed(out, 0x06, key, &origin.to_bytes());
        }
        for (kind, preimages) in PREIMAGES.iter().zip(&self.preimages) {
            preimages.iter().for_each(|(hash, preimage)| typed(out, *kind, hash, preimage));
        }
        optional(out, 0x13, &self.tap_key_sig);
        for ((key, leaf), signature) in &self.tap_script_sigs {
            typed(out, 0x14, &[*key, *leaf].concat(), signature);
        }
        for ((script, version), control_blocks) in &self.tap_scripts {
            let leaf = [script.as_slice(), &[*version]].concat();
            control_blocks.iter().for_each(|control_block| typed(out, 0x15, &control_block.0, &leaf));
        }
        for (key, origin) in &self.tap_origins {
            typed(out, 0x16, key, &taproot_origin(origin));
        }
        optional(out, 0x17, self.tap_internal_key.as_ref().map_or(&[], <[u8; 32]>::as_slice));
        optional(out, 0x18, self.tap_merkle_root.as_ref().map_or(&[], <[u8; 32]>::as_slice));
        participants(out, 0x1a, &self.musig2_participants);
        self.musig2_nonces.iter().for_each(|(signer, nonce)| typed(out, 0x1b, &signer_key(signer), nonce));
        self.musig2_sigs.iter().for_each(|(signer, signature)| typed(out, 0x1c, &signer_key(signer), signature));
    }

    /// Writes the fields of version 2.
    fn write_spends(&self, out: &mut Bytes, spends: &TxIn) {
        pair(out, &[0x0e], &serialize(&spends.previous_output.txid));
        pair(out, &[0x0f], &spends.previous_output.vout.to_le_bytes());
        let sequence = self.has_sequence.then_some(spends.sequence.0);
        for (kind, number) in [(0x10, sequence), (0x11, self.time_lock), (0x12, self.height_lock)] {
            number.iter().for_each(|number| pair(out, &[kind], &number.to_le_bytes()));
        }
    }
}

impl Output {
    /// Writes the map. `paid` is the output of the transaction in version 2.
    fn write(&self, out: &mut Bytes, paid: Option<&TxOut>) {
        optional(out, 0x00, self.redeem_script.as_bytes());
        optional(out, 0x01, self.witness_script.as_bytes());
        for (key, origin) in &self.origins {
            typed(out, 0x02, key, &origin.to_bytes());
        }
        if let Some(paid) = paid {
            pair(out, &[0x03], &serialize(&paid.value));
            pair(out, &[0x04], paid.script_pubkey.as_bytes());
        }
        fields(out, &self.proprietary);
        optional(out, 0x05, self.tap_internal_key.as_ref().map_or(&[], <[u8; 32]>::as_slice));
        let leaf = |(depth, version, script): &(u8, u8, Bytes)| [vec![*depth, *version], serialize(script)].concat();
        optional(out, 0x06, &self.tap_tree.iter().flat_map(leaf).collect::<Bytes>());
        for (key, origin) in &self.tap_origins {
            typed(out, 0x07, key, &taproot_origin(origin));
        }
        participants(out, 0x08, &self.musig2_participants);
        fields(out, &self.unknown);
        out.push(0);
    }
}

fn taproot_origin((leaves, origin): &TaprootOrigin) -> Bytes {
    let mut bytes = serialize(&VarInt::from(leaves.len()));
    bytes.extend(leaves.iter().flatten());
    bytes.extend(origin.to_bytes());
    bytes
}

fn participants(out: &mut Bytes, kind: u8, all: &BTreeMap<MuSig2Key, Vec<MuSig2Key>>) {
    all.iter().for_each(|(aggregate, keys)| typed(out, kind, aggregate, keys.as_flattened()));
}

/// The key data of a pubnonce or partial signature.
fn signer_key((aggregate, leaf, participant): &MuSig2Signer) -> Bytes {
    [&participant[..], aggregate, leaf.as_ref().map_or(&[], <[u8; 32]>::as_slice)].concat()
}

fn fields(out: &mut Bytes, fields: &Fields) {
    fields.iter().for_each(|(key, value)| pair(out, key, value));
}

fn pair(out: &mut Bytes, key: &[u8], value: &[u8]) {
    for bytes in [key, value] {
        out.extend(serialize(&VarInt::from(bytes.len())));
        out.extend_from_slice(bytes);
    }
}

/// Writes a field whose key has data beyond its type.
fn typed(out: &mut Bytes, kind: u8, key: &[u8], value: &[u8]) {
    pair(out, &[&[kind], key].concat(), value);
}

/// Writes a field unless its value is empty.
fn optional(out: &mut Bytes, kind: u8, value: &[u8]) {
    if !value.is_empty() {
        pair(out, &[kind], value);
    }
}
