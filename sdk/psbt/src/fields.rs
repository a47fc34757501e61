//! The known fields of PSBTs, and bitcoind's messages about their keys.

use std::collections::BTreeSet;

use outrigger_standard::release::Rules;

use crate::Bytes;
use crate::reader::{PROPRIETARY, Result, ensure};

/// The length of a key whose own rule checks it.
const CHECKED_ELSEWHERE: usize = 0;

/// A field of a map.
pub struct Field {
    kind: u64,
    /// The length of its key with the type, in bytes.
    key_len: usize,
    /// Its name since Bitcoin Core 32, without that of the map.
    name: &'static str,
    /// Its name as a duplicate until Bitcoin Core 31. Of a field of version 2: its name where version 0 forbids it.
    duplicate: &'static str,
    /// The message for a key of another length until Bitcoin Core 31.
    length: &'static str,
}

const fn field(kind: u64, key_len: usize, name: &'static str, duplicate: &'static str, length: &'static str) -> Field {
    Field { kind, key_len, name, duplicate, length }
}

/// A map of a PSBT: its name in messages, its fields, those of version 2 alone (BIP 370), and those of MuSig2 (BIP 373).
pub struct Map {
    name: &'static str,
    fields: &'static [Field],
    version_two: &'static [Field],
    musig2: &'static [Field],
}

pub const GLOBAL: Map = Map {
    name: "Global",
    fields: &[
        field(0x00, 1, "Unsigned TX", "unsigned tx", "Global unsigned tx key is more than one byte type"),
        field(0x01, 79, "XPUB", "", "Size of key was not the expected size for the type global xpub"),
        field(0xfb, 1, "PSBT Version", "version", "Global version key is more than one byte type"),
    ],
    version_two: &[
        field(0x02, 1, "Transaction Version", "PSBT_GLOBAL_TX_VERSION", ""),
        field(0x03, 1, "Fallback Locktime", "PSBT_GLOBAL_FALLBACK_LOCKTIME", ""),
        field(0x04, 1, "Input Count", "PSBT_GLOBAL_INPUT_COUNT", ""),
        field(0x05, 1, "Output Count", "PSBT_GLOBAL_OUTPUT_COUNT", ""),
        field(0x06, 1, "TX Modifiable Flags", "PSBT_GLOBAL_TX_MODIFIABLE", ""),
    ],
    musig2: &[],
};

pub const INPUT: Map = Map {
    name: "Input",
    fields: &[
        field(0x00, 1, "Non-witness UTXO", "input non-witness utxo", "Non-witness utxo key is more than one byte type"),
        field(0x01, 1, "Witness UTXO", "input witness utxo", "Witness utxo key is more than one byte type"),
        field(0x02, CHECKED_ELSEWHERE, "", "input partial signature for pubkey", ""),
        field(0x03, 1, "Sighash Type", "input sighash type", "Sighash type key is more than one byte type"),
        field(0x04, 1, "redeemScript", "input redeemScript", "Input redeemScript key is more than one byte type"),
        field(0x05, 1, "witnessScript", "input witnessScript", "Input witnessScript key is more than one byte type"),
        field(0x06, CHECKED_ELSEWHERE, "", "pubkey derivation path", ""),
        field(0x07, 1, "Final scriptSig", "input final scriptSig", "Final scriptSig key is more than one byte type"),
        field(
            0x08,
            1,
            "Final scriptWitness",
            "input final scriptWitness",
            "Final scriptWitness key is more than one byte type",
        ),
        field(
            0x0a,
            21,
            "RIPEMD160 Preimage",
            "input ripemd160 preimage",
            "Size of key was not the expected size for the type ripemd160 preimage",
        ),
        field(
            0x0b,
            33,
            "SHA256 Preimage",
            "input sha256 preimage",
            "Size of key was not the expected size for the type sha256 preimage",
        ),
        field(
            0x0c,
            21,
            "Hash160 Preimage",
            "input hash160 preimage",
            "Size of key was not the expected size for the type hash160 preimage",
        ),
        field(
            0x0d,
            33,
            "Hash256 Preimage",
            "input hash256 preimage",
            "Size of key was not the expected size for the type hash256 preimage",
        ),
        field(
            0x13,
            1,
            "Taproot Key Path Signature",
            "input Taproot key signature",
            "Input Taproot key signature key is more than one byte type",
        ),
        field(
            0x14,
            65,
            "Taproot Script Path Signature",
            "input Taproot script signature",
            "Input Taproot script signature key is not 65 bytes",
        ),
        field(0x15, CHECKED_ELSEWHERE, "", "input Taproot leaf script", ""),
        field(
            0x16,
            33,
            "Taproot BIP32 Keypath",
            "input Taproot BIP32 keypath",
            "Input Taproot BIP32 keypath key is not at 33 bytes",
        ),
        field(
            0x17,
            1,
            "Taproot Internal Key",
            "input Taproot internal key",
            "Input Taproot internal key key is more than one byte type",
        ),
        field(
            0x18,
            1,
            "Taproot Merkle Root",
            "input Taproot merkle root",
            "Input Taproot merkle root key is more than one byte type",
        ),
    ],
    version_two: &[
        field(0x0e, 1, "Previous TXID", "Previous txid", ""),
        field(0x0f, 1, "Previous Output's Index", "Previous output's index", ""),
        field(0x10, 1, "Sequence", "Sequence", ""),
        field(0x11, 1, "Required Time Based Locktime", "Required time based locktime", ""),
        field(0x12, 1, "Required Height Based Locktime", "Required height based locktime", ""),
    ],
    musig2: &[
        field(
            0x1a,
            34,
            "MuSig2 Participants Pubkeys",
            "input participant pubkeys for an aggregate key",
            "Input musig2 participants pubkeys aggregate key is not 34 bytes",
        ),
        field(0x1b, CHECKED_ELSEWHERE, "", "input musig2 pubnonce", ""),
        field(0x1c, CHECKED_ELSEWHERE, "", "input musig2 partial sig", ""),
    ],
};

pub const OUTPUT: Map = Map {
    name: "Output",
    fields: &[
        field(0x00, 1, "redeemScript", "output redeemScript", "Output redeemScript key is more than one byte type"),
        field(0x01, 1, "witnessScript", "output witnessScript", "Output witnessScript key is more than one byte type"),
        field(0x02, CHECKED_ELSEWHERE, "", "pubkey derivation path", ""),
        field(
            0x05,
            1,
            "Taproot Internal Key",
            "output Taproot internal key",
            "Output Taproot internal key key is more than one byte type",
        ),
        field(0x06, 1, "Taproot Tree Key", "output Taproot tree", "Output Taproot tree key is more than one byte type"),
        field(
            0x07,
            33,
            "Taproot BIP32 Keypath",
            "output Taproot BIP32 keypath",
            "Output Taproot BIP32 keypath key is not at 33 bytes",
        ),
    ],
    version_two: &[field(0x03, 1, "Amount", "Output amount", ""), field(0x04, 1, "Script", "Output script", "")],
    musig2: &[field(
        0x08,
        34,
        "MuSig2 Participants Pubkeys",
        "output participant pubkeys for an aggregate key",
        "Output musig2 participants pubkeys aggregate key is not 34 bytes",
    )],
};

/// Checks the keys of one map.
pub struct Keys {
    map: &'static Map,
    rules: Rules,
    seen: BTreeSet<Bytes>,
}

impl Keys {
    pub fn new(map: &'static Map, rules: Rules) -> Self {
        Self { map, rules, seen: BTreeSet::new() }
    }

    /// Checks the length of a key of a known type. Returns whether the type is known. `forbidden` refuses a field of
    /// version 2 by its name.
    pub fn check_length(&self, kind: u64, key: &[u8], forbidden: impl FnOnce(&str) -> Result<()>) -> Result<bool> {
        let find = |fields: &'static [Field], known: bool| fields.iter().find(|field| known && field.kind == kind);
        let common = find(self.map.fields, true).or_else(|| find(self.map.musig2, self.rules.psbt_musig2));
        let of_version_two = find(self.map.version_two, self.rules.psbt_v2);
        let Some(field) = common.or(of_version_two) else { return Ok(false) };
        let is_right = field.key_len == CHECKED_ELSEWHERE || field.key_len == key.len();
        if self.rules.psbt_v2 {
            let message =
                format!("Size of key was not {} for the type {} {}", field.key_len, self.map.name, field.name);
            ensure(is_right, &message)?;
        } else {
            ensure(is_right, field.length)?;
        }
        of_version_two.map_or(Ok(()), |field| forbidden(field.duplicate))?;
        Ok(true)
    }

    /// Refuses a second field with this key.
    pub fn check_first(&mut self, kind: u64, key: &[u8]) -> Result<()> {
        if self.seen.insert(key.to_vec()) {
            return Ok(());
        }
        if self.rules.psbt_v2 {
            let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            let map = self.map.name.to_lowercase();
            return ensure(false, &format!("Duplicate Key, {map} key \"{hex}\" already provided"));
        }
        let musig2: &[Field] = if self.rules.psbt_musig2 { self.map.musig2 } else { &[] };
        let field = self.map.fields.iter().chain(musig2).find(|field| field.kind == kind);
        ensure(
            false,
            &match field.map(|field| field.duplicate) {
                Some(name) => format!("Duplicate Key, {name} already provided"),
                None if kind == PROPRIETARY => "Duplicate Key, proprietary key already found".to_owned(),
                None => "Duplicate Key, key for unknown value already provided".to_owned(),
            },
        )
    }
}
