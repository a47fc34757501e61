//! Signs and verifies messages with the key of an address (signmessage, verifymessage).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bitcoin::hashes::Hash as _;
use bitcoin::sign_message::signed_msg_hash;
use bitcoin::{PubkeyHash, PublicKey};
use outrigger_values::RpcError;
use secp256k1::Message;
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};

use super::digest::SignatureKind;
use super::keys::sign_digest;
use super::secp::SECP;
use super::wif::WifKey;

/// The first byte of a message signature, before the recovery id and the flag are added.
const FIRST_BYTE: u8 = 27;
/// The flag for a compressed public key in the first byte.
const COMPRESSED: u8 = 4;

/// Signs a message as `signmessage` does. Returns Base64 of the recovery byte and the compact signature. `None` for an
/// invalid key, which [`WifKey::parse`] rules out.
pub fn sign_message(key: &WifKey, message: &str) -> Option<String> {
    let signature =
        key.with_secret(|secret| sign_digest(secret, message_digest(message), &SignatureKind::EcdsaRecoverable))?;
    message_signature(&signature, key.is_compressed())
}

/// The digest of a message, for [`SignatureKind::EcdsaRecoverable`].
pub fn message_digest(message: &str) -> [u8; 32] {
    signed_msg_hash(message).to_byte_array()
}

/// The text of a message signature; `None` if the bytes are not a recoverable signature. `compressed`: the public key's form.
pub fn message_signature(signature: &[u8], compressed: bool) -> Option<String> {
    let (recovery, compact) =
        signature.split_first().filter(|(recovery, compact)| **recovery < 4 && compact.len() == 64)?;
    let first = FIRST_BYTE + recovery + if compressed { COMPRESSED } else { 0 };
    Some(STANDARD.encode([&[first][..], compact].concat()))
}

/// The public key hash of a message's signer; `None` if no key can have signed. Error -3 for invalid Base64.
pub fn message_signer(signature: &str, message: &str) -> Result<Option<PubkeyHash>, RpcError> {
    let bytes = STANDARD.decode(signature).map_err(|_| RpcError::type_error("Malformed base64 encoding"))?;
    let Some((first, compact)) = bytes.split_first() else { return Ok(None) };
    // bitcoind ignores the other bits of the first byte, too.
    let first = first.wrapping_sub(FIRST_BYTE);
    let recovered = RecoveryId::from_i32(i32::from(first & 3))
        .and_then(|recovery| RecoverableSignature::from_compact(compact, recovery))
        .and_then(|signature| SECP.recover_ecdsa(&Message::from_digest(message_digest(message)), &signature));
    Ok(recovered.ok().map(|inner| PublicKey { compressed: first & COMPRESSED != 0, inner }.pubkey_hash()))
}
