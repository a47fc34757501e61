//! The secp256k1 context, and the computation of taproot output keys.

use std::sync::LazyLock;

use bitcoin::TapNodeHash;
use bitcoin::hashes::Hash;
use bitcoin::key::TapTweak;
use secp256k1::{All, Secp256k1, XOnlyPublicKey};

/// The signing context of the process. Creating one costs as much as a signature.
pub(super) static SECP: LazyLock<Secp256k1<All>> = LazyLock::new(Secp256k1::new);

/// The output key of an internal key and a script tree (BIP341); `None` if the internal key is not on the curve.
pub(super) fn output_key(internal_key: [u8; 32], merkle_root: Option<[u8; 32]>) -> Option<[u8; 32]> {
    let internal_key = XOnlyPublicKey::from_slice(&internal_key).ok()?;
    let root = merkle_root.map(TapNodeHash::from_byte_array);
    let (output_key, _) = internal_key.tap_tweak(&SECP, root);
    Some(output_key.to_x_only_public_key().serialize())
}
