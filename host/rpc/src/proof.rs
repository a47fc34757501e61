//! A fingerprint of accepted credentials.

use std::sync::LazyLock;

use bitcoin::secp256k1::rand::{RngCore, rngs::OsRng};
use http::HeaderValue;

use super::auth::hmac;

/// The HMAC of credentials, keyed with a random key of this process.
pub(super) type Proof = [u8; 32];

pub(super) fn prove(header: &HeaderValue) -> Proof {
    static KEY: LazyLock<[u8; 32]> = LazyLock::new(|| {
        let mut key = [0; 32];
        OsRng.fill_bytes(&mut key);
        key
    });
    hmac(&*KEY, header.as_bytes())
}
