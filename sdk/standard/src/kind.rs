//! Classifies scriptPubKeys into the standard forms (bitcoind's `Solver`).

use bitcoin::Script;

use outrigger_script::limits::MAX_SCRIPT_ELEMENT_SIZE;
use outrigger_script::parse::{self, OP_PUSHDATA4, Op, Reader, witness_program};

/// The limit of OP_CHECKMULTISIG.
const MAX_MULTISIG_KEYS: u8 = 20;
/// The largest opcode defined outside of tapscript: OP_NOP10.
const MAX_OPCODE: u8 = 0xb9;
const ANCHOR_PROGRAM: [u8; 2] = [0x4e, 0x73];

/// The form of a scriptPubKey. Its parts borrow from the script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScriptKind<'a> {
    /// None of the standard forms.
    NonStandard,
    /// P2PK.
    PubKey {
        /// The key of 33 or 65 bytes. It may be off the curve.
        key: &'a [u8],
    },
    /// P2PKH.
    PubKeyHash {
        /// HASH160 of the key.
        hash: &'a [u8; 20],
    },
    /// P2SH (BIP 16).
    ScriptHash {
        /// HASH160 of the script.
        hash: &'a [u8; 20],
    },
    /// Bare multisig.
    Multisig {
        /// The number of required signatures, from 1 to the number of keys.
        required: u8,
        /// The keys, of 33 or 65 bytes each.
        keys: Vec<&'a [u8]>,
    },
    /// An OP_RETURN output: carries data and cannot be spent.
    NullData,
    /// P2WPKH (BIP 141).
    WitnessV0KeyHash {
        /// HASH160 of the key.
        hash: &'a [u8; 20],
    },
    /// P2WSH (BIP 141).
    WitnessV0ScriptHash {
        /// SHA-256 of the witness script.
        hash: &'a [u8; 32],
    },
    /// P2TR (BIP 341).
    Taproot {
        /// The x-only output key.
        key: &'a [u8; 32],
    },
    /// Pay-to-anchor: anyone can spend it, to bump the fee.
    Anchor,
    /// An undefined witness program.
    WitnessUnknown {
        /// The version, 1 to 16.
        version: u8,
        /// The program of 2 to 40 bytes.
        program: &'a [u8],
    },
}

impl ScriptKind<'_> {
    /// bitcoind's name, the member `type` in results.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NonStandard => "nonstandard",
            Self::PubKey { .. } => "pubkey",
            Self::PubKeyHash { .. } => "pubkeyhash",
            Self::ScriptHash { .. } => "scripthash",
            Self::Multisig { .. } => "multisig",
            Self::NullData => "nulldata",
            Self::WitnessV0KeyHash { .. } => "witness_v0_keyhash",
            Self::WitnessV0ScriptHash { .. } => "witness_v0_scripthash",
            Self::Taproot { .. } => "witness_v1_taproot",
            Self::Anchor => "anchor",
            Self::WitnessUnknown { .. } => "witness_unknown",
        }
    }
}

/// Classifies a scriptPubKey.
pub fn classify(script: &Script) -> ScriptKind<'_> {
    let bytes = script.as_bytes();
    if let [0xa9, 20, hash @ .., 0x87] = bytes
        && let Ok(hash) = hash.try_into()
    {
        return ScriptKind::ScriptHash { hash };
    }
    if let Some((version, program)) = witness_program(bytes) {
        return classify_witness(version, program);
    }
    match bytes {
        [0x6a, data @ ..] if parse::is_push_only(data) => ScriptKind::NullData,
        [length, key @ .., 0xac] if key.len() == usize::from(*length) && is_key_size(key) => ScriptKind::PubKey { key },
        [0x76, 0xa9, 20, hash @ .., 0x88, 0xac] => {
            hash.try_into().map_or(ScriptKind::NonStandard, |hash| ScriptKind::PubKeyHash { hash })
        }
        _ => multisig(bytes).unwrap_or(ScriptKind::NonStandard),
    }
}

/// Whether a script is well-formed, with defined opcodes and pushes within the limit of an element.
pub fn has_valid_ops(script: &Script) -> bool {
    Reader::new(script.as_bytes())
        .all(|op| op.is_ok_and(|op| op.opcode <= MAX_OPCODE && op.data.len() <= MAX_SCRIPT_ELEMENT_SIZE))
}

fn classify_witness(version: u8, program: &[u8]) -> ScriptKind<'_> {
    match (version, program.len()) {
        (0, 20) => program.try_into().map_or(ScriptKind::NonStandard, |hash| ScriptKind::WitnessV0KeyHash { hash }),
        (0, 32) => program.try_into().map_or(ScriptKind::NonStandard, |hash| ScriptKind::WitnessV0ScriptHash { hash }),
        (0, _) => ScriptKind::NonStandard,
        (1, 32) => program.try_into().map_or(ScriptKind::NonStandard, |key| ScriptKind::Taproot { key }),
        (1, 2) if program == ANCHOR_PROGRAM => ScriptKind::Anchor,
        _ => ScriptKind::WitnessUnknown { version, program },
    }
}

/// Whether a public key's length matches its first byte, hybrid keys included.
fn is_key_size(key: &[u8]) -> bool {
    matches!((key.first(), key.len()), (Some(2 | 3), 33) | (Some(4 | 6 | 7), 65))
}

fn multisig(script: &[u8]) -> Option<ScriptKind<'_>> {
    let script = script.strip_suffix(&[0xae])?;
    let mut reader = Reader::new(script);
    let required = number(reader.next()?.ok()?, 1)?;
    let mut keys = Vec::new();
    let count = loop {
        let op = reader.next()?.ok()?;
        if !is_key_size(op.data) {
            break number(op, required)?;
        }
        keys.push(op.data);
    };
    (keys.len() == usize::from(count) && reader.position() == script.len())
        .then_some(ScriptKind::Multisig { required, keys })
}

/// A minimally pushed number, from `least` to the most keys.
fn number(op: Op<'_>, least: u8) -> Option<u8> {
    let number = match parse::small_number(op.opcode) {
        Some(number) => number,
        None if op.opcode == 0 || op.opcode > OP_PUSHDATA4 || !parse::is_minimal_push(op.opcode, op.data) => {
            return None;
        }
        // Numbers up to 20 take one byte. A longer push is too large or not minimal.
        None => match op.data {
            [number] => *number,
            _ => return None,
        },
    };
    (least..=MAX_MULTISIG_KEYS).contains(&number).then_some(number)
}
