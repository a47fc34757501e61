//! Private keys in WIF: Base58Check of the network's prefix, 32 bytes, and 01 if the public key is compressed.
//!
//! Secret bytes are wiped when they are dropped.

use bitcoin::{NetworkKind, base58};
use secp256k1::{PublicKey, SecretKey};
use zeroize::Zeroizing;

use super::secp::SECP;

const MAIN_PREFIX: u8 = 0x80;
const TEST_PREFIX: u8 = 0xef;
/// The last byte of a key with a compressed public key.
const COMPRESSED_MARK: u8 = 1;
const SECRET_LEN: usize = 32;
/// The greatest length of a key's text. Longer text is not decoded.
const MAX_TEXT_LEN: usize = 64;

/// A private key, and the form of its public key. It is wiped on drop and never printed.
pub struct WifKey {
    secret: Box<Zeroizing<[u8; SECRET_LEN]>>,
    public_key: Vec<u8>,
}

impl WifKey {
    /// Parses a key of the network's kind. Fails for other networks' keys, invalid secret keys and text that is not WIF.
    pub fn parse(text: &str, network: NetworkKind) -> Result<Self, WifError> {
        if text.len() > MAX_TEXT_LEN {
            return Err(WifError);
        }
        let payload = Zeroizing::new(base58::decode_check(text).map_err(|_| WifError)?);
        let wanted = if network == NetworkKind::Main { MAIN_PREFIX } else { TEST_PREFIX };
        let (prefix, body) = payload.split_first().ok_or(WifError)?;
        let (secret, compressed) = match body {
            secret if secret.len() == SECRET_LEN => (secret, false),
            [secret @ .., COMPRESSED_MARK] if secret.len() == SECRET_LEN => (secret, true),
            _ => return Err(WifError),
        };
        if *prefix != wanted {
            return Err(WifError);
        }
        let mut key = SecretKey::from_slice(secret).map_err(|_| WifError)?;
        let public_key = PublicKey::from_secret_key(&SECP, &key);
        let public_key =
            if compressed { public_key.serialize().to_vec() } else { public_key.serialize_uncompressed().to_vec() };
        let parsed = Self::from_secret(&key, public_key);
        key.non_secure_erase();
        Ok(parsed)
    }

    /// The key with this secret and its public key of 33 or 65 bytes, which the caller has derived.
    pub fn from_secret(secret: &SecretKey, public_key: Vec<u8>) -> Self {
        let mut bytes = secret.secret_bytes();
        let mut kept = Box::new(Zeroizing::new([0; SECRET_LEN]));
        kept.copy_from_slice(&bytes);
        zeroize::Zeroize::zeroize(&mut bytes);
        Self { secret: kept, public_key }
    }

    /// The public key in the key's form: 33 or 65 bytes.
    pub fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    /// Whether the public key is compressed.
    pub fn is_compressed(&self) -> bool {
        self.public_key.len() == secp256k1::constants::PUBLIC_KEY_SIZE
    }

    /// Calls `work` with the secret key, and wipes that copy.
    pub(super) fn with_secret<T>(&self, work: impl FnOnce(&SecretKey) -> T) -> Option<T> {
        let mut key = SecretKey::from_slice(self.secret.as_slice()).ok()?;
        let result = work(&key);
        key.non_secure_erase();
        Some(result)
    }
}

impl std::fmt::Debug for WifKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WifKey(..)")
    }
}

/// The text is not a private key of the network. The error has no details, since the text may be secret.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("Invalid private key")]
pub struct WifError;

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN_COMPRESSED: &str = "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn";

    fn encoded(prefix: u8, secret: &[u8], tail: &[u8]) -> String {
        base58::encode_check(&[&[prefix], secret, tail].concat())
    }

    #[test]
    fn wif_refuses_what_is_no_key_of_the_network() {
        let secret = [7; SECRET_LEN];
        let parse = |text: &str| WifKey::parse(text, NetworkKind::Test).map(|key| key.is_compressed());
        assert_eq!(parse(&encoded(TEST_PREFIX, &secret, &[])), Ok(false));
        assert_eq!(parse(&encoded(TEST_PREFIX, &secret, &[1])), Ok(true));
        for bad in [
            String::new(),
            "0OIl".to_owned(),
            "1".repeat(1000),
            MAIN_COMPRESSED.to_owned(),
            encoded(MAIN_PREFIX, &secret, &[1]),
            encoded(TEST_PREFIX, &secret, &[2]),
            encoded(TEST_PREFIX, &secret, &[1, 1]),
            encoded(TEST_PREFIX, &secret[1..], &[]),
            encoded(TEST_PREFIX, &[0; SECRET_LEN], &[1]),
            encoded(TEST_PREFIX, &[0xff; SECRET_LEN], &[1]),
            format!("{}1", encoded(TEST_PREFIX, &secret, &[1])),
        ] {
            assert_eq!(parse(&bad), Err(WifError), "{bad}");
        }
    }

    #[test]
    fn wif_key_is_never_printed() {
        let key = WifKey::parse(MAIN_COMPRESSED, NetworkKind::Main).unwrap();
        assert_eq!(format!("{key:?}"), "WifKey(..)");
    }
}
