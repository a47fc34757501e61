//! Signatures by the wallet's keys. Private entries are unsealed for one batch and wiped after it.
//!
//! The keys that may sign for a script are those of the descriptors that expand to it; imported keys, as in
//! bitcoind's legacy wallet, may sign for any script that names them.

use std::collections::BTreeMap;

use bitcoin::hashes::Hash;
use bitcoin::secp256k1::{Keypair, Message, PublicKey, SecretKey, XOnlyPublicKey};
use bitcoin::{PrivateKey, ScriptBuf, TapNodeHash, TapTweakHash};
use heed::RoTxn;
use outrigger_sdk::service::signer::{Scheme, SignBatch, SignRequest};
use outrigger_sdk::service::{ErrorKind, Result as ServiceResult, ServiceError};
use outrigger_sdk::wire::Blob;

use super::descriptors::parse_stored;
use super::error::{Result, WalletError};
use super::keypool::{private_key_at, private_key_of};
use super::live::Wallet;
use super::seal::SealingKey;
use super::store::tables::hash160;

/// The length of an x-only public key.
const X_ONLY: usize = 32;

/// A private key, overwritten when dropped. `SecretKey` is `Copy`: what the libraries below copied is theirs.
struct Key(SecretKey);

impl Drop for Key {
    fn drop(&mut self) {
        self.0.non_secure_erase();
    }
}

/// Private keys by their x-only public keys.
#[derive(Default)]
struct Ring(BTreeMap<[u8; 32], Key>);

/// The x coordinate of a public key of 33, 65 or 32 bytes; none when it is not a point.
fn x_coordinate(public_key: &[u8]) -> Option<[u8; 32]> {
    if public_key.len() == X_ONLY {
        return XOnlyPublicKey::from_slice(public_key).ok().map(|key| key.serialize());
    }
    PublicKey::from_slice(public_key).ok().map(|key| key.x_only_public_key().0.serialize())
}

/// The hashes under which an imported key of this form may be kept.
fn hashes_of(public_key: &[u8]) -> Vec<[u8; 20]> {
    if public_key.len() == X_ONLY {
        [2_u8, 3].map(|parity| hash160(&[&[parity], public_key].concat())).to_vec()
    } else {
        vec![hash160(public_key)]
    }
}

impl Wallet {
    /// Which of these public keys (33, 65 or 32 bytes) the wallet could sign with, for outputs with these scripts. A
    /// locked wallet answers as an unlocked one would.
    pub(super) fn available(&self, txn: &RoTxn<'_>, scripts: &[ScriptBuf], public_keys: &[Blob]) -> Result<Vec<bool>> {
        let mut derivable = Vec::new();
        for (number, index) in self.owners(txn, scripts)? {
            let Some(row) = self.store.tables.descriptor(txn, number)? else { continue };
            if !row.has_private {
                continue;
            }
            // A descriptor with some of its private keys may sign with those alone, which are known only unsealed;
            // locked, all its keys count.
            let sealing = self.sealing().ok();
            match sealing.map(|sealing| self.private_keys(txn, number, index, &sealing)).transpose()? {
                Some(keys) => derivable.extend(keys.iter().filter_map(|(public, _)| x_coordinate(public))),
                None => {
                    let expansion = self.descriptors.get(number, &row.public)?.expand(index);
                    let scripts = expansion.map(|expansion| expansion.scripts).unwrap_or_default();
                    let keys = scripts.into_iter().flat_map(|script| script.solving.public_keys);
                    derivable.extend(keys.filter_map(|key| x_coordinate(&key)));
                }
            }
        }
        let mut available = Vec::with_capacity(public_keys.len());
        for public_key in public_keys {
            let mut found = x_coordinate(public_key).is_some_and(|x| derivable.contains(&x));
            for hash in hashes_of(public_key) {
                found = found || self.store.tables.imported_key(txn, &hash)?.is_some_and(|row| row.private);
            }
            available.push(found);
        }
        Ok(available)
    }

    /// Signs each request; none where the wallet has no such key.
    pub(super) fn sign_many(&self, txn: &RoTxn<'_>, batch: &SignBatch) -> ServiceResult<Vec<Option<Blob>>> {
        let sealing = self.sealing()?;
        let ring = self.ring(txn, batch, &sealing)?;
        batch.requests.iter().map(|request| self.sign(&ring, request)).collect()
    }

    /// The descriptors that expand to these scripts, with the indexes.
    fn owners(&self, txn: &RoTxn<'_>, scripts: &[ScriptBuf]) -> Result<Vec<(u32, u32)>> {
        let mut owners = Vec::new();
        for script in scripts {
            owners.extend(self.store.tables.script(txn, script)?.map(|row| row.owners).unwrap_or_default());
        }
        owners.sort_unstable();
        owners.dedup();
        Ok(owners)
    }

    fn private_keys(
        &self,
        txn: &RoTxn<'_>,
        number: u32,
        index: u32,
        sealing: &SealingKey,
    ) -> Result<Vec<(Vec<u8>, Key)>> {
        let place = private_key_of(number);
        let Some(value) = self.store.tables.keys.get(txn, &place)? else { return Ok(Vec::new()) };
        let text = sealing.unwrap(&place, value)?;
        let descriptor = parse_stored(number, text.expose(), self.shared.network)?;
        Ok(descriptor.private_keys(index).into_iter().map(|(public, secret)| (public, Key(secret))).collect())
    }

    /// The private keys that may sign in a batch.
    fn ring(&self, txn: &RoTxn<'_>, batch: &SignBatch, sealing: &SealingKey) -> Result<Ring> {
        let mut ring = Ring::default();
        let owners = self.owners(txn, &batch.scripts)?;
        for same in owners.chunk_by(|one, other| one.0 == other.0) {
            let Some((number, _)) = same.first() else { continue };
            let place = private_key_of(*number);
            let Some(value) = self.store.tables.keys.get(txn, &place)? else { continue };
            let text = sealing.unwrap(&place, value)?;
            // Parsed once for all its indexes.
            let descriptor = parse_stored(*number, text.expose(), self.shared.network)?;
            for (_, index) in same {
                for (public, secret) in descriptor.private_keys(*index) {
                    ring.0.extend(x_coordinate(&public).map(|x| (x, Key(secret))));
                }
            }
        }
        for request in &batch.requests {
            for hash in hashes_of(&request.public_key) {
                let place = private_key_at(&hash);
                let Some(value) = self.store.tables.keys.get(txn, &place)? else { continue };
                let text = sealing.unwrap(&place, value)?;
                let key = PrivateKey::from_wif(text.expose()).map_err(|_| WalletError::damaged(value.len()))?;
                ring.0.extend(x_coordinate(&request.public_key).map(|x| (x, Key(key.inner))));
            }
        }
        Ok(ring)
    }

    fn sign(&self, ring: &Ring, request: &SignRequest) -> ServiceResult<Option<Blob>> {
        let Some(key) = x_coordinate(&request.public_key).and_then(|x| ring.0.get(&x)) else { return Ok(None) };
        let message = Message::from_digest(request.digest);
        let mut keypair = Keypair::from_secret_key(&self.secp, &key.0);
        let signature = match &request.scheme {
            Scheme::Ecdsa => {
                // Of the two keys with one x coordinate the script's own must sign.
                let own = PublicKey::from_slice(&request.public_key).is_ok_and(|public| public == keypair.public_key());
                own.then(|| self.secp.sign_ecdsa_low_r(&message, &key.0).serialize_der().to_vec())
            }
            Scheme::Schnorr => Some(self.secp.sign_schnorr_no_aux_rand(&message, &keypair).serialize().to_vec()),
            Scheme::SchnorrTweaked { merkle_root } => {
                let internal = keypair.x_only_public_key().0;
                let root = merkle_root.map(TapNodeHash::from_byte_array);
                let tweak = TapTweakHash::from_key_and_tweak(internal, root).to_scalar();
                let mut tweaked = keypair
                    .add_xonly_tweak(&self.secp, &tweak)
                    .map_err(|_| ServiceError::new(ErrorKind::Internal, "the tweaked key is no key"))?;
                let signature = self.secp.sign_schnorr_no_aux_rand(&message, &tweaked).serialize().to_vec();
                tweaked.non_secure_erase();
                Some(signature)
            }
        };
        keypair.non_secure_erase();
        Ok(signature.map(Blob))
    }
}
