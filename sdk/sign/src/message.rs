//! Messages that are signed with the key of an address (signmessage, verifymessage).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bitcoin::hashes::Hash as _;
use bitcoin::sign_message::signed_msg_hash;
use bitcoin::{PubkeyHash, PublicKey};
use secp256k1::Message;
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};

use super::secp::SECP;
use super::wif::WifKey;

/// What is added to a recovery id in a signature's first byte.
const FIRST_BYTE: u8 = 27;
/// What is added to it where the public key is written compressed.
const COMPRESSED: u8 = 4;

/// The text of a signature is no Base64.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("Malformed base64 encoding")]
pub struct MalformedSignature;

fn digest(message: &str) -> Message {
    Message::from_digest(signed_msg_hash(message).to_byte_array())
}

/// Signs a message as `signmessage` does: Base64 of a byte that tells the public key, and the compact signature. None for a key
/// that is no number of the curve, which [`WifKey::parse`] has ruled out.
pub fn sign_message(key: &WifKey, message: &str) -> Option<String> {
    let signature = key.with_secret(|secret| SECP.sign_ecdsa_recoverable(&digest(message), secret))?;
    let (recovery, compact) = signature.serialize_compact();
    let recovery = u8::try_from(recovery.to_i32()).ok()?;
    let first = FIRST_BYTE + recovery + if key.is_compressed() { COMPRESSED } else { 0 };
    Some(STANDARD.encode([&[first][..], &compact].concat()))
}

/// The hash of the public key that signed a message; none for what no key can have signed.
///
/// # Errors
/// For text that is no Base64.
pub fn message_signer(signature: &str, message: &str) -> Result<Option<PubkeyHash>, MalformedSignature> {
    let bytes = STANDARD.decode(signature).map_err(|_| MalformedSignature)?;
    let Some((first, compact)) = bytes.split_first() else { return Ok(None) };
    // As in bitcoind, only three bits of the first byte count.
    let first = first.wrapping_sub(FIRST_BYTE);
    let recovered = RecoveryId::from_i32(i32::from(first & 3))
        .and_then(|recovery| RecoverableSignature::from_compact(compact, recovery))
        .and_then(|signature| SECP.recover_ecdsa(&digest(message), &signature));
    Ok(recovered.ok().map(|inner| PublicKey { compressed: first & COMPRESSED != 0, inner }.pubkey_hash()))
}
