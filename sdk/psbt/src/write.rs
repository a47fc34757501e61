//! Serialises a PSBT as bitcoind does.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bitcoin::consensus::encode::VarInt;
use bitcoin::consensus::serialize;

use crate::previous::without_witness;
use crate::{Bytes, Fields, Input, Origin, Output, PREIMAGES, Psbt, TaprootOrigin};

pub(super) const MAGIC: [u8; 5] = *b"psbt\xff";

impl Psbt {
    /// The PSBT in Base64.
    pub fn to_base64(&self) -> String {
        BASE64_STANDARD.encode(self.to_bytes())
    }

    /// The bytes of the PSBT.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = MAGIC.to_vec();
        pair(&mut out, &[0], &without_witness(&self.tx));
        for (origin, xpubs) in &self.xpubs {
            xpubs.iter().for_each(|xpub| typed(&mut out, 1, &xpub.0, &origin.to_bytes()));
        }
        fields(&mut out, &self.proprietary);
        fields(&mut out, &self.unknown);
        out.push(0);
        self.inputs.iter().for_each(|input| input.write(&mut out));
        self.outputs.iter().for_each(|output| output.write(&mut out));
        out
    }
}

impl Origin {
    pub(super) fn to_bytes(&self) -> Bytes {
        self.path.iter().fold(self.fingerprint.to_vec(), |bytes, step| [bytes, step.to_le_bytes().to_vec()].concat())
    }
}

impl Input {
    fn write(&self, out: &mut Bytes) {
        if let Some(transaction) = &self.non_witness_utxo {
            pair(out, &[0x00], transaction.bytes());
        }
        if let Some(output) = &self.witness_utxo {
            pair(out, &[0x01], &serialize(output));
        }
        // With a final scriptSig or witness the fields for signing are dropped, as in bitcoind.
        if !self.is_final() {
            self.write_parts(out);
        }
        optional(out, 0x07, self.final_script_sig.as_bytes());
        if !self.final_witness.is_empty() {
            pair(out, &[0x08], &serialize(&self.final_witness));
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
        for ((kind, ..), preimages) in PREIMAGES.iter().zip(&self.preimages) {
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
    }
}

impl Output {
    fn write(&self, out: &mut Bytes) {
        optional(out, 0x00, self.redeem_script.as_bytes());
        optional(out, 0x01, self.witness_script.as_bytes());
        for (key, origin) in &self.origins {
            typed(out, 0x02, key, &origin.to_bytes());
        }
        fields(out, &self.proprietary);
        optional(out, 0x05, self.tap_internal_key.as_ref().map_or(&[], <[u8; 32]>::as_slice));
        let leaf = |(depth, version, script): &(u8, u8, Bytes)| [vec![*depth, *version], serialize(script)].concat();
        optional(out, 0x06, &self.tap_tree.iter().flat_map(leaf).collect::<Bytes>());
        for (key, origin) in &self.tap_origins {
            typed(out, 0x07, key, &taproot_origin(origin));
        }
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
