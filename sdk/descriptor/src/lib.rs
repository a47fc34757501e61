//! Output script descriptors (BIP 380 to 387, 389, 390): parsing, formatting, expanding.
//!
//! Supports `pk`, `pkh`, `wpkh`, `sh`, `wsh`, `multi`, `sortedmulti`, `combo`, `addr`, `raw`, `tr` with script
//! trees, `multi_a`, `sortedmulti_a`, `rawtr`, `musig`, `unused`, miniscript in `wsh` and `tr`, and multipath steps
//! `<0;1>`. Errors have bitcoind's messages ([`DescriptorError`]). The crate `miniscript` parses miniscript.
//!
//! Invariants:
//! - The parser checks the [`limits`] on work and stack before it derives a key.
//! - Each key derives the parent of its wildcard only once.
//! - Only functions with `private` in their name and [`Descriptor::extended_keys`] return private keys. Errors and `Debug` show none.

#![warn(missing_docs)]

mod branches;
mod checksum;
mod error;
mod expand;
mod key;
mod key_parser;
mod key_ref;
mod lexer;
pub mod limits;
mod mini;
mod musig;
mod node;
mod parser;
mod path_keys;
mod redact;
mod secp;
#[cfg(test)]
mod tests;
mod wildcard;

use std::collections::HashSet;
use std::fmt;

use bitcoin::bip32::Xpub;
use bitcoin::{Address, AddressType as AddressKind, Network, NetworkKind, PublicKey, ScriptBuf};

pub use branches::PrivateBranches;
pub use checksum::checksum;
pub use error::{DescriptorError, ExpandError};
use key::{DerivedKey, Form, Key};
use key_ref::KeyRef;
use node::Node;
pub use redact::without_private_keys;

use outrigger_values::{AddressType, KeyOrigin, Secret, SolvingData};

/// Whether a text must have a checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// The text must have a checksum.
    Required,
    /// The text may lack a checksum. If present, it must be correct.
    Optional,
}

/// The descriptor syntax of a Bitcoin Core release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Syntax {
    /// Whether `musig()` is a key (BIP 390).
    pub musig: bool,
    /// Whether `unused()` is a descriptor.
    pub unused: bool,
    /// Whether spaces around keys, and numbers with a plus sign, are refused.
    pub strict: bool,
    /// Whether an empty key in miniscript is refused as a key. Otherwise the text is no miniscript.
    pub empty_keys: bool,
}

impl Syntax {
    /// Accepts every text that at least one release accepts.
    pub const ANY: Self = Self { musig: true, unused: true, strict: false, empty_keys: false };
}

/// An output script descriptor for a network, without multipath steps.
#[derive(Clone)]
pub struct Descriptor {
    node: Node,
    keys: Vec<Key>,
    network: Network,
}

/// The scripts of a descriptor at an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expansion {
    /// One script, or for `combo` two (uncompressed key) or four: pk, pkh, wpkh, sh(wpkh).
    pub scripts: Vec<ExpandedScript>,
}

/// The public keys of a descriptor at an index, with their origins.
#[derive(Clone)]
pub struct DerivedKeys(Vec<DerivedKey>);

/// A script of a descriptor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpandedScript {
    /// The scriptPubKey.
    pub script_pubkey: ScriptBuf,
    /// The solving data. A redeem script comes before its witness script. It has the public keys that bitcoind finds by
    /// hash, so none of `rawtr` and multisigs.
    pub solving: SolvingData,
    /// The origins of all keys in the order of the text. A key without origin or path is its own master key.
    pub origins: Vec<KeyOrigin>,
    /// The definite descriptor of this script with key origins and checksum (getaddressinfo's `desc`).
    pub definite: String,
}

impl Descriptor {
    /// Parses a descriptor. With multipath steps (BIP 389) it yields a descriptor per alternative, in order, otherwise
    /// one. Fails if the text is no descriptor for the network in any release, or exceeds one of the [`limits`].
    pub fn parse(text: &str, network: Network, checksum: Checksum) -> Result<Vec<Self>, DescriptorError> {
        Self::parse_as(text, network, checksum, Syntax::ANY)
    }

    /// As [`Descriptor::parse`], with a release's rules.
    pub fn parse_as(
        text: &str,
        network: Network,
        checksum: Checksum,
        syntax: Syntax,
    ) -> Result<Vec<Self>, DescriptorError> {
        Self::read(text, network, checksum, syntax).map_err(DescriptorError::without_private_keys)
    }

    fn read(text: &str, network: Network, checksum: Checksum, syntax: Syntax) -> Result<Vec<Self>, DescriptorError> {
        let (node, mut parsed) = parser::parse(text, network, checksum, syntax)?;
        parsed.share_private_keys();
        let keys = parsed.keys;
        let mut alternatives = keys.iter().filter_map(Key::alternatives);
        let Some(count) = alternatives.next() else {
            return Ok(vec![Self { node, keys, network }]);
        };
        if alternatives.any(|other| other != count) {
            return Err(node.multipath_mismatch(&|key| keys.get(key.0).and_then(Key::alternatives)));
        }
        if count.saturating_mul(count_keys(&keys)) > limits::MAX_UNFOLDED_KEYS {
            return Err(key_parser::too_many_keys());
        }
        let select = |choice| keys.iter().map(|key| key.clone().select(choice)).collect();
        Ok((0..count).map(|choice| Self { node: node.clone(), keys: select(choice), network }).collect())
    }

    /// The network of its addresses and keys.
    pub fn network(&self) -> Network {
        self.network
    }

    /// Whether its scripts depend on the index.
    pub fn is_ranged(&self) -> bool {
        self.keys.iter().any(Key::is_ranged)
    }

    /// Whether it describes how to spend: false for `addr` and `raw`.
    pub fn is_solvable(&self) -> bool {
        !matches!(self.node, Node::Addr(_) | Node::Raw(_))
    }

    /// Whether it is a `combo`, with several scripts per index.
    pub fn is_combo(&self) -> bool {
        matches!(self.node, Node::Combo(_))
    }

    /// Whether its scripts contain only the hash of a key (`pkh`, `wpkh`, also in `sh` and `wsh`, and `combo`), so that
    /// the spender must know the public key.
    pub fn pays_to_key_hash(&self) -> bool {
        self.node.pays_to_key_hash()
    }

    /// Whether it is `unused`: a key without scripts.
    pub fn is_unused(&self) -> bool {
        matches!(self.node, Node::Unused(_))
    }

    /// The number of keys, including the participants of aggregates. The cost of an expansion is proportional to it.
    pub fn key_count(&self) -> usize {
        count_keys(&self.keys)
    }

    /// The type of its addresses; `None` for `pk`, `combo`, `unused`, bare `multi`, and `raw` without an address.
    pub fn output_type(&self) -> Option<AddressType> {
        match &self.node {
            Node::Pkh(_) => Some(AddressType::Legacy),
            Node::Wpkh(_) | Node::Wsh(_) => Some(AddressType::Bech32),
            Node::Sh(inner) if matches!(**inner, Node::Wpkh(_) | Node::Wsh(_)) => Some(AddressType::P2shSegwit),
            Node::Sh(_) => Some(AddressType::Legacy),
            Node::Tr(..) | Node::RawTr(_) => Some(AddressType::Bech32m),
            Node::Addr(address) => Some(address_type(address)),
            Node::Raw(script) => Address::from_script(script, self.network).ok().as_ref().map(address_type),
            _ => None,
        }
    }

    /// Whether it contains a private key.
    pub fn has_private_keys(&self) -> bool {
        self.keys.iter().any(Key::has_private)
    }

    /// Whether it has the private keys of all its keys. Equal public keys share one. True for a descriptor without keys.
    pub fn has_all_private_keys(&self) -> bool {
        self.keys.iter().all(Key::is_private)
    }

    /// The canonical text without private keys, with checksum. All hardened steps of a path have the mark of the last.
    pub fn to_public_string(&self) -> String {
        checksum::with_checksum(&self.text(Form::Public))
    }

    /// The text that identifies a descriptor: without private keys, with checksum, with one form of hardened marks.
    pub fn identity(&self) -> String {
        checksum::with_checksum(&self.text(Form::Identity))
    }

    /// [`Descriptor::identity`] with the extended public key after a path's last hardened step instead of the steps
    /// before, so that it expands without private keys. listdescriptors shows this.
    pub fn to_normalized_string(&self) -> String {
        checksum::with_checksum(&self.text(Form::Normalized))
    }

    /// [`Descriptor::to_normalized_string`], but keys in miniscript are as in `given`, the same descriptor in its
    /// original form. Bitcoin Core up to release 30 shows this.
    pub fn to_normalized_string_with(&self, given: &Self) -> String {
        let network = NetworkKind::from(self.network);
        let within: HashSet<KeyRef> = self.node.miniscript_keys().into_iter().collect();
        let key = |name: KeyRef, _| {
            let (written, form) = if within.contains(&name) { (given, Form::Public) } else { (self, Form::Normalized) };
            written.keys.get(name.0).map(|key| key.text(form, network)).unwrap_or_default()
        };
        checksum::with_checksum(&self.node.text(&key))
    }

    /// Whether it contains miniscript.
    pub fn has_miniscript(&self) -> bool {
        !self.node.miniscript_keys().is_empty()
    }

    /// The canonical text with its private keys and a checksum; `None` without private keys.
    pub fn to_private_string(&self) -> Option<Secret> {
        if !self.has_private_keys() {
            return None;
        }
        let payload = zeroize::Zeroizing::new(self.text(Form::Private));
        Some(Secret::new(checksum::with_checksum(&payload)))
    }

    /// The scripts at an index, which matters only if [`Descriptor::is_ranged`]. Fails if a hardened step lacks its
    /// private key, or the index is out of range.
    pub fn expand(&self, index: u32) -> Result<Expansion, ExpandError> {
        expand::expand(&self.node, &self.derive(index)?.0, self.network)
    }

    /// The keys at an index. For a search, [`Self::scripts`] and [`Self::definite`] derive parts of an expansion
    /// from them, which costs less than all of it. Fails as [`Descriptor::expand`].
    pub fn derive(&self, index: u32) -> Result<DerivedKeys, ExpandError> {
        self.keys.iter().map(|key| key.derive(index)).collect::<Result<_, _>>().map(DerivedKeys)
    }

    /// The scripts of derived keys, in the order of [`Descriptor::expand`]. Fails for another descriptor's keys.
    pub fn scripts(&self, keys: &DerivedKeys) -> Result<Vec<ScriptBuf>, ExpandError> {
        expand::scripts(&self.node, &keys.0)
    }

    /// The [`ExpandedScript::definite`] of the script at index `place` of [`Descriptor::scripts`]; `None` if there is
    /// none. Fails as [`Descriptor::scripts`].
    pub fn definite(&self, keys: &DerivedKeys, place: usize) -> Result<Option<String>, ExpandError> {
        expand::definite_at(&self.node, &keys.0, place, self.network)
    }

    /// The extended keys in its text, each with its private form if present.
    pub fn extended_keys(&self) -> Vec<(Xpub, Option<Secret>)> {
        self.keys.iter().filter_map(Key::extended).collect()
    }

    /// For each of [`Descriptor::extended_keys`], the public keys along its path with their chain codes: the key in the text, and the
    /// key after each step before the wildcard. A list ends before the first hardened step without a private key.
    pub fn path_keys(&self) -> Vec<Vec<(secp256k1::PublicKey, [u8; 32])>> {
        self.keys.iter().filter_map(Key::path_keys).collect()
    }

    /// The single keys in its text, each with whether its private key is present.
    pub fn single_keys(&self) -> Vec<(PublicKey, bool)> {
        self.keys.iter().filter_map(Key::single).collect()
    }

    /// The public keys of its private keys without a wildcard, at the ends of their paths.
    pub fn fixed_keys(&self) -> Vec<PublicKey> {
        let fixed = self.keys.iter().filter(|key| key.is_private() && !key.is_ranged());
        fixed.filter_map(|key| Some(key.derive(0).ok()?.public)).collect()
    }

    /// The private key in its text whose public key has this HASH160, as WIF. An extended key counts as the key at the
    /// start of its path. `None` if there is none.
    pub fn written_private_key(&self, hash: &[u8; 20]) -> Option<Secret> {
        self.keys.iter().find_map(|key| key.wif_of(hash, self.network.into()))
    }

    /// Its private keys.
    pub fn private_branches(&self) -> PrivateBranches {
        let keys = self.keys.iter().enumerate();
        PrivateBranches(keys.filter_map(|(place, key)| key.branch(place)).collect())
    }

    fn text(&self, form: Form) -> String {
        let network = NetworkKind::from(self.network);
        let key = |name: KeyRef, _| self.keys.get(name.0).map(|key| key.text(form, network)).unwrap_or_default();
        self.node.text(&key)
    }
}

impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Descriptor({})", self.to_public_string())
    }
}

impl fmt::Display for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_public_string())
    }
}

fn count_keys(keys: &[Key]) -> usize {
    keys.iter().map(|key| key.parts().len()).sum()
}

fn address_type(address: &Address) -> AddressType {
    match address.address_type() {
        Some(AddressKind::P2pkh | AddressKind::P2sh) => AddressType::Legacy,
        Some(AddressKind::P2wpkh | AddressKind::P2wsh) => AddressType::Bech32,
        _ => AddressType::Bech32m,
    }
}
