//! Signatures by a wallet's keys.

use std::collections::{BTreeMap, BTreeSet};

use bitcoin::ScriptBuf;
use secp256k1::SecretKey;

use super::Node;
use super::imported::hash160;
use super::own::Own;
use crate::service::Result;
use crate::service::signer::SignBatch;
use crate::sign::sign_digest;
use crate::wire::Blob;

/// The length of an x-only public key.
const X_ONLY: usize = 32;

/// The public keys that one may stand for: itself, or for an x-only one both with that x coordinate.
fn forms(public_key: &[u8]) -> Vec<Vec<u8>> {
    if public_key.len() == X_ONLY {
        return [2_u8, 3].map(|parity| [&[parity], public_key].concat()).to_vec();
    }
    vec![public_key.to_vec()]
}

impl Own {
    fn places(&self, scripts: &[ScriptBuf]) -> BTreeSet<(u32, u32)> {
        scripts.iter().filter_map(|script| self.owners.get(script)).flatten().copied().collect()
    }

    /// The private keys of the descriptors that were derived to one of these scripts, by their public keys.
    fn derived(&self, scripts: &[ScriptBuf]) -> BTreeMap<Vec<u8>, SecretKey> {
        let keys = |(number, index): (u32, u32)| {
            let private = self.descriptors.get(number as usize).and_then(|row| row.private.as_ref());
            private.map(|private| private.private_branches().private_keys(index)).unwrap_or_default()
        };
        self.places(scripts).into_iter().flat_map(keys).collect()
    }

    /// What a locked wallet can say of them: all public keys of the descriptors that have some private key.
    fn named(&self, scripts: &[ScriptBuf]) -> BTreeSet<Vec<u8>> {
        let mut named = BTreeSet::new();
        for (number, index) in self.places(scripts) {
            let Some(row) = self.descriptors.get(number as usize).filter(|row| row.private.is_some()) else { continue };
            for script in row.expand(index) {
                named.extend(script.solving.public_keys.into_iter().map(|key| key.0));
            }
        }
        named
    }

    fn imported_secret(&self, public_key: &[u8]) -> Option<SecretKey> {
        let key = self.imported.keys.get(&hash160(public_key))?;
        key.private.map(|private| private.inner)
    }

    pub fn available(&self, scripts: &[ScriptBuf], public_keys: &[Blob], node: &Node) -> Result<Vec<bool>> {
        let derived: BTreeSet<Vec<u8>> =
            if self.is_locked(node)? { self.named(scripts) } else { self.derived(scripts).into_keys().collect() };
        let has = |key: &Vec<u8>| derived.contains(key) || self.imported_secret(key).is_some();
        Ok(public_keys.iter().map(|key| forms(key).iter().any(has)).collect())
    }

    pub fn sign_many(&self, batch: &SignBatch, node: &Node) -> Result<Vec<Option<Blob>>> {
        self.require_unlocked(node)?;
        let derived = self.derived(&batch.scripts);
        let secret = |key: &Vec<u8>| derived.get(key).copied().or_else(|| self.imported_secret(key));
        let requests = batch.requests.iter();
        let keys = requests.map(|request| (request, forms(&request.public_key).iter().find_map(secret)));
        Ok(keys.map(|(r, key)| key.map(|key| Blob(sign_digest(&key, r.digest, &r.scheme)))).collect())
    }
}
