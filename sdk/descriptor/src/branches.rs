//! The private keys of a descriptor, derived up to the last step before the index.

use bitcoin::PublicKey;
use bitcoin::bip32::ChildNumber;
use bitcoin::hashes::{Hash, HashEngine, Hmac, HmacEngine, sha512};
use secp256k1::{Scalar, SecretKey};
use zeroize::{Zeroize, Zeroizing};

use super::secp::SECP;
use super::wildcard::Wildcard;

/// The private keys of a descriptor, wiped on drop.
pub struct PrivateBranches(pub(super) Vec<Branch>);

pub(super) struct Branch {
    /// The index of the key expression, and of its public key in [`ExpandedScript::origins`](super::ExpandedScript::origins).
    pub place: usize,
    pub wildcard: Wildcard,
    /// The public key of `secret`, in the form that scripts contain.
    pub public: PublicKey,
    pub secret: SecretKey,
    /// The chain code for the wildcard (BIP 32).
    pub chain_code: [u8; 32],
}

impl Drop for Branch {
    fn drop(&mut self) {
        self.secret.non_secure_erase();
        self.chain_code.zeroize();
    }
}

/// A private child key and its chain code (CKDpriv of BIP 32). [`Xpriv::ckd_priv`] multiplies on the curve at each step, for the
/// fingerprint of the parent. Here only a normal step does, unless the parent's public key is given.
///
/// [`Xpriv::ckd_priv`]: bitcoin::bip32::Xpriv::ckd_priv
pub(super) fn child(
    secret: &SecretKey,
    chain_code: &[u8; 32],
    public: Option<&secp256k1::PublicKey>,
    step: ChildNumber,
) -> Option<(SecretKey, [u8; 32])> {
    let mut engine = HmacEngine::<sha512::Hash>::new(chain_code);
    if step.is_hardened() {
        engine.input(&[0]);
        engine.input(secret.as_ref());
    } else {
        engine.input(&public.copied().unwrap_or_else(|| secret.public_key(&SECP)).serialize());
    }
    engine.input(&u32::from(step).to_be_bytes());
    let hash = Zeroizing::new(Hmac::from_engine(engine).to_byte_array());
    let tweak = Scalar::from_be_bytes(*hash.first_chunk()?).ok()?;
    Some((secret.add_tweak(&tweak).ok()?, *hash.last_chunk()?))
}

impl Branch {
    fn secret(&self, index: u32) -> Option<SecretKey> {
        let Some(step) = self.wildcard.step(index).ok()? else { return Some(self.secret) };
        let (secret, mut chain_code) = child(&self.secret, &self.chain_code, Some(&self.public.inner), step)?;
        chain_code.zeroize();
        Some(secret)
    }

    fn public_of(&self, secret: &SecretKey) -> PublicKey {
        if self.wildcard == Wildcard::None { self.public } else { PublicKey::new(secret.public_key(&SECP)) }
    }
}

impl PrivateBranches {
    /// The private keys at an index, each with the index of its key expression. The `origins` of an expanded script have
    /// the public key at the same index.
    pub fn secret_keys(&self, index: u32) -> Vec<(usize, SecretKey)> {
        self.0.iter().filter_map(|branch| Some((branch.place, branch.secret(index)?))).collect()
    }

    /// The private keys at an index with their public keys of 33 or 65 bytes. Taproot scripts contain the last 32 bytes
    /// of the 33. Unlike [`PrivateBranches::secret_keys`], this costs a multiplication on the curve per key.
    pub fn private_keys(&self, index: u32) -> Vec<(Vec<u8>, SecretKey)> {
        let pair = |branch: &Branch| {
            let secret = branch.secret(index)?;
            Some((branch.public_of(&secret).to_bytes(), secret))
        };
        self.0.iter().filter_map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use bitcoin::bip32::{DerivationPath, Xpriv};
    use bitcoin::{Network, NetworkKind};

    use super::*;
    use crate::{Checksum, Descriptor};

    fn one(text: &str) -> Descriptor {
        Descriptor::parse(text, Network::Regtest, Checksum::Optional).unwrap().remove(0)
    }

    #[test]
    fn private_keys_are_those_of_the_bitcoin_crate_down_to_the_last_depth() {
        let mut root = Xpriv::new_master(NetworkKind::Test, &[7; 32]).unwrap();
        let derive =
            |path: &str| root.derive_priv(&SECP, &path.parse::<DerivationPath>().unwrap()).unwrap().private_key;
        for (step, wildcard) in [("7", "*"), ("7h", "*h")] {
            let branches = one(&format!("wpkh({root}/84h/1h/0h/1/{wildcard})")).private_branches();
            assert_eq!(branches.secret_keys(7), [(0, derive(&format!("84h/1h/0h/1/{step}")))], "{step}");
        }
        root.depth = 252;
        assert!(one(&format!("wpkh({root}/84h/1h/0h)")).expand(0).is_ok());
        assert!(one(&format!("wpkh({root}/84h/1h/0h/1)")).expand(0).is_err());
    }
}
