//! The known fields of PSBTs, and bitcoind's messages about their keys.

use std::collections::BTreeSet;

use bitcoin::hex::DisplayHex;
use outrigger_standard::release::Rules;

use crate::Bytes;
use crate::reader::{DecodeError, PROPRIETARY, Result, error};

/// A field type.
pub struct Field {
    kind: u64,
    /// The length of the key in bytes, including the type. `None`: the reader of the field checks the key.
    key_len: Option<usize>,
    /// The name in messages since Bitcoin Core 32, without the map's name.
    name: &'static str,
    /// The name in messages about a duplicate until Bitcoin Core 31.
    duplicate: &'static str,
    /// The name in messages about a key of another length until Bitcoin Core 31. Empty: `duplicate` without "input".
    subject: &'static str,
}

const fn field(kind: u64, key_len: usize, name: &'static str, duplicate: &'static str, subject: &'static str) -> Field {
    Field { kind, key_len: Some(key_len), name, duplicate, subject }
}

/// A field type whose keys the reader of the field checks.
const fn keyed(kind: u64, duplicate: &'static str) -> Field {
    Field { kind, key_len: None, name: "", duplicate, subject: "" }
}

/// A field type that only version 2 has (BIP 370). Its key is only the type.
pub struct NewField {
    kind: u64,
    /// The name in messages about the key, without the map's name.
    name: &'static str,
    /// The name in messages about a missing or forbidden field.
    pub presence: &'static str,
}

const fn new(kind: u64, name: &'static str, presence: &'static str) -> NewField {
    NewField { kind, name, presence }
}

/// A map of a PSBT: its name in messages, the field types of all versions, of version 2 (BIP 370), and of MuSig2 (BIP 373).
pub struct Map {
    name: &'static str,
    fields: &'static [Field],
    pub version_two: &'static [NewField],
    musig2: &'static [Field],
}

pub const GLOBAL: Map = Map {
    name: "Global",
    fields: &[
        field(0x00, 1, "Unsigned TX", "unsigned tx", "Global unsigned tx"),
        field(0x01, 79, "XPUB", "global xpub", ""),
        field(0xfb, 1, "PSBT Version", "version", "Global version"),
    ],
    version_two: &[
        new(0x02, "Transaction Version", "PSBT_GLOBAL_TX_VERSION"),
        new(0x03, "Fallback Locktime", "PSBT_GLOBAL_FALLBACK_LOCKTIME"),
        new(0x04, "Input Count", "PSBT_GLOBAL_INPUT_COUNT"),
        new(0x05, "Output Count", "PSBT_GLOBAL_OUTPUT_COUNT"),
        new(0x06, "TX Modifiable Flags", "PSBT_GLOBAL_TX_MODIFIABLE"),
    ],
    musig2: &[],
};

pub const INPUT: Map = Map {
    name: "Input",
    fields: &[
        field(0x00, 1, "Non-witness UTXO", "input non-witness utxo", "Non-witness utxo"),
        field(0x01, 1, "Witness UTXO", "input witness utxo", "Witness utxo"),
        keyed(0x02, "input partial signature for pubkey"),
        field(0x03, 1, "Sighash Type", "input sighash type", "Sighash type"),
        field(0x04, 1, "redeemScript", "input redeemScript", "Input redeemScript"),
        field(0x05, 1, "witnessScript", "input witnessScript", "Input witnessScript"),
        keyed(0x06, "pubkey derivation path"),
        field(0x07, 1, "Final scriptSig", "input final scriptSig", "Final scriptSig"),
        field(0x08, 1, "Final scriptWitness", "input final scriptWitness", "Final scriptWitness"),
        field(0x0a, 21, "RIPEMD160 Preimage", "input ripemd160 preimage", ""),
        field(0x0b, 33, "SHA256 Preimage", "input sha256 preimage", ""),
        field(0x0c, 21, "Hash160 Preimage", "input hash160 preimage", ""),
        field(0x0d, 33, "Hash256 Preimage", "input hash256 preimage", ""),
        field(0x13, 1, "Taproot Key Path Signature", "input Taproot key signature", "Input Taproot key signature"),
        field(
            0x14,
            65,
            "Taproot Script Path Signature",
            "input Taproot script signature",
            "Input Taproot script signature",
        ),
        keyed(0x15, "input Taproot leaf script"),
        field(0x16, 33, "Taproot BIP32 Keypath", "input Taproot BIP32 keypath", "Input Taproot BIP32 keypath"),
        field(0x17, 1, "Taproot Internal Key", "input Taproot internal key", "Input Taproot internal key"),
        field(0x18, 1, "Taproot Merkle Root", "input Taproot merkle root", "Input Taproot merkle root"),
    ],
    version_two: &[
        new(0x0e, "Previous TXID", "Previous txid"),
        new(0x0f, "Previous Output's Index", "Previous output's index"),
        new(0x10, "Sequence", "Sequence"),
        new(0x11, "Required Time Based Locktime", "Required time based locktime"),
        new(0x12, "Required Height Based Locktime", "Required height based locktime"),
    ],
    musig2: &[
        field(
            0x1a,
            34,
            "MuSig2 Participants Pubkeys",
            "input participant pubkeys for an aggregate key",
            "Input musig2 participants pubkeys aggregate",
        ),
        keyed(0x1b, "input musig2 pubnonce"),
        keyed(0x1c, "input musig2 partial sig"),
    ],
};

pub const OUTPUT: Map = Map {
    name: "Output",
    fields: &[
        field(0x00, 1, "redeemScript", "output redeemScript", "Output redeemScript"),
        field(0x01, 1, "witnessScript", "output witnessScript", "Output witnessScript"),
        keyed(0x02, "pubkey derivation path"),
        field(0x05, 1, "Taproot Internal Key", "output Taproot internal key", "Output Taproot internal key"),
        field(0x06, 1, "Taproot Tree Key", "output Taproot tree", "Output Taproot tree"),
        field(0x07, 33, "Taproot BIP32 Keypath", "output Taproot BIP32 keypath", "Output Taproot BIP32 keypath"),
    ],
    version_two: &[new(0x03, "Amount", "Output amount"), new(0x04, "Script", "Output script")],
    musig2: &[field(
        0x08,
        34,
        "MuSig2 Participants Pubkeys",
        "output participant pubkeys for an aggregate key",
        "Output musig2 participants pubkeys aggregate",
    )],
};

/// Checks the keys of one map.
pub struct Keys<'r> {
    map: &'static Map,
    rules: &'r Rules,
    /// Whether the map may have fields of version 2.
    is_new: bool,
    seen: BTreeSet<Bytes>,
}

impl<'r> Keys<'r> {
    /// A checker of a map by the rules of a release. Without `is_new` it refuses fields of version 2.
    pub fn new(map: &'static Map, rules: &'r Rules, is_new: bool) -> Self {
        Self { map, rules, is_new, seen: BTreeSet::new() }
    }

    /// Checks a key. Returns whether its type is known.
    pub fn check(&mut self, kind: u64, key: &[u8]) -> Result<bool> {
        let known = self.check_length(kind, key)?;
        self.check_first(kind, key)?;
        Ok(known)
    }

    /// Checks the length of a key of a known type. Returns whether the type is known.
    pub fn check_length(&self, kind: u64, key: &[u8]) -> Result<bool> {
        if let Some(field) = self.field(kind) {
            if field.key_len.is_some_and(|len| len != key.len()) {
                return Err(self.wrong_length(field));
            }
            return Ok(true);
        }
        let field = self.map.version_two.iter().find(|field| field.kind == kind && self.rules.psbt_v2);
        let Some(field) = field else { return Ok(false) };
        if key.len() != 1 {
            return Err(error(&format!("Size of key was not 1 for the type {} {}", self.map.name, field.name)));
        }
        if !self.is_new {
            return Err(forbidden(field));
        }
        Ok(true)
    }

    fn field(&self, kind: u64) -> Option<&'static Field> {
        let musig2: &[Field] = if self.rules.psbt_musig2 { self.map.musig2 } else { &[] };
        self.map.fields.iter().chain(musig2).find(|field| field.kind == kind)
    }

    fn wrong_length(&self, field: &Field) -> DecodeError {
        let len = field.key_len.unwrap_or_default();
        let text = match (field.subject, len) {
            _ if self.rules.psbt_v2 => {
                format!("Size of key was not {len} for the type {} {}", self.map.name, field.name)
            }
            ("", _) => {
                let what = field.duplicate.trim_start_matches("input ");
                format!("Size of key was not the expected size for the type {what}")
            }
            (what, 1) => format!("{what} key is more than one byte type"),
            (what, 33) => format!("{what} key is not at 33 bytes"),
            (what, _) => format!("{what} key is not {len} bytes"),
        };
        error(&text)
    }

    /// Refuses a second field with this key.
    pub fn check_first(&mut self, kind: u64, key: &[u8]) -> Result<()> {
        if self.seen.insert(key.to_vec()) {
            return Ok(());
        }
        let what = match self.field(kind) {
            _ if self.rules.psbt_v2 => {
                format!("{} key \"{}\" already provided", self.map.name.to_lowercase(), key.to_lower_hex_string())
            }
            Some(field) => format!("{} already provided", field.duplicate),
            None if kind == PROPRIETARY => "proprietary key already found".to_owned(),
            None => "key for unknown value already provided".to_owned(),
        };
        Err(error(&format!("Duplicate Key, {what}")))
    }
}

/// The error for a field of version 2 in version 0.
pub fn forbidden(field: &NewField) -> DecodeError {
    error(&format!("{} is not allowed in PSBTv0", field.presence))
}
