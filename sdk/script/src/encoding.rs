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

#[cfg(test)]
mod tests {
    use super::*;

    /// R = 1, S = 2, type ALL.
    const SIGNATURE: [u8; 9] = [0x30, 6, 2, 1, 1, 2, 1, 2, 1];

    #[test]
    fn der_is_strict() {
        assert!(is_strict_der(&SIGNATURE));
        for (index, value) in [(0, 0x31), (1, 5), (1, 7), (2, 3), (3, 0), (3, 2), (4, 0x81), (5, 1), (6, 2), (7, 0x80)]
        {
            let mut signature = SIGNATURE;
            signature[index] = value;
            assert!(!is_strict_der(&signature), "{index} {value}");
        }
        assert!(is_strict_der(&[0x30, 7, 2, 2, 0, 0x80, 2, 1, 2, 1]));
        assert!(!is_strict_der(&[0x30, 7, 2, 2, 0, 0x7f, 2, 1, 2, 1]));
        assert!(!is_strict_der(&SIGNATURE[..8]));
        // The longest signature has integers of 33 bytes.
        let of_size =
            |r: usize| [&[0x30, 39 + r as u8 - 2, 2, r as u8][..], &vec![1; r], &[2, 33], &[1; 33], &[1]].concat();
        assert_eq!((of_size(33).len(), is_strict_der(&of_size(33))), (73, true));
        assert_eq!((of_size(34).len(), is_strict_der(&of_size(34))), (74, false));
        assert!(!is_strict_der(&[]));
    }

    #[test]
    fn hash_types_are_known_under_strictenc() {
        for (hash_type, expected) in [
            (0, Err(ScriptError::SigHashtype)),
            (1, Ok(())),
            (3, Ok(())),
            (4, Err(ScriptError::SigHashtype)),
            (0x80, Err(ScriptError::SigHashtype)),
            (0x83, Ok(())),
        ] {
            let mut signature = SIGNATURE;
            signature[8] = hash_type;
            assert_eq!(check_signature_encoding(&signature, Flags::STRICTENC), expected, "{hash_type}");
            assert_eq!(check_signature_encoding(&signature, Flags::DERSIG), Ok(()), "{hash_type}");
        }
        assert_eq!(check_signature_encoding(&[], Flags::STANDARD), Ok(()));
    }

    #[test]
    fn keys_have_a_known_form() {
        let key = |header: u8, length: usize| [vec![header], vec![1; length - 1]].concat();
        let base = |key: &[u8]| check_pubkey_encoding(key, Flags::STANDARD, SigVersion::Base);
        let witness = |key: &[u8]| check_pubkey_encoding(key, Flags::STANDARD, SigVersion::WitnessV0);
        assert_eq!((base(&key(2, 33)), witness(&key(3, 33))), (Ok(()), Ok(())));
        assert_eq!((base(&key(4, 65)), witness(&key(4, 65))), (Ok(()), Err(ScriptError::WitnessPubkeyType)));
        for bad in [vec![], key(4, 33), key(2, 65), key(6, 65), key(5, 33), key(2, 32)] {
            assert_eq!(base(&bad), Err(ScriptError::PubkeyType));
            assert_eq!(check_pubkey_encoding(&bad, Flags::CONSENSUS, SigVersion::WitnessV0), Ok(()));
        }
    }
}
