//! Encryption of private entries.
//!
//! Each private entry is encrypted with XChaCha20-Poly1305 under the wallet's encryption key. Its table key is the
//! associated data, so entries cannot be swapped. The encryption key is random. An encrypted wallet stores it encrypted
//! under the key that Argon2id derives from the passphrase, so a change of the passphrase rewrites one row. A wallet
//! that is not encrypted stores it in plaintext, in pages of its own.
//!
//! The plaintext key makes it possible to encrypt the wallet later. LMDB leaves bytes of old rows in unused parts of
//! pages, where the host cannot overwrite them. But a value of several pages shares them with no other, so the host can
//! overwrite them once they are free (`scrub`). Without the plaintext key, remains of old entries cannot be decrypted.
//! The encrypted key has pages of its own, too, so that a former passphrase does not recover it from the file.

use std::path::Path;

use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use outrigger_service::wire::{Blob, Secret, from_bytes};
use outrigger_service::{ErrorKind, ServiceError};
use secp256k1::rand::{RngCore, thread_rng};
use zeroize::Zeroizing;

use super::error::{Result, WalletError};
use super::settings::Settings;
use super::store::{ENCRYPTION, EncryptionRow};
use outrigger_disk::pages::DataFile;
use outrigger_disk::{Checksum, META};

const NONCE_LEN: usize = 24;
/// The associated data of the encrypted encryption key.
const KEY_LABEL: &[u8] = b"sealing key";

/// The key that encrypts the entries of a wallet. Wiped on drop.
#[derive(Clone)]
pub struct EncryptionKey(Zeroizing<[u8; 32]>);

/// The length of the value with the key, plaintext or encrypted. It exceeds a page of 4 KiB, so LMDB gives it pages of
/// its own.
const OWN_PAGES_LEN: usize = 6000;

/// The encryption key in an encrypted wallet's file, for tests that search files for it.
pub fn key_of_file(file: &Path, passphrase: &str) -> Option<Zeroizing<Vec<u8>>> {
    let stored = DataFile::open(file).ok()?.get(META, ENCRYPTION).ok()??;
    let row = from_bytes(Checksum::of(META).open(ENCRYPTION, &stored)?).ok()?;
    let key = EncryptionKey::recover(&row, &Secret::new(passphrase.to_owned())).ok()?;
    Some(Zeroizing::new(key.expose().to_vec()))
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    thread_rng().fill_bytes(&mut bytes);
    bytes
}

fn failed(what: &str) -> WalletError {
    WalletError::Service(ServiceError::new(ErrorKind::Internal, what))
}

impl EncryptionKey {
    pub fn random() -> Self {
        Self(Zeroizing::new(random()))
    }

    fn of_passphrase(passphrase: &Secret, salt: &[u8; 16], memory_kib: u32, passes: u32) -> Result<Self> {
        let params = Params::new(memory_kib, passes, 1, Some(32)).map_err(|_| failed("bad parameters of Argon2id"))?;
        let mut key = Zeroizing::new([0; 32]);
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(passphrase.expose().as_bytes(), salt, key.as_mut_slice())
            .map_err(|_| failed("Argon2id failed"))?;
        Ok(Self(key))
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&(*self.0).into())
    }

    /// Encrypts `text` with `label` as associated data.
    pub fn encrypt(&self, label: &[u8], text: &[u8]) -> Result<Vec<u8>> {
        let nonce: [u8; NONCE_LEN] = random();
        let encrypted = self
            .cipher()
            .encrypt(&XNonce::from(nonce), Payload { msg: text, aad: label })
            .map_err(|_| failed("encrypting failed"))?;
        Ok([nonce.as_slice(), &encrypted].concat())
    }

    /// Decrypts the output of [`EncryptionKey::encrypt`]; `None` if key or label differ.
    pub fn decrypt(&self, label: &[u8], encrypted: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let (nonce, text) = encrypted.split_first_chunk::<NONCE_LEN>()?;
        let opened = self.cipher().decrypt(&XNonce::from(*nonce), Payload { msg: text, aad: label }).ok()?;
        Some(Zeroizing::new(opened))
    }

    /// The text of a private entry at the table key `label`.
    pub fn unwrap(&self, label: &[u8], value: &[u8]) -> Result<Secret> {
        let bytes = self.decrypt(label, value).ok_or_else(|| WalletError::damaged(value.len()))?;
        let text = std::str::from_utf8(&bytes).map_err(|_| WalletError::damaged(value.len()))?;
        Ok(Secret::new(text.to_owned()))
    }

    pub fn to_plaintext(&self) -> Zeroizing<Vec<u8>> {
        let mut value = Zeroizing::new(vec![0; OWN_PAGES_LEN]);
        value.iter_mut().zip(self.0.iter()).for_each(|(to, from)| *to = *from);
        value
    }

    pub fn from_plaintext(value: &[u8]) -> Result<Self> {
        let key = value.first_chunk::<32>().ok_or_else(|| WalletError::damaged(value.len()))?;
        Ok(Self(Zeroizing::new(*key)))
    }

    /// The key's bytes, for a search of a file.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    pub fn protect(&self, passphrase: &Secret, settings: &Settings) -> Result<EncryptionRow> {
        let (salt, memory_kib, passes) = (random(), settings.kdf_memory_kib, settings.kdf_passes);
        let outer = Self::of_passphrase(passphrase, &salt, memory_kib, passes)?;
        let encrypted_key = Blob(outer.encrypt(KEY_LABEL, self.0.as_slice())?);
        Ok(EncryptionRow { salt, memory_kib, passes, encrypted_key, filler: Blob(vec![0; OWN_PAGES_LEN]) })
    }

    /// Decrypts the key in a row. A wrong passphrase fails with `PassphraseIncorrect`.
    pub fn recover(row: &EncryptionRow, passphrase: &Secret) -> Result<Self> {
        let outer = Self::of_passphrase(passphrase, &row.salt, row.memory_kib, row.passes)?;
        let opened = outer.decrypt(KEY_LABEL, &row.encrypted_key).ok_or(ErrorKind::PassphraseIncorrect)?;
        let key = <[u8; 32]>::try_from(opened.as_slice()).map_err(|_| WalletError::damaged(opened.len()))?;
        Ok(Self(Zeroizing::new(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encrypted_entry_opens_only_at_its_place_and_with_its_key() {
        let key = EncryptionKey::random();
        let value = key.encrypt(b"d1", b"private text").unwrap();
        assert!(!value.windows(7).any(|window| window == b"private"));
        assert_eq!(key.unwrap(b"d1", &value).unwrap().expose(), "private text");
        assert!(key.unwrap(b"d2", &value).is_err());
        assert!(EncryptionKey::random().unwrap(b"d1", &value).is_err());
        assert_eq!(
            EncryptionKey::from_plaintext(&key.to_plaintext()).unwrap().unwrap(b"d1", &value).unwrap().expose(),
            "private text"
        );
    }
}
