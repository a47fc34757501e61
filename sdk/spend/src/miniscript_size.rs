//! Witness scripts and leaf scripts as miniscript: their greatest satisfaction, and whether a set of keys can sign.

use bitcoin::hashes::{Hash, hash160};
use bitcoin::secp256k1::{ecdsa, schnorr};
use bitcoin::{PublicKey, Script, TapLeafHash, XOnlyPublicKey};
use miniscript::miniscript::analyzable::ExtParams;
use miniscript::{Miniscript, Satisfier, Segwitv0, Tap, ToPublicKey};
use outrigger_service::wallet::SolvingData;

use crate::known::public_key;

/// The greatest satisfaction of a witness script, without the script itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Satisfaction {
    /// The number of witness elements.
    pub count: usize,
    /// Their size with the length prefixes, in bytes.
    pub size: usize,
}

/// The script as a sane miniscript, with key hashes instead of keys allowed.
fn witness_script(script: &Script) -> Option<Miniscript<PublicKey, Segwitv0>> {
    Miniscript::decode_with_ext(script, &ExtParams::sane().raw_pkh()).ok()
}

/// The greatest satisfaction of a witness script. Signatures count at their greatest length, as in Bitcoin Core.
pub fn satisfaction(script: &Script) -> Option<Satisfaction> {
    let most = witness_script(script)?.ext.sat_data?;
    Some(Satisfaction { count: most.max_witness_stack_count, size: most.max_witness_stack_size })
}

/// The keys in a witness script, and all known keys, which may match its key hashes.
pub fn keys(script: &Script, solving: &SolvingData) -> Vec<Vec<u8>> {
    let Some(script) = witness_script(script) else { return Vec::new() };
    let named = script.iter_pk().map(|key| key.to_bytes());
    named.chain(solving.public_keys.iter().map(|key| key.to_vec())).collect()
}

/// The x-only keys of a leaf script.
pub fn leaf_keys(script: &Script) -> Vec<Vec<u8>> {
    let Some(script) = leaf(script) else { return Vec::new() };
    script.iter_pk().map(|key| key.serialize().to_vec()).collect()
}

fn leaf(script: &Script) -> Option<Miniscript<XOnlyPublicKey, Tap>> {
    Miniscript::decode_with_ext(script, &ExtParams::sane()).ok()
}

/// Whether signatures of these keys alone satisfy a witness script, without timelocks or preimages.
pub fn can_sign(script: &Script, solving: &SolvingData, can_sign: &dyn Fn(&[u8]) -> bool) -> bool {
    witness_script(script).is_some_and(|script| script.satisfy(Signers { solving, can_sign }).is_ok())
}

/// The lengths of the witness elements that satisfy a leaf script, with signatures of these keys alone.
pub fn leaf_elements(script: &Script, solving: &SolvingData, can_sign: &dyn Fn(&[u8]) -> bool) -> Option<Vec<usize>> {
    let elements = leaf(script)?.satisfy(Signers { solving, can_sign }).ok()?;
    Some(elements.iter().map(Vec::len).collect())
}

/// Yields placeholder signatures for the keys that `can_sign` accepts.
struct Signers<'a> {
    solving: &'a SolvingData,
    can_sign: &'a dyn Fn(&[u8]) -> bool,
}

impl Signers<'_> {
    fn ecdsa(&self, key: &[u8]) -> Option<bitcoin::ecdsa::Signature> {
        let signature = ecdsa::Signature::from_compact(&[1; 64]).ok()?;
        (self.can_sign)(key).then(|| bitcoin::ecdsa::Signature::sighash_all(signature))
    }
}

impl<Pk: ToPublicKey> Satisfier<Pk> for Signers<'_> {
    fn lookup_ecdsa_sig(&self, key: &Pk) -> Option<bitcoin::ecdsa::Signature> {
        self.ecdsa(&key.to_public_key().to_bytes())
    }

    fn lookup_tap_leaf_script_sig(&self, key: &Pk, _: &TapLeafHash) -> Option<bitcoin::taproot::Signature> {
        let signature = schnorr::Signature::from_slice(&[1; 64]).ok()?;
        let sighash_type = bitcoin::TapSighashType::Default;
        let signs = (self.can_sign)(&key.to_x_only_pubkey().serialize());
        signs.then_some(bitcoin::taproot::Signature { signature, sighash_type })
    }

    fn lookup_raw_pkh_pk(&self, hash: &hash160::Hash) -> Option<PublicKey> {
        PublicKey::from_slice(public_key(hash.as_byte_array(), self.solving)?).ok()
    }

    fn lookup_raw_pkh_ecdsa_sig(&self, hash: &hash160::Hash) -> Option<(PublicKey, bitcoin::ecdsa::Signature)> {
        let key = Satisfier::<PublicKey>::lookup_raw_pkh_pk(self, hash)?;
        Some((key, self.ecdsa(&key.to_bytes())?))
    }
}
