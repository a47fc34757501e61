//! Keys and scripts that were imported: whose a script is by them, and how it is spent.

use std::collections::BTreeMap;

use bitcoin::hashes::{Hash, hash160, ripemd160};
use bitcoin::{PrivateKey, Script, ScriptBuf};

use crate::params::encode_hex;
use crate::service::wallet::{KeyOrigin, Ownership, ScriptInfo, SolvingData};
use crate::standard::descriptor::with_checksum;
use crate::standard::{ScriptKind, classify};
use crate::wire::Blob;

/// The length of a compressed public key.
const COMPRESSED: usize = 33;

/// A public key that was imported.
#[derive(Clone)]
pub struct ImportedKey {
    pub public_key: Vec<u8>,
    pub private: Option<PrivateKey>,
    pub timestamp: u64,
    pub origin: Option<KeyOrigin>,
}

/// Everything that imports of keys and scripts brought.
#[derive(Clone, Default)]
pub struct Imported {
    /// By HASH160 of the public key.
    pub keys: BTreeMap<[u8; 20], ImportedKey>,
    /// Redeem and witness scripts by their HASH160, with the birth time; 0 for one that follows from a key.
    pub scripts: BTreeMap<[u8; 20], (ScriptBuf, u64)>,
    /// What is watched, with the birth time.
    pub watched: BTreeMap<ScriptBuf, u64>,
    /// The keypool in its order: whether for change, and the key's hash.
    pub pool: Vec<(bool, [u8; 20])>,
}

/// Where in a script's nesting one looks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Top,
    RedeemScript,
    Witness,
}

/// Whose a script is; what is invalid is nobody's, whatever is held.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mine {
    No,
    WatchOnly,
    Spendable,
    Invalid,
}

/// HASH160 of a public key or script.
pub fn hash160(bytes: &[u8]) -> [u8; 20] {
    hash160::Hash::hash(bytes).to_byte_array()
}

/// The P2PKH script of a key's hash.
pub fn p2pkh(hash: &[u8; 20]) -> ScriptBuf {
    ScriptBuf::from_bytes([&[0x76, 0xa9, 20], hash.as_slice(), &[0x88, 0xac]].concat())
}

/// The P2SH script of a script's hash.
pub fn p2sh(hash: &[u8; 20]) -> ScriptBuf {
    ScriptBuf::from_bytes([&[0xa9, 20], hash.as_slice(), &[0x87]].concat())
}

/// The P2WPKH script of a key's hash.
pub fn p2wpkh(hash: &[u8; 20]) -> ScriptBuf {
    ScriptBuf::from_bytes([&[0, 20], hash.as_slice()].concat())
}

/// The pay-to-pubkey script of a key.
pub fn p2pk(key: &[u8]) -> ScriptBuf {
    let length = u8::try_from(key.len()).unwrap_or(u8::MAX);
    ScriptBuf::from_bytes([&[length], key, &[0xac]].concat())
}

/// The hash by which a witness script is known: HASH160, of which its program has the first half.
fn witness_script_id(program: &[u8; 32]) -> [u8; 20] {
    ripemd160::Hash::hash(program).to_byte_array()
}

impl Imported {
    pub fn ownership(&self, script: &Script) -> Ownership {
        match self.mine(script, Place::Top) {
            Mine::Spendable => Ownership::Spendable,
            Mine::WatchOnly => Ownership::WatchOnly,
            Mine::No | Mine::Invalid => Ownership::None,
        }
    }

    fn held(&self, key: &[u8]) -> bool {
        self.keys.get(&hash160(key)).is_some_and(|key| key.private.is_some())
    }

    fn within(&self, hash: &[u8; 20], place: Place) -> Mine {
        self.scripts.get(hash).map_or(Mine::No, |(script, _)| self.mine(script, place))
    }

    fn mine(&self, script: &Script, place: Place) -> Mine {
        let mine = |held| if held { Mine::Spendable } else { Mine::No };
        let known = || self.scripts.contains_key(&hash160(script.as_bytes()));
        let found = match (classify(script), place) {
            (ScriptKind::PubKey { key }, Place::Witness) if key.len() != COMPRESSED => Mine::Invalid,
            (ScriptKind::PubKey { key }, _) => mine(self.held(key)),
            (ScriptKind::PubKeyHash { hash }, _) => self.by_hash(hash, place),
            (ScriptKind::ScriptHash { hash }, Place::Top) => self.within(hash, Place::RedeemScript),
            (ScriptKind::ScriptHash { .. }, _) => Mine::Invalid,
            (ScriptKind::WitnessV0KeyHash { .. } | ScriptKind::WitnessV0ScriptHash { .. }, Place::Witness) => {
                Mine::Invalid
            }
            // A witness program counts only when it is known as a script itself.
            (ScriptKind::WitnessV0KeyHash { .. } | ScriptKind::WitnessV0ScriptHash { .. }, Place::Top) if !known() => {
                Mine::No
            }
            (ScriptKind::WitnessV0KeyHash { hash }, _) => self.by_hash(hash, Place::Witness),
            (ScriptKind::WitnessV0ScriptHash { hash }, _) => self.within(&witness_script_id(hash), Place::Witness),
            (ScriptKind::Multisig { keys, .. }, Place::Witness) if keys.iter().any(|key| key.len() != COMPRESSED) => {
                Mine::Invalid
            }
            (ScriptKind::Multisig { keys, .. }, Place::RedeemScript | Place::Witness) => {
                mine(keys.into_iter().all(|key| self.held(key)))
            }
            _ => Mine::No,
        };
        if found == Mine::No && self.watched.contains_key(script) { Mine::WatchOnly } else { found }
    }

    fn by_hash(&self, hash: &[u8; 20], place: Place) -> Mine {
        match self.keys.get(hash) {
            Some(key) if place == Place::Witness && key.public_key.len() != COMPRESSED => Mine::Invalid,
            Some(key) if key.private.is_some() => Mine::Spendable,
            _ => Mine::No,
        }
    }

    /// Makes a redeem or witness script known, unless it is.
    pub fn learn_script(&mut self, script: &Script, timestamp: u64) {
        self.scripts.entry(hash160(script.as_bytes())).or_insert_with(|| (script.to_owned(), timestamp));
    }

    /// Makes a public key known, or that its private key is held. Whether either is news.
    pub fn learn_key(&mut self, mut key: ImportedKey) -> bool {
        let hash = hash160(&key.public_key);
        if let Some(known) = self.keys.get(&hash) {
            if known.private.is_some() || key.private.is_none() {
                return false;
            }
            key.origin = key.origin.or_else(|| known.origin.clone());
        }
        if key.public_key.len() == COMPRESSED {
            self.learn_script(&p2wpkh(&hash), 0);
        }
        self.keys.insert(hash, key);
        true
    }

    /// Watches a script; one that is watched gets the new birth time.
    pub fn watch(&mut self, script: &Script, timestamp: u64) {
        self.watched.insert(script.to_owned(), timestamp);
        if let ScriptKind::PubKey { key } = classify(script)
            && bitcoin::PublicKey::from_slice(key).is_ok()
        {
            self.learn_key(ImportedKey { public_key: key.to_vec(), private: None, timestamp, origin: None });
        }
    }

    /// What imports say of a script, and whether they say anything.
    pub fn knowledge(&self, script: &ScriptBuf) -> (ScriptInfo, bool) {
        let mut found = Found::default();
        let text = self.collect(script, Place::Top, &mut found);
        if found.timestamp == 0 {
            found.timestamp = self.watched.get(script).copied().unwrap_or(0);
        }
        let says = found.known && (text.is_some() || !found.solving.scripts.is_empty());
        let info = ScriptInfo {
            ownership: self.ownership(script),
            solvable: text.is_some(),
            label: None,
            change: false,
            internal: false,
            timestamp: found.timestamp,
            descriptor: text.map(with_checksum).unwrap_or_default(),
            parents: Vec::new(),
            solving: found.solving,
            origins: found.origins,
        };
        (info, says)
    }

    fn collect(&self, script: &Script, place: Place, found: &mut Found) -> Option<String> {
        match (classify(script), place) {
            (ScriptKind::PubKey { key }, _) => Some(format!("pk({})", self.key(key, found))),
            (ScriptKind::PubKeyHash { hash }, _) => Some(format!("pkh({})", self.key_of(hash, found)?)),
            (ScriptKind::WitnessV0KeyHash { hash }, Place::Top | Place::RedeemScript) => {
                Some(format!("wpkh({})", self.key_of(hash, found)?))
            }
            (ScriptKind::Multisig { required, keys }, _) => {
                let keys: Vec<String> = keys.into_iter().map(|key| self.key(key, found)).collect();
                Some(format!("multi({required},{})", keys.join(",")))
            }
            (ScriptKind::ScriptHash { hash }, Place::Top) => {
                Some(format!("sh({})", self.inner(hash, Place::RedeemScript, found)?))
            }
            (ScriptKind::WitnessV0ScriptHash { hash }, Place::Top | Place::RedeemScript) => {
                Some(format!("wsh({})", self.inner(&witness_script_id(hash), Place::Witness, found)?))
            }
            _ => None,
        }
    }

    fn inner(&self, hash: &[u8; 20], place: Place, found: &mut Found) -> Option<String> {
        let (script, timestamp) = self.scripts.get(hash)?;
        found.known = true;
        found.solving.scripts.push(script.clone());
        found.timestamp = found.timestamp.max(*timestamp);
        self.collect(script, place, found)
    }

    /// Notes a key that stands in a script, and gives its key expression.
    fn key(&self, key: &[u8], found: &mut Found) -> String {
        self.key_of(&hash160(key), found).unwrap_or_else(|| {
            found.solving.public_keys.push(Blob(key.to_vec()));
            encode_hex(key)
        })
    }

    fn key_of(&self, hash: &[u8; 20], found: &mut Found) -> Option<String> {
        let key = self.keys.get(hash)?;
        found.known = true;
        found.timestamp = if found.timestamp == 0 { key.timestamp } else { found.timestamp };
        found.solving.public_keys.push(Blob(key.public_key.clone()));
        let text = encode_hex(&key.public_key);
        let Some(origin) = &key.origin else { return Some(text) };
        found.origins.push(origin.clone());
        let path = origin.path.strip_prefix('m').unwrap_or(&origin.path);
        Some(format!("[{}{path}]{text}", encode_hex(&origin.fingerprint)))
    }
}

/// What is known for spending a script.
#[derive(Default)]
struct Found {
    solving: SolvingData,
    origins: Vec<KeyOrigin>,
    timestamp: u64,
    /// Whether any of it was imported, and not read off the script itself.
    known: bool,
}
