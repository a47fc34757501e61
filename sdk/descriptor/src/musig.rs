//! `musig()` key expressions (BIP 390): the aggregate of the participants' keys (BIP 327), and keys derived from it (BIP
//! 328). The participants are sorted before they are aggregated.

use std::sync::OnceLock;

use bitcoin::NetworkKind;
use bitcoin::bip32::{ChainCode, ChildNumber, Fingerprint, Xpub};
use bitcoin::hashes::{Hash, HashEngine, sha256};
use secp256k1::{PublicKey, Scalar};

use super::error::ExpandError;
use super::key::{Body, DerivedKey, Extended, Form, Key, Mark, path_text};
use super::secp::SECP;
use super::wildcard::Wildcard;

/// The chain code of every aggregate key (BIP 328).
const CHAIN_CODE: [u8; 32] = [
    0x86, 0x80, 0x87, 0xca, 0x02, 0xa6, 0xf9, 0x74, 0xc4, 0x59, 0x89, 0x24, 0xc3, 0x6b, 0x57, 0x76, 0x2d, 0x32, 0xcb,
    0x45, 0x71, 0x71, 0x67, 0xe3, 0x00, 0x62, 0x2c, 0x71, 0x67, 0xe3, 0x89, 0x65,
];

/// `musig(KEY,...)/path`
#[derive(Clone)]
pub(super) struct Musig {
    pub participants: Vec<Key>,
    /// The steps after the aggregate, before the wildcard. Until [`Key::select`], a multipath step is its first
    /// alternative.
    pub path: Vec<ChildNumber>,
    /// The multipath step's position in `path`, and its alternatives.
    pub multipath: Option<(usize, Vec<ChildNumber>)>,
    pub wildcard: Wildcard,
    pub network: NetworkKind,
    /// The aggregate of participants that are the same at each index, as an extended key.
    pub aggregate: OnceLock<Result<Key, ExpandError>>,
}

impl Musig {
    pub fn is_ranged(&self) -> bool {
        self.wildcard != Wildcard::None || self.participants.iter().any(Key::is_ranged)
    }

    pub fn text(&self, form: Form, network: NetworkKind) -> String {
        let participants: Vec<String> = self.participants.iter().map(|key| key.text(form, network)).collect();
        let wildcard = if self.wildcard == Wildcard::None { "" } else { "/*" };
        format!("musig({}){}{wildcard}", participants.join(","), path_text(&self.path, Mark::H))
    }

    /// The aggregate, or the key derived from it, at an index.
    pub fn derive(&self, index: u32) -> Result<DerivedKey, ExpandError> {
        if self.participants.iter().any(Key::is_ranged) {
            return self.aggregate_at(index)?.derive(index);
        }
        let aggregate = self.aggregate.get_or_init(|| self.aggregate_at(index));
        aggregate.as_ref().map_err(|error| *error)?.derive(index)
    }

    fn aggregate_at(&self, index: u32) -> Result<Key, ExpandError> {
        let keys = self.participants.iter().map(|key| Ok(key.derive(index)?.public.inner));
        let mut keys = keys.collect::<Result<Vec<_>, ExpandError>>()?;
        keys.sort_by_key(PublicKey::serialize);
        let public = Xpub {
            network: self.network,
            depth: 0,
            parent_fingerprint: Fingerprint::default(),
            child_number: ChildNumber::Normal { index: 0 },
            public_key: aggregate(&keys).ok_or(ExpandError::NoSuchKey)?,
            chain_code: ChainCode::from(CHAIN_CODE),
        };
        let extended = Extended {
            public,
            private: None,
            path: self.path.clone(),
            multipath: None,
            wildcard: self.wildcard,
            mark: Mark::H,
            parent: OnceLock::new(),
        };
        Ok(Key { origin: None, body: Body::Extended(Box::new(extended)) })
    }
}

fn tagged_hash(tag: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let tag = sha256::Hash::hash(tag);
    let mut engine = sha256::Hash::engine();
    engine.input(tag.as_byte_array());
    engine.input(tag.as_byte_array());
    parts.iter().for_each(|part| engine.input(part));
    sha256::Hash::from_engine(engine).to_byte_array()
}

/// KeyAgg of BIP 327. `None` if there is no such key, with negligible probability.
fn aggregate(keys: &[PublicKey]) -> Option<PublicKey> {
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
