//! Decrypts the private keys of a wallet file, and inserts them into descriptors.

use std::collections::BTreeMap;
use std::str::FromStr;

use aes::Aes256;
use bitcoin::bip32::{Xpriv, Xpub};
use bitcoin::hashes::{Hash, sha256d, sha512};
use bitcoin::hex::FromHex;
use bitcoin::secp256k1::{PublicKey, Secp256k1, SecretKey};
use bitcoin::{NetworkKind, PrivateKey};
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeDecrypt, KeyIvInit};
use zeroize::Zeroizing;

use crate::error::FileError;
use crate::record::MasterKey;

/// The number of the key derivation method: repeated SHA-512.
const BY_SHA512: u32 = 0;
/// The maximum number of iterations. More would take minutes.
const MAX_ITERATIONS: u32 = 1 << 28;
/// The key and block lengths of AES-256-CBC, in bytes.
const KEY_LEN: usize = 32;
const IV_LEN: usize = 16;

/// The private keys, by compressed public key.
#[derive(Default)]
pub struct PrivateKeys(BTreeMap<[u8; 33], Zeroizing<[u8; 32]>>);

impl PrivateKeys {
    /// Adds a private key. Fails if it does not belong to `public`.
    pub fn add(&mut self, public: &[u8], secret: Zeroizing<[u8; 32]>) -> Result<(), FileError> {
        let mut key = SecretKey::from_slice(&*secret).map_err(|_| FileError::WrongKey)?;
        let of_secret = PublicKey::from_secret_key(&Secp256k1::signing_only(), &key);
        key.non_secure_erase();
        if PublicKey::from_slice(public) != Ok(of_secret) {
            return Err(FileError::WrongKey);
        }
        self.0.insert(of_secret.serialize(), secret);
        Ok(())
    }

    fn of(&self, public: &PublicKey) -> Option<SecretKey> {
        SecretKey::from_slice(&**self.0.get(&public.serialize())?).ok()
    }

    /// The descriptor `text` without its checksum, with each public key replaced by its private key if known.
    pub fn put_into(&self, text: &str, network: NetworkKind) -> Zeroizing<String> {
        let body = text.split_once('#').map_or(text, |(body, _)| body);
        let mut put = Zeroizing::new(String::with_capacity(2 * body.len()));
        let mut rest = body;
        while !rest.is_empty() {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            let (word, tail) = rest.split_at(end);
            match self.private_form(word, network) {
                Some(private) => put.push_str(&private),
                None => put.push_str(word),
            }
            let between = tail.find(|c: char| c.is_ascii_alphanumeric()).unwrap_or(tail.len());
            put.push_str(&tail[..between]);
            rest = &tail[between..];
        }
        put
    }

    /// The private form of a word of a descriptor, if it is a public key with a known private key.
    fn private_form(&self, word: &str, network: NetworkKind) -> Option<Zeroizing<String>> {
        if let Ok(public) = Xpub::from_str(word) {
            let private = Xpriv {
                network: public.network,
                depth: public.depth,
                parent_fingerprint: public.parent_fingerprint,
                child_number: public.child_number,
                private_key: self.of(&public.public_key)?,
                chain_code: public.chain_code,
            };
            return Some(Zeroizing::new(private.to_string()));
        }
        let bytes = Vec::from_hex(word).ok()?;
        let (candidates, compressed) = match bytes.len() {
            // An x-only key has two possible public keys.
            32 => ([[&[2], &bytes[..]].concat(), [&[3], &bytes[..]].concat()], true),
            33 | 65 => ([bytes.clone(), Vec::new()], bytes.len() == 33),
            _ => return None,
        };
        let secret = candidates.iter().find_map(|key| self.of(&PublicKey::from_slice(key).ok()?))?;
        Some(Zeroizing::new(PrivateKey { compressed, network, inner: secret }.to_wif()))
    }
}

/// Decrypts the key that encrypts the private keys; `None` if the passphrase is wrong.
///
/// # Errors
/// [`FileError::UnknownEncryption`] if the derivation method or the number of iterations is not supported.
pub fn open_master_key(master: &MasterKey, passphrase: &str) -> Result<Option<Zeroizing<[u8; KEY_LEN]>>, FileError> {
    if master.method != BY_SHA512 || !(1..=MAX_ITERATIONS).contains(&master.iterations) {
        return Err(FileError::UnknownEncryption);
    }
    let salted = Zeroizing::new([passphrase.as_bytes(), &master.salt].concat());
    let mut digest = Zeroizing::new(sha512::Hash::hash(&salted).to_byte_array());
    for _ in 1..master.iterations {
        *digest = sha512::Hash::hash(&*digest).to_byte_array();
    }
    let (Some(key), Some(iv)) = (digest.first_chunk(), digest[KEY_LEN..].first_chunk()) else {
        return Err(FileError::UnknownEncryption);
    };
    Ok(decrypt(key, iv, &master.sealed))
}

/// Decrypts a private key; `None` if it was encrypted with another key.
pub fn open_private_key(key: &[u8; KEY_LEN], public: &[u8], sealed: &[u8]) -> Option<Zeroizing<[u8; KEY_LEN]>> {
    let hash = sha256d::Hash::hash(public).to_byte_array();
    decrypt(key, hash.first_chunk()?, sealed)
}

/// Decrypts 32 bytes; `None` if the padding or the length is wrong.
fn decrypt(key: &[u8; KEY_LEN], iv: &[u8; IV_LEN], sealed: &[u8]) -> Option<Zeroizing<[u8; KEY_LEN]>> {
    let mut buffer = Zeroizing::new(sealed.to_vec());
    let cipher = cbc::Decryptor::<Aes256>::new(key.into(), iv.into());
    let plain = cipher.decrypt_padded::<Pkcs7>(&mut buffer).ok()?;
    Some(Zeroizing::new(plain.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_keys_take_the_place_of_their_public_keys() {
        let secret = [7; 32];
        let secp = Secp256k1::new();
        let public = PublicKey::from_secret_key(&secp, &SecretKey::from_slice(&secret).unwrap());
        let mut keys = PrivateKeys::default();
        keys.add(&public.serialize(), Zeroizing::new(secret)).unwrap();
        let root = Xpriv::new_master(NetworkKind::Test, &[1; 32]).unwrap();
        let xpub = Xpub::from_priv(&secp, &root);
        keys.add(&xpub.public_key.serialize(), Zeroizing::new(root.private_key.secret_bytes())).unwrap();
        let wif = |compressed| {
            PrivateKey { compressed, network: NetworkKind::Test, inner: SecretKey::from_slice(&secret).unwrap() }
                .to_wif()
        };
        let stranger = "02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5";
        let (hex, uncompressed) =
            (public.to_string(), public.serialize_uncompressed().map(|byte| format!("{byte:02x}")));
        let text = format!(
            "wsh(multi(2,{hex},{stranger},[d34db33f/84h]{xpub}/0/*))+pkh({})+tr({})#abcdefgh",
            uncompressed.concat(),
            public.x_only_public_key().0
        );
        let expected =
            format!("wsh(multi(2,{0},{stranger},[d34db33f/84h]{root}/0/*))+pkh({1})+tr({0})", wif(true), wif(false));
        assert_eq!(*keys.put_into(&text, NetworkKind::Test), expected);
        assert!(keys.add(&public.serialize(), Zeroizing::new([8; 32])).is_err());
    }
}
