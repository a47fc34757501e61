//! Many children of one public key (CKDpub of BIP 32).
//!
//! A child is the parent and a multiple of the generator. The library multiplies from scratch each time; for thousands of
//! children it pays to have multiples at hand: a number is the sum of its bytes, so its multiple is that of at most 32
//! points, which the library adds. Only what derives public keys goes in, so that the time it takes tells nothing secret.

use std::sync::LazyLock;

use bitcoin::bip32::{ChildNumber, Xpub};
use bitcoin::secp256k1::constants::{GENERATOR_X, GENERATOR_Y};
use bitcoin::secp256k1::{PublicKey, Secp256k1, VerifyOnly};
use outrigger_descriptor::ExpandError;

/// The bytes of a number.
const BYTES: usize = 32;
/// The values of a byte, without zero.
const VALUES: usize = 255;

/// The generator's multiples by each value of each byte, the lowest byte first. Half a megabyte, made at first use.
static MULTIPLES: LazyLock<Option<Vec<[PublicKey; VALUES]>>> = LazyLock::new(|| {
    let mut rows = Vec::with_capacity(BYTES);
    let generator = [&[4], GENERATOR_X.as_slice(), &GENERATOR_Y].concat();
    let mut base = PublicKey::from_slice(&generator).ok()?;
    for _ in 0..BYTES {
        let mut row = [base; VALUES];
        let mut last = base;
        for multiple in row.iter_mut().skip(1) {
            last = last.combine(&base).ok()?;
            *multiple = last;
        }
        base = last.combine(&base).ok()?;
        rows.push(row);
    }
    Some(rows)
});

/// Children of one public key by steps that are not hardened.
pub struct Children {
    parent: Xpub,
    secp: Secp256k1<VerifyOnly>,
}

impl Children {
    pub fn of(parent: Xpub) -> Self {
        Self { parent, secp: Secp256k1::verification_only() }
    }

    /// The context that verifies.
    pub fn secp(&self) -> &Secp256k1<VerifyOnly> {
        &self.secp
    }

    /// The public key at an index.
    ///
    /// # Errors
    /// When there is no such index, or no such key, which happens once in 2^127 times.
    pub fn key(&self, index: u32) -> Result<PublicKey, ExpandError> {
        let step = ChildNumber::from_normal_idx(index).map_err(|_| ExpandError::Index(index))?;
        let (number, _) = self.parent.ckd_pub_tweak(step).map_err(|_| ExpandError::NoSuchKey)?;
        if let Some(rows) = &*MULTIPLES {
            let bytes = number.secret_bytes();
            let multiples = bytes.iter().rev().zip(rows);
            let multiples = multiples.filter_map(|(byte, row)| row.get(usize::from(*byte).checked_sub(1)?));
            let points: Vec<&PublicKey> = std::iter::once(&self.parent.public_key).chain(multiples).collect();
            if let Ok(key) = PublicKey::combine_keys(&points) {
                return Ok(key);
            }
        }
        self.parent.public_key.add_exp_tweak(&self.secp, &number.into()).map_err(|_| ExpandError::NoSuchKey)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_those_of_bip_32() {
        let parent: Xpub = "tpubD6NzVbkrYhZ4XgiXtGrdW5XDAPFCL9h7we1vwNCpn8tGbBcgfVYjXyhWo4E1xkh56hjod1RhGjxbaTLV3X4FyWuejifB9jusQ46QzG87VKp".parse().unwrap();
        let children = Children::of(parent);
        for index in (0..300).chain([1 << 30, (1 << 31) - 1]) {
            let step = ChildNumber::from_normal_idx(index).unwrap();
            assert_eq!(
                children.key(index).unwrap(),
                parent.ckd_pub(&children.secp, step).unwrap().public_key,
                "{index}"
            );
        }
        assert_eq!(children.key(1 << 31), Err(ExpandError::Index(1 << 31)));
    }
}
