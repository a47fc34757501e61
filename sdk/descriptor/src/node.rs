//! The expressions of a descriptor, and their text.

use bitcoin::{Address, ScriptBuf};
use miniscript::{Miniscript, Segwitv0, Tap};

use super::error::{DescriptorError, ExpandError};
use super::key::DerivedKey;
use super::key_ref::KeyRef;
use super::mini;

impl KeyRef {
    pub fn of(self, derived: &[DerivedKey]) -> Result<&DerivedKey, ExpandError> {
        derived.get(self.0).ok_or(ExpandError::Script)
    }
}

/// An expression. The parser ensures that it is allowed in its place.
#[derive(Clone)]
pub(super) enum Node {
    Pk(KeyRef),
    Pkh(KeyRef),
    Wpkh(KeyRef),
    Combo(KeyRef),
    /// `multi(...)` and `sortedmulti(...)`; `multi_a` and `sortedmulti_a` in a leaf of `tr`
    Multi(Multi),
    Sh(Box<Node>),
    Wsh(Box<Node>),
    Miniscript(Box<Miniscript<KeyRef, Segwitv0>>),
    TapMiniscript(Box<Miniscript<KeyRef, Tap>>),
    /// `tr(KEY,TREE)`: the leaves from left to right, each with its depth
    Tr(KeyRef, Vec<(u8, Node)>),
    RawTr(KeyRef),
    /// `unused(KEY)`: a key that no script contains
    Unused(KeyRef),
    Addr(Address),
    Raw(ScriptBuf),
}

#[derive(Clone)]
pub(super) struct Multi {
    pub threshold: u32,
    pub keys: Vec<KeyRef>,
    /// Whether each script sorts its keys (BIP 67).
    pub sorted: bool,
}

/// Formats a key, x-only if the flag is set: in `tr` and its leaves. In `pk_h` it has 33 bytes: bitcoind finds it by its hash.
pub(super) type ShowKey<'a> = dyn Fn(KeyRef, bool) -> String + 'a;

impl Node {
    /// The error for keys with different numbers of multipath alternatives.
    pub fn multipath_mismatch(&self, alternatives: &dyn Fn(KeyRef) -> Option<usize>) -> DescriptorError {
        let differ = |multi: &Multi| {
            let mut counts = multi.keys.iter().filter_map(|key| alternatives(*key));
            counts.next().is_some_and(|first| counts.any(|other| other != first))
        };
        let mismatch = |function| format!("{function}(): Multipath derivation paths have mismatched lengths").into();
        match self {
            Self::Multi(_) => mismatch("multi"),
            Self::Sh(inner) | Self::Wsh(inner) => inner.multipath_mismatch(alternatives),
            Self::Tr(_, leaves)
                if leaves.iter().any(|(_, leaf)| matches!(leaf, Self::Multi(multi) if differ(multi))) =>
            {
                mismatch("multi")
            }
            Self::Tr(key, _) if alternatives(*key).is_some() => {
                "tr(): Multipath internal key mismatches multipath subscripts lengths".into()
            }
            Self::Tr(..) => mismatch("tr"),
            _ => mismatch("miniscript"),
        }
    }

    /// Whether the innermost function pays to a key hash.
    pub fn pays_to_key_hash(&self) -> bool {
        match self {
            Self::Pkh(_) | Self::Wpkh(_) | Self::Combo(_) => true,
            Self::Sh(inner) | Self::Wsh(inner) => inner.pays_to_key_hash(),
            _ => false,
        }
    }

    /// The keys in miniscript.
    pub fn miniscript_keys(&self) -> Vec<KeyRef> {
        match self {
            Self::Miniscript(expression) => expression.iter_pk().collect(),
            Self::TapMiniscript(expression) => expression.iter_pk().collect(),
            Self::Sh(inner) | Self::Wsh(inner) => inner.miniscript_keys(),
            Self::Tr(_, leaves) => leaves.iter().flat_map(|(_, leaf)| leaf.miniscript_keys()).collect(),
            _ => Vec::new(),
        }
    }

    /// The text of the expression, with keys shown by `key`.
    pub fn text(&self, key: &ShowKey<'_>) -> String {
        self.text_in(key, false)
    }

    fn text_in(&self, key: &ShowKey<'_>, tap: bool) -> String {
        match self {
            Self::Pk(name) => format!("pk({})", key(*name, tap)),
            Self::Pkh(name) => format!("pkh({})", key(*name, tap)),
            Self::Wpkh(name) => format!("wpkh({})", key(*name, tap)),
            Self::Combo(name) => format!("combo({})", key(*name, tap)),
            Self::Multi(multi) => {
                let keys: Vec<String> = multi.keys.iter().map(|name| key(*name, tap)).collect();
                format!("{}({},{})", multi.function(tap), multi.threshold, keys.join(","))
            }
            Self::Sh(inner) => format!("sh({})", inner.text_in(key, tap)),
            Self::Wsh(inner) => format!("wsh({})", inner.text_in(key, tap)),
            Self::Miniscript(expression) => mini::text(expression, &|name| key(name, false)),
            Self::TapMiniscript(expression) => {
                let hashed = mini::hashed_keys(expression);
                mini::text(expression, &|name| key(name, !hashed.contains(&name)))
            }
            Self::Tr(internal, leaves) if leaves.is_empty() => format!("tr({})", key(*internal, true)),
            Self::Tr(internal, leaves) => format!("tr({},{})", key(*internal, true), tree_text(leaves, key)),
            Self::RawTr(name) => format!("rawtr({})", key(*name, true)),
            Self::Unused(name) => format!("unused({})", key(*name, false)),
            Self::Addr(address) => format!("addr({address})"),
            Self::Raw(script) => format!("raw({})", outrigger_values::params::encode_hex(script.as_bytes())),
        }
    }
}

impl Multi {
    fn function(&self, tap: bool) -> &'static str {
        match (self.sorted, tap) {
            (false, false) => "multi",
            (true, false) => "sortedmulti",
            (false, true) => "multi_a",
            (true, true) => "sortedmulti_a",
        }
    }
}

/// The text of a script tree, from its leaves with their depths.
fn tree_text(leaves: &[(u8, Node)], key: &ShowKey<'_>) -> String {
    let mut text = String::new();
    // For each open brace, whether its first half is complete.
    let mut path: Vec<bool> = Vec::new();
    for (depth, leaf) in leaves {
        if path.last() == Some(&true) {
            text.push(',');
        }
        while path.len() < usize::from(*depth) {
            path.push(false);
            text.push('{');
        }
        text.push_str(&leaf.text_in(key, true));
        while path.last() == Some(&true) {
            path.pop();
            text.push('}');
        }
        if let Some(half) = path.last_mut() {
            *half = true;
        }
    }
    text
}
