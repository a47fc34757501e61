//! The private keys of a descriptor, prepared for fast derivation: one step before the index.

use bitcoin::PublicKey;
use bitcoin::bip32::{ChainCode, ChildNumber, Xpriv};
use bitcoin::hashes::{Hash, HashEngine, Hmac, HmacEngine, sha512};
use secp256k1::{Scalar, SecretKey};
use zeroize::{Zeroize, Zeroizing};

use super::secp::SECP;
use super::wildcard::Wildcard;

/// The private keys of a descriptor, wiped on drop.
pub struct PrivateBranches(pub(super) Vec<Branch>);

pub(super) struct Branch {
    /// The index of the expression. [`SolvingData`](outrigger_values::SolvingData) has its public key at that index.
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

impl Branch {
    fn secret(&self, index: u32) -> Option<SecretKey> {
        match self.wildcard {
            Wildcard::None => Some(self.secret),
            Wildcard::Normal => self.normal_child(ChildNumber::from_normal_idx(index).ok()?.into()),
            Wildcard::Hardened => {
                let parent = Xpriv {
                    network: bitcoin::NetworkKind::Main,
                    depth: 0,
                    parent_fingerprint: [0; 4].into(),
                    child_number: ChildNumber::Normal { index: 0 },
                    private_key: self.secret,
                    chain_code: ChainCode::from(self.chain_code),
                };
                let step = ChildNumber::from_hardened_idx(index).ok()?;
                parent.derive_priv(&SECP, &[step]).ok().map(|child| child.private_key)
            }
        }
    }

    /// The private key of a normal step (CKDpriv of BIP 32). The parent's public key is known, so this costs a hash and
    /// an addition instead of a multiplication on the curve.
    fn normal_child(&self, index: u32) -> Option<SecretKey> {
        let mut engine = HmacEngine::<sha512::Hash>::new(&self.chain_code);
        engine.input(&self.public.inner.serialize());
        engine.input(&index.to_be_bytes());
        let hash = Zeroizing::new(Hmac::from_engine(engine).to_byte_array());
        let tweak = Scalar::from_be_bytes(*hash.first_chunk()?).ok()?;
        self.secret.add_tweak(&tweak).ok()
    }

    fn public_of(&self, secret: &SecretKey) -> PublicKey {
        if self.wildcard == Wildcard::None { self.public } else { PublicKey::new(secret.public_key(&SECP)) }
    }
}

impl PrivateBranches {
    /// The private keys at an index, each with the index of its key expression. The `SolvingData` of an expanded script
    /// has the public key at the same index.
    pub fn secret_keys(&self, index: u32) -> Vec<(usize, SecretKey)> {
        self.0.iter().filter_map(|branch| Some((branch.place, branch.secret(index)?))).collect()
    }

    /// The private keys at an index with their public keys of 33 or 65 bytes. Taproot scripts contain the last 32 of
    /// 33. Unlike [`PrivateBranches::secret_keys`], this costs a multiplication on the curve per key.
    pub fn private_keys(&self, index: u32) -> Vec<(Vec<u8>, SecretKey)> {
        let pair = |branch: &Branch| {
            let secret = branch.secret(index)?;
            Some((branch.public_of(&secret).to_bytes(), secret))
        };
        self.0.iter().filter_map(pair).collect()
    }
}
