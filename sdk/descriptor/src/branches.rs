//! The private keys of a descriptor in the form from which those of an index are made quickest: for each key expression
//! the key that its path leads to, so that one step is left.

use bitcoin::PublicKey;
use bitcoin::bip32::{ChainCode, ChildNumber, Xpriv};
use bitcoin::hashes::{Hash, HashEngine, Hmac, HmacEngine, sha512};
use secp256k1::{Scalar, SecretKey};
use zeroize::{Zeroize, Zeroizing};

use super::secp::SECP;
use super::wildcard::Wildcard;

/// The private keys that a descriptor holds. They are wiped when this is dropped.
pub struct PrivateBranches(Vec<Branch>);

/// The private key of one key expression.
pub(super) struct Branch {
    /// The place of the expression: [`SolvingData`](outrigger_values::SolvingData) has its public key there.
    pub place: usize,
    pub wildcard: Wildcard,
    /// The public key of `secret`, in the form in which scripts show it.
    pub public: PublicKey,
    pub secret: SecretKey,
    /// What a wildcard's children are derived with (BIP 32).
    pub chain_code: [u8; 32],
}

impl Drop for Branch {
    fn drop(&mut self) {
        self.secret.non_secure_erase();
        self.chain_code.zeroize();
    }
}

impl Branch {
    /// The private key at an index; none where there is no such key.
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

    /// The private key of a step that is not hardened (CKDpriv of BIP 32). The parent's public key is at hand, so this costs
    /// a hash and an addition, and no multiplication on the curve.
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

/// How a branch is written: place (LE), wildcard, whether the public key is compressed, public key, private key, chain code.
const BRANCH_LEN: usize = 4 + 1 + 1 + 33 + 32 + 32;

impl PrivateBranches {
    pub(super) fn new(branches: Vec<Branch>) -> Self {
        Self(branches)
    }

    /// The private keys at an index, each with the place of its key expression: `SolvingData` of an expanded script has the
    /// public keys at the same places.
    pub fn secret_keys(&self, index: u32) -> Vec<(usize, SecretKey)> {
        self.0.iter().filter_map(|branch| Some((branch.place, branch.secret(index)?))).collect()
    }

    /// The private keys at an index, each with its public key of 33 or 65 bytes. In taproot scripts the last 32 of these 33
    /// stand. Costs a multiplication on the curve for each key, which [`PrivateBranches::secret_keys`] does not.
    pub fn private_keys(&self, index: u32) -> Vec<(Vec<u8>, SecretKey)> {
        let pair = |branch: &Branch| {
            let secret = branch.secret(index)?;
            Some((branch.public_of(&secret).to_bytes(), secret))
        };
        self.0.iter().filter_map(pair).collect()
    }

    /// The bytes that [`PrivateBranches::from_bytes`] reads. They are as secret as the keys.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        // Reserved whole: growing would leave copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(self.0.len() * BRANCH_LEN));
        for branch in &self.0 {
            // A descriptor's expressions are far fewer than that.
            bytes.extend_from_slice(&u32::try_from(branch.place).unwrap_or(u32::MAX).to_le_bytes());
            bytes.push(branch.wildcard as u8);
            bytes.push(u8::from(branch.public.compressed));
            bytes.extend_from_slice(&branch.public.inner.serialize());
            let mut secret = branch.secret.secret_bytes();
            bytes.extend_from_slice(&secret);
            secret.zeroize();
            bytes.extend_from_slice(&branch.chain_code);
        }
        bytes
    }

    /// Reads what [`PrivateBranches::to_bytes`] wrote; none where it is anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if !bytes.len().is_multiple_of(BRANCH_LEN) {
            return None;
        }
        bytes.chunks_exact(BRANCH_LEN).map(Branch::read).collect::<Option<Vec<_>>>().map(Self)
    }
}

impl Branch {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (place, rest) = bytes.split_first_chunk()?;
        let ([wildcard, compressed], rest) = rest.split_first_chunk()?;
        let (public, rest) = rest.split_first_chunk::<33>()?;
        let (secret, rest) = rest.split_first_chunk::<32>()?;
        let inner = secp256k1::PublicKey::from_slice(public).ok()?;
        Some(Self {
            place: u32::from_le_bytes(*place) as usize,
            wildcard: [Wildcard::None, Wildcard::Normal, Wildcard::Hardened]
                .into_iter()
                .find(|w| *w as u8 == *wildcard)?,
            public: PublicKey { compressed: *compressed == 1, inner },
            secret: SecretKey::from_slice(secret).ok()?,
            chain_code: rest.try_into().ok()?,
        })
    }
}
