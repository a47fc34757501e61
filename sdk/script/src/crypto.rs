//! Signature verification and the taproot commitment. It handles no secrets.

use std::sync::LazyLock;

use bitcoin::hashes::{Hash, HashEngine};
use bitcoin::taproot::{TapNodeHash, TapTweakHash};
use secp256k1::{Message, Parity, PublicKey, Scalar, Secp256k1, VerifyOnly, XOnlyPublicKey, ecdsa, schnorr};

static SECP: LazyLock<Secp256k1<VerifyOnly>> = LazyLock::new(Secp256k1::verification_only);

/// Verifies an ECDSA signature without hash type. The signature may be lax DER (valid before BIP66), and may have
/// a high S. The public key may be compressed, uncompressed or hybrid.
pub(super) fn verify_ecdsa(message: &Message, signature: &[u8], pubkey: &[u8]) -> bool {
    let Ok(pubkey) = PublicKey::from_slice(pubkey) else {
        return false;
    };
    let Ok(mut signature) = ecdsa::Signature::from_der_lax(signature) else {
        return false;
    };
    // The library accepts only low S; consensus accepts both.
    signature.normalize_s();
    SECP.verify_ecdsa(message, &signature, &pubkey).is_ok()
}

/// Verifies a Schnorr signature of 64 bytes (BIP340).
pub(super) fn verify_schnorr(message: &Message, signature: &[u8], pubkey: &[u8; 32]) -> bool {
    let (Ok(pubkey), Ok(signature)) = (XOnlyPublicKey::from_slice(pubkey), schnorr::Signature::from_slice(signature))
    else {
        return false;
    };
    SECP.verify_schnorr(&signature, message, &pubkey).is_ok()
}

/// Whether the S of a signature without hash type is at most half the group order.
pub(super) fn has_low_s(signature: &[u8]) -> bool {
    let Ok(signature) = ecdsa::Signature::from_der_lax(signature) else {
        return false;
    };
    let mut normal = signature;
    normal.normalize_s();
    normal == signature
}

/// Whether `output` is the internal key tweaked with the script tree's root, with this parity (BIP341).
pub(super) fn commits_to_tree(output: &[u8; 32], internal: &[u8; 32], root: TapNodeHash, parity: Parity) -> bool {
    let mut engine = TapTweakHash::engine();
    engine.input(internal);
    engine.input(root.as_ref());
    let tweak = Scalar::from_be_bytes(TapTweakHash::from_engine(engine).to_byte_array());
    match (XOnlyPublicKey::from_slice(internal), XOnlyPublicKey::from_slice(output), tweak) {
        (Ok(internal), Ok(output), Ok(tweak)) => internal.tweak_add_check(&SECP, &output, parity, tweak),
        _ => false,
    }
}
