//! A fingerprint of accepted credentials.

use std::sync::LazyLock;

use bitcoin::hashes::{Hash, HashEngine, Hmac, HmacEngine, sha256};
use bitcoin::secp256k1::rand::{RngCore, rngs::OsRng};
use http::HeaderValue;

/// The HMAC of credentials, keyed with a random key of this process.
pub(super) type Proof = [u8; 32];

pub(super) fn prove(header: &HeaderValue) -> Proof {
    static KEY: LazyLock<[u8; 32]> = LazyLock::new(|| {
        let mut key = [0; 32];
        OsRng.fill_bytes(&mut key);
        key
    });
    let mut engine = HmacEngine::<sha256::Hash>::new(&*KEY);
    engine.input(header.as_bytes());
    Hmac::<sha256::Hash>::from_engine(engine).to_byte_array()
}
