//! The encodings of ECDSA signatures and public keys that flags require.

use secp256k1::constants::{PUBLIC_KEY_SIZE, UNCOMPRESSED_PUBLIC_KEY_SIZE};

use super::crypto::has_low_s;
use super::sighash::{SIGHASH_ALL, SIGHASH_ANYONECANPAY, SIGHASH_SINGLE};
use super::{Flags, ScriptError, SigVersion};

/// Longest strict DER signature with its hash type, in bytes.
const MAX_SIGNATURE_SIZE: usize = 73;
const DER_SEQUENCE: u8 = 0x30;
const DER_INTEGER: u8 = 0x02;

/// Checks the encoding of a signature with its hash type. An empty signature passes: scripts use it to make a check
/// fail. The error is [`ScriptError::SigDer`], [`ScriptError::SigHighS`] or [`ScriptError::SigHashtype`].
pub fn check_signature_encoding(signature: &[u8], flags: Flags) -> Result<(), ScriptError> {
    let Some((hash_type, der)) = signature.split_last() else {
        return Ok(());
    };
    if flags.intersects(Flags::DERSIG | Flags::LOW_S | Flags::STRICTENC) && !is_strict_der(signature) {
        return Err(ScriptError::SigDer);
    }
    if flags.contains(Flags::LOW_S) && !has_low_s(der) {
        return Err(ScriptError::SigHighS);
    }
    let outputs = u32::from(*hash_type) & !SIGHASH_ANYONECANPAY;
    if flags.contains(Flags::STRICTENC) && !(SIGHASH_ALL..=SIGHASH_SINGLE).contains(&outputs) {
        return Err(ScriptError::SigHashtype);
    }
    Ok(())
}

/// Checks the encoding of a public key. The error is [`ScriptError::PubkeyType`] or [`ScriptError::WitnessPubkeyType`].
pub fn check_pubkey_encoding(pubkey: &[u8], flags: Flags, sig_version: SigVersion) -> Result<(), ScriptError> {
    let compressed = matches!(pubkey, [2 | 3, ..] if pubkey.len() == PUBLIC_KEY_SIZE);
    let uncompressed = matches!(pubkey, [4, ..] if pubkey.len() == UNCOMPRESSED_PUBLIC_KEY_SIZE);
    if flags.contains(Flags::STRICTENC) && !compressed && !uncompressed {
        return Err(ScriptError::PubkeyType);
    }
    if flags.contains(Flags::WITNESS_PUBKEYTYPE) && sig_version == SigVersion::WitnessV0 && !compressed {
        return Err(ScriptError::WitnessPubkeyType);
    }
    Ok(())
}

/// Whether a signature with its hash type is strict DER (BIP66).
fn is_strict_der(signature: &[u8]) -> bool {
    // 30 [length of R and S] 02 [length] R 02 [length] S [hash type]
    let [DER_SEQUENCE, total, integers @ .., _hash_type] = signature else {
        return false;
    };
    signature.len() <= MAX_SIGNATURE_SIZE
        && usize::from(*total) == integers.len()
        && strip_integer(integers).and_then(strip_integer).is_some_and(<[u8]>::is_empty)
}

/// The bytes after a leading DER integer; `None` if the integer is truncated, negative or not minimal.
fn strip_integer(bytes: &[u8]) -> Option<&[u8]> {
    let [DER_INTEGER, length, rest @ ..] = bytes else {
        return None;
    };
    let (integer, rest) = rest.split_at_checked(usize::from(*length))?;
    let valid = match integer {
        [] | [0x80..=0xff, ..] => false,
        // A leading zero must keep the number positive.
        [0, second, ..] => second & 0x80 != 0,
        _ => true,
    };
    valid.then_some(rest)
}
