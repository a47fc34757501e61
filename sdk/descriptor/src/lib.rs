//! Output script descriptors (BIP 380 to 387, 389): reading, showing, expanding.
//!
//! Read are `pk`, `pkh`, `wpkh`, `sh`, `wsh`, `multi`, `sortedmulti`, `combo`, `addr`, `raw`, `tr` with script trees,
//! `multi_a`, `sortedmulti_a`, `rawtr`, miniscript inside `wsh` and `tr`, and multipath steps `<0;1>`. Text that
//! bitcoind refuses is refused with bitcoind's words ([`DescriptorError`]); miniscript itself is the crate
//! `miniscript`'s business.
//!
//! Invariants:
//! - The work and the stack that a text can cost are bounded by [`limits`] before anything is derived.
//! - The parent of a wildcard is derived once per descriptor, not per index.
//! - No text without `private` in its name, no error and no `Debug` ever shows a private key.

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
mod node;
mod parser;
mod redact;
mod secp;
#[cfg(test)]
mod tests;
mod wildcard;

use std::collections::HashSet;
use std::fmt;

use bitcoin::bip32::Xpub;
use bitcoin::{Address, AddressType as AddressKind, Network, NetworkKind, ScriptBuf};

pub use branches::PrivateBranches;
pub use checksum::checksum;
pub use error::{DescriptorError, ExpandError};
use key::{Derived, Form, Key};
use key_ref::KeyRef;
use node::Node;
pub use redact::without_private_keys;

use outrigger_values::{AddressType, KeyOrigin, Secret, SolvingData};

/// Whether a text must carry its checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// It must.
    Required,
    /// It may; one that is there must be right.
    Optional,
}

/// An output script descriptor of a network, with a single path for each key.
#[derive(Clone)]
pub struct Descriptor {
    node: Node,
    keys: Vec<Key>,
    network: Network,
}

/// What a descriptor means at an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expansion {
    /// The scripts: one, or for `combo` two (an uncompressed key) or four: pk, pkh, wpkh, sh(wpkh).
    pub scripts: Vec<ExpandedScript>,
}

/// The public keys of a descriptor at an index, and where they come from.
#[derive(Clone)]
pub struct DerivedKeys(Vec<Derived>);

/// A script of a descriptor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpandedScript {
    /// The scriptPubKey.
    pub script_pubkey: ScriptBuf,
    /// What spending it takes, short of the keys. A redeem script comes before the witness script below it. Public keys are
    /// those that bitcoind finds by their hashes: all but those of `rawtr` and the multisigs.
    pub solving: SolvingData,
    /// All its keys, in the order of the text, and where they come from: the origin of the key expression and the path from
    /// there. A key without either is its own master.
    pub origins: Vec<KeyOrigin>,
    /// The descriptor of this very script, each key with its origin, with checksum (getaddressinfo's `desc`).
    pub definite: String,
}

impl Descriptor {
    /// Reads a descriptor. One with multipath steps (BIP 389) gives one descriptor per alternative, in their order;
    /// any other gives one.
    ///
    /// # Errors
    /// When the text is not a descriptor of the network, or beyond one of the [`limits`].
    pub fn parse(text: &str, network: Network, checksum: Checksum) -> Result<Vec<Self>, DescriptorError> {
        Self::read(text, network, checksum).map_err(DescriptorError::without_private_keys)
    }

    fn read(text: &str, network: Network, checksum: Checksum) -> Result<Vec<Self>, DescriptorError> {
        let (node, mut parsed) = parser::parse(text, network, checksum)?;
        parsed.share_private_keys();
        let keys = parsed.keys;
        let mut alternatives = keys.iter().filter_map(Key::alternatives);
        let Some(count) = alternatives.next() else {
            return Ok(vec![Self { node, keys, network }]);
        };
        if alternatives.any(|other| other != count) {
            return Err(node.multipath_mismatch(&|key| keys.get(key.0).and_then(Key::alternatives)));
        }
        if count.saturating_mul(keys.len()) > limits::MAX_UNFOLDED_KEYS {
            return Err(DescriptorError::TooManyKeys);
        }
        let select = |choice| keys.iter().map(|key| key.clone().select(choice)).collect();
        Ok((0..count).map(|choice| Self { node: node.clone(), keys: select(choice), network }).collect())
    }

    /// The network it was read for.
    pub fn network(&self) -> Network {
        self.network
    }

    /// Whether its scripts depend on the index.
    pub fn is_ranged(&self) -> bool {
        self.keys.iter().any(Key::is_ranged)
    }

    /// Whether it says how to spend: false for `addr` and `raw`.
    pub fn is_solvable(&self) -> bool {
        !matches!(self.node, Node::Addr(_) | Node::Raw(_))
    }

    /// Whether it is a `combo`, which gives several scripts per index.
    pub fn is_combo(&self) -> bool {
        matches!(self.node, Node::Combo(_))
    }

    /// Whether its scripts show a key by its hash alone (`pkh`, `wpkh`, also inside `sh` and `wsh`, and `combo`), so that
    /// who spends them must know the public key.
    pub fn pays_to_key_hash(&self) -> bool {
        self.node.pays_to_key_hash()
    }

    /// The number of key expressions: what expanding an index costs.
    pub fn key_count(&self) -> usize {
        self.keys.len()
    }

    /// The kind of its addresses; none for `pk`, `multi` outside of `sh` and `wsh`, `combo`, and for a `raw` script
    /// without an address.
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

    /// Whether it holds a private key.
    pub fn has_private_keys(&self) -> bool {
        self.keys.iter().any(Key::is_private)
    }

    /// Whether it holds the private half of each of its keys, be it beside another of them; true where it has no keys at all.
    pub fn has_all_private_keys(&self) -> bool {
        self.keys.iter().all(Key::is_private)
    }

    /// Its canonical text without private keys, with checksum. The hardened steps of a path are all marked as its last
    /// one was written, `h` or `'`.
    pub fn to_public_string(&self) -> String {
        checksum::with_checksum(&self.text(Form::Public))
    }

    /// A text that is the same for the same descriptor, however its hardened steps were marked: without private keys,
    /// with checksum. Whether a descriptor is known already is asked by it.
    pub fn identity(&self) -> String {
        checksum::with_checksum(&self.text(Form::Identity))
    }

    /// As [`Descriptor::identity`], with the extended public key behind the last hardened step of a path in the
    /// place of the steps before it, so that it expands without private keys. This is how listdescriptors shows it.
    pub fn to_normalized_string(&self) -> String {
        checksum::with_checksum(&self.text(Form::Normalized))
    }

    /// As [`Descriptor::to_normalized_string`], but with each key within a miniscript as `given`, the same descriptor, was
    /// written: how Bitcoin Core shows it before release 31.
    pub fn to_normalized_string_with(&self, given: &Self) -> String {
        let network = NetworkKind::from(self.network);
        let within: HashSet<KeyRef> = self.node.miniscript_keys().into_iter().collect();
        let key = |name: KeyRef, _| {
            let (written, form) = if within.contains(&name) { (given, Form::Public) } else { (self, Form::Normalized) };
            written.keys.get(name.0).map(|key| key.text(form, network)).unwrap_or_default()
        };
        checksum::with_checksum(&self.node.text(&key))
    }

    /// Whether miniscript is within it.
    pub fn has_miniscript(&self) -> bool {
        !self.node.miniscript_keys().is_empty()
    }

    /// Its canonical text with all private keys that it holds, with checksum; none where it holds none.
    pub fn to_private_string(&self) -> Option<Secret> {
        if !self.has_private_keys() {
            return None;
        }
        let payload = zeroize::Zeroizing::new(self.text(Form::Private));
        Some(Secret::new(checksum::with_checksum(&payload)))
    }

    /// Its scripts at an index, which only matters where [`Descriptor::is_ranged`].
    ///
    /// # Errors
    /// When a hardened step needs a private key that it does not hold, or the index is out of range.
    pub fn expand(&self, index: u32) -> Result<Expansion, ExpandError> {
        expand::expand(&self.node, &self.derive(index)?.0, self.network)
    }

    /// Its keys at an index. Of these its scripts there can be made alone, and later what tells of one of them: what most scripts
    /// of a search are never asked for.
    ///
    /// # Errors
    /// As [`Descriptor::expand`].
    pub fn derive(&self, index: u32) -> Result<DerivedKeys, ExpandError> {
        self.keys.iter().map(|key| key.derive(index)).collect::<Result<_, _>>().map(DerivedKeys)
    }

    /// Its scripts with keys that it derived, in the order of [`Descriptor::expand`].
    ///
    /// # Errors
    /// When the keys are another descriptor's, or make no script.
    pub fn scripts(&self, keys: &DerivedKeys) -> Result<Vec<ScriptBuf>, ExpandError> {
        expand::scripts(&self.node, &keys.0)
    }

    /// The [`ExpandedScript::definite`] of the script that [`Descriptor::scripts`] has at this place; none where there is none.
    ///
    /// # Errors
    /// As [`Descriptor::scripts`].
    pub fn definite(&self, keys: &DerivedKeys, place: usize) -> Result<Option<String>, ExpandError> {
        expand::definite_at(&self.node, &keys.0, place, self.network)
    }

    /// The extended keys that it is written with, each with its private form where it holds that.
    pub fn extended_keys(&self) -> Vec<(Xpub, Option<Secret>)> {
        self.keys.iter().filter_map(Key::extended).collect()
    }

    /// The private key, as WIF, that it is written with and whose public key has this HASH160; of an extended key the one without a
    /// step. None where it holds none such.
    pub fn written_private_key(&self, hash: &[u8; 20]) -> Option<Secret> {
        self.keys.iter().find_map(|key| key.wif_of(hash, self.network.into()))
    }

    /// The private keys that it holds.
    pub fn private_branches(&self) -> PrivateBranches {
        let keys = self.keys.iter().enumerate();
        PrivateBranches::new(keys.filter_map(|(place, key)| key.branch(place)).collect())
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

fn address_type(address: &Address) -> AddressType {
    match address.address_type() {
        Some(AddressKind::P2pkh | AddressKind::P2sh) => AddressType::Legacy,
        Some(AddressKind::P2wpkh | AddressKind::P2wsh) => AddressType::Bech32,
        _ => AddressType::Bech32m,
    }
}
