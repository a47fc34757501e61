//! The public keys along the path of a key expression.

use bitcoin::bip32::Xpub;

use super::branches::child;
use super::key::{Body, Key};
use super::secp::SECP;

impl Key {
    /// The public keys along the path of an extended key, with their chain codes: see [`super::Descriptor::path_keys`].
    pub fn path_keys(&self) -> Option<Vec<(secp256k1::PublicKey, [u8; 32])>> {
        let Body::Extended(extended) = &self.body else { return None };
        let Xpub { mut public_key, mut chain_code, .. } = extended.public;
        let mut private = extended.private.map(|private| private.private_key);
        let mut keys = vec![(public_key, chain_code.to_bytes())];
        for step in &extended.path {
            if let Some(secret) = private {
                let Some((secret, code)) = child(&secret, &chain_code.to_bytes(), Some(&public_key), *step) else {
                    break;
                };
                (private, public_key, chain_code) = (Some(secret), secret.public_key(&SECP), code.into());
            } else {
                // The depth does not matter for the derivation, and must not overflow.
                let parent = Xpub { public_key, chain_code, depth: 0, ..extended.public };
                let Ok(key) = parent.ckd_pub(&SECP, *step) else { break };
                (public_key, chain_code) = (key.public_key, key.chain_code);
            }
            keys.push((public_key, chain_code.to_bytes()));
        }
        Some(keys)
    }
}
