//! KeyAgg of BIP 327, for `musig()` key expressions (BIP 390).

use bitcoin::hashes::{Hash, HashEngine, sha256};
use secp256k1::{PublicKey, Scalar};

use super::secp::SECP;

fn tagged_hash(tag: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let tag = sha256::Hash::hash(tag);
    let mut engine = sha256::Hash::engine();
    engine.input(tag.as_byte_array());
    engine.input(tag.as_byte_array());
    parts.iter().for_each(|part| engine.input(part));
    sha256::Hash::from_engine(engine).to_byte_array()
}

/// KeyAgg of BIP 327. `None` if there is no such key, with negligible probability.
pub(super) fn aggregate(keys: &[PublicKey]) -> Option<PublicKey> {
    let serialised: Vec<[u8; 33]> = keys.iter().map(PublicKey::serialize).collect();
    let list = tagged_hash(b"KeyAgg list", &[&serialised.concat()]);
    let second = serialised.iter().find(|key| Some(*key) != serialised.first());
    let mut terms = Vec::with_capacity(keys.len());
    for (key, bytes) in keys.iter().zip(&serialised) {
        if Some(bytes) == second {
            terms.push(*key);
            continue;
        }
        let coefficient = Scalar::from_be_bytes(tagged_hash(b"KeyAgg coefficient", &[&list, bytes])).ok()?;
        terms.push(key.mul_tweak(&SECP, &coefficient).ok()?);
    }
    PublicKey::combine_keys(&terms.iter().collect::<Vec<_>>()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The valid cases of BIP 327's `key_agg_vectors.json`.
    #[test]
    fn keys_are_aggregated_as_in_bip_327() {
        let keys: Vec<PublicKey> = [
            "02f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9",
            "03dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659",
            "023590a94e768f8e1815c2f24b4d80a8e3149316c3518ce7b7ad338368d038ca66",
        ]
        .iter()
        .map(|key| key.parse().unwrap())
        .collect();
        for (places, expected) in [
            (&[0, 1, 2][..], "90539eede565f5d054f32cc0c220126889ed1e5d193baf15aef344fe59d4610c"),
            (&[2, 1, 0], "6204de8b083426dc6eaf9502d27024d53fc826bf7d2012148a0575435df54b2b"),
            (&[0, 0, 0], "b436e3bad62b8cd409969a224731c193d051162d8c5ae8b109306127da3aa935"),
            (&[0, 0, 1, 1], "69bc22bfa5d106306e48a20679de1d7389386124d07571d0d872686028c26a3e"),
        ] {
            let keys: Vec<PublicKey> = places.iter().map(|place| keys[*place]).collect();
            assert_eq!(aggregate(&keys).unwrap().x_only_public_key().0.to_string(), expected);
        }
    }
}
