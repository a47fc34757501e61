//! Key expressions: single and extended keys, with an optional origin.

use std::fmt::Write as _;
use std::sync::OnceLock;

use bitcoin::bip32::{ChainCode, ChildNumber, Fingerprint, Xpriv, Xpub};
use bitcoin::hashes::Hash;
use bitcoin::{NetworkKind, PrivateKey, PublicKey};
use outrigger_values::Secret;
use secp256k1::{SecretKey, XOnlyPublicKey};

use super::branches::{Branch, child};
use super::error::ExpandError;
use super::musig::aggregate;
use super::secp::SECP;
use super::wildcard::Wildcard;

/// The mark of hardened steps. All steps of a path get the mark of the last one in the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mark {
    H,
    Apostrophe,
}

/// `[fingerprint/path]`
#[derive(Clone)]
pub(super) struct Origin {
    pub fingerprint: [u8; 4],
    pub path: Vec<ChildNumber>,
    pub mark: Mark,
}

#[derive(Clone)]
pub(super) struct Key {
    pub origin: Option<Origin>,
    pub body: Body,
}

/// A key expression without its origin.
#[derive(Clone)]
pub(super) enum Body {
    Single(Single),
    /// An extended key (BIP 32).
    Extended(Box<Extended>),
    /// An aggregate of keys (BIP 390).
    Musig(Box<Musig>),
}

#[derive(Clone)]
pub(super) struct Single {
    pub public: PublicKey,
    pub secret: Option<SecretKey>,
    /// Whether the text has only the x coordinate.
    pub x_only: bool,
}

#[derive(Clone)]
pub(super) struct Extended {
    pub public: Xpub,
    pub private: Option<Xpriv>,
    /// The steps before the wildcard. Until [`Key::select`], a multipath step is its first alternative.
    pub path: Vec<ChildNumber>,
    /// The multipath step's position in `path`, and its alternatives.
    pub multipath: Option<(usize, Vec<ChildNumber>)>,
    pub wildcard: Wildcard,
    pub mark: Mark,
    /// The key at the end of `path`, derived once for all indexes.
    pub parent: OnceLock<Result<Parent, ExpandError>>,
}

/// The key at the end of a path, the parent of a wildcard's children.
#[derive(Clone)]
pub(super) struct Parent {
    public: Xpub,
    private: Option<Xpriv>,
}

/// The key of an expression at an index, with its origin.
#[derive(Clone)]
pub(super) struct DerivedKey {
    pub public: PublicKey,
    pub fingerprint: [u8; 4],
    pub path: Vec<ChildNumber>,
}

impl DerivedKey {
    /// The x-only public key (BIP 340).
    pub fn x_only(&self) -> XOnlyPublicKey {
        self.public.inner.x_only_public_key().0
    }

    /// The key expression of a definite descriptor: `[fingerprint/path]key`.
    pub fn text(&self, x_only: bool) -> String {
        let key = if x_only { self.x_only().to_string() } else { self.public.to_string() };
        format!("{}{key}", origin_text(self.fingerprint, &self.path, Mark::H))
    }

    /// The path in the form `m/84h/1h/0h/0/5`.
    pub fn path_text(&self) -> String {
        format!("m{}", path_text(&self.path, Mark::H))
    }
}

pub(super) fn path_text(path: &[ChildNumber], mark: Mark) -> String {
    let hardened = if mark == Mark::H { "h" } else { "'" };
    path.iter().fold(String::new(), |mut text, step| {
        let (number, mark) = match step {
            ChildNumber::Normal { index } => (index, ""),
            ChildNumber::Hardened { index } => (index, hardened),
        };
        let _ = write!(text, "/{number}{mark}");
        text
    })
}

fn origin_text(fingerprint: [u8; 4], path: &[ChildNumber], mark: Mark) -> String {
    format!("[{}{}]", outrigger_values::params::encode_hex(&fingerprint), path_text(path, mark))
}

/// The fingerprint and the path of an origin. A key without one is its own master key.
fn origin_or(origin: Option<&Origin>, own: impl FnOnce() -> [u8; 4]) -> ([u8; 4], Vec<ChildNumber>) {
    origin.map_or_else(|| (own(), Vec::new()), |origin| (origin.fingerprint, origin.path.clone()))
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Without private keys.
    Public,
    /// With private keys, if known.
    Private,
    /// Without private keys, with hardened steps marked `h`: the same text for the same descriptor.
    Identity,
    /// Without private keys, with the public key after the last hardened step instead of the steps before.
    Normalized,
}

impl Key {
    /// Whether the key depends on the index.
    pub fn is_ranged(&self) -> bool {
        match &self.body {
            Body::Single(_) => false,
            Body::Extended(extended) => extended.wildcard != Wildcard::None,
            Body::Musig(musig) => musig.is_ranged(),
        }
    }

    /// The keys of the expression: itself, or the participants of an aggregate.
    pub fn parts(&self) -> &[Self] {
        match &self.body {
            Body::Musig(musig) => &musig.participants,
            _ => std::slice::from_ref(self),
        }
    }

    /// Whether all private keys of the expression are known.
    pub fn is_private(&self) -> bool {
        self.parts().iter().all(|part| part.private_half().is_some())
    }

    /// Whether the expression has any private key.
    pub fn has_private(&self) -> bool {
        self.parts().iter().any(|part| part.private_half().is_some())
    }

    /// The expression's private key with its public key, at the start of the path. An aggregate has none.
    pub fn private_half(&self) -> Option<(secp256k1::PublicKey, SecretKey)> {
        match &self.body {
            Body::Single(single) => Some((single.public.inner, single.secret?)),
            Body::Extended(extended) => {
                extended.private.as_ref().map(|private| (extended.public.public_key, private.private_key))
            }
            Body::Musig(_) => None,
        }
    }

    /// The expression's private key as WIF, if the HASH160 of its public key is `hash`.
    pub fn wif_of(&self, hash: &[u8; 20], network: NetworkKind) -> Option<Secret> {
        let (public, inner) = self.private_half()?;
        let compressed = !matches!(&self.body, Body::Single(single) if !single.public.compressed);
        let public = PublicKey { compressed, inner: public };
        let matches = public.pubkey_hash().as_raw_hash().as_byte_array() == hash;
        matches.then(|| Secret::new(PrivateKey { compressed, network, inner }.to_wif()))
    }

    /// Adds the private key from `private`, if the expression has none.
    pub fn complete(&mut self, private: &[(secp256k1::PublicKey, SecretKey)]) {
        let found = |public| private.iter().find(|(other, _)| *other == public).map(|(_, secret)| *secret);
        match &mut self.body {
            // An x-only key does not determine the public key.
            Body::Single(single) if single.secret.is_none() && !single.x_only => {
                single.secret = found(single.public.inner)
            }
            Body::Extended(extended) if extended.private.is_none() => {
                let public = &extended.public;
                extended.private = found(public.public_key).map(|private_key| Xpriv {
                    network: public.network,
                    depth: public.depth,
                    parent_fingerprint: public.parent_fingerprint,
                    child_number: public.child_number,
                    private_key,
                    chain_code: public.chain_code,
                });
            }
            Body::Musig(musig) => musig.participants.iter_mut().for_each(|key| key.complete(private)),
            _ => {}
        }
    }

    /// The extended key in the text, and its private form if present.
    pub fn extended(&self) -> Option<(Xpub, Option<Secret>)> {
        let Body::Extended(extended) = &self.body else { return None };
        Some((extended.public, extended.private.as_ref().map(|private| Secret::new(private.to_string()))))
    }

    /// The single key in the text, and whether it has its private key.
    pub fn single(&self) -> Option<(PublicKey, bool)> {
        let Body::Single(single) = &self.body else { return None };
        Some((single.public, single.secret.is_some()))
    }

    /// The length of the public key in a script, in bytes.
    pub fn size(&self) -> usize {
        match &self.body {
            Body::Single(Single { public, .. }) if !public.compressed => 65,
            _ => 33,
        }
    }

    /// The number of alternatives of the multipath step; `None` without one.
    pub fn alternatives(&self) -> Option<usize> {
        match &self.body {
            Body::Extended(extended) => extended.multipath.as_ref().map(|(_, steps)| steps.len()),
            Body::Musig(musig) => match &musig.multipath {
                Some((_, steps)) => Some(steps.len()),
                None => musig.participants.iter().find_map(Self::alternatives),
            },
            Body::Single(_) => None,
        }
    }

    /// The key with the alternative `choice` of its multipath step, if any.
    pub fn select(mut self, choice: usize) -> Self {
        let (path, multipath) = match &mut self.body {
            Body::Single(_) => return self,
            Body::Extended(extended) => (&mut extended.path, &mut extended.multipath),
            Body::Musig(musig) => {
                let participants = std::mem::take(&mut musig.participants);
                musig.participants = participants.into_iter().map(|key| key.select(choice)).collect();
                (&mut musig.path, &mut musig.multipath)
            }
        };
        if let Some((place, steps)) = multipath.take()
            && let (Some(step), Some(chosen)) = (path.get_mut(place), steps.get(choice))
        {
            *step = *chosen;
        }
        self
    }

    pub fn text(&self, form: Form, network: NetworkKind) -> String {
        // Only the descriptor's own text keeps its marks.
        let mark = |mark| if matches!(form, Form::Public | Form::Private) { mark } else { Mark::H };
        let origin = |origin: &Origin| origin_text(origin.fingerprint, &origin.path, mark(origin.mark));
        let prefix = self.origin.as_ref().map(origin).unwrap_or_default();
        match &self.body {
            Body::Single(single) => prefix + &single.text(form, network),
            Body::Extended(extended) => {
                if form == Form::Normalized
                    && let Some(text) = extended.normalized(self.origin.as_ref())
                {
                    return text;
                }
                let key = match (form, &extended.private) {
                    (Form::Private, Some(private)) => private.to_string(),
                    _ => extended.public.to_string(),
                };
                let mark = mark(extended.mark);
                prefix + &key + &path_text(&extended.path, mark) + extended.wildcard_text(mark)
            }
            Body::Musig(musig) => musig.text(form, network),
        }
    }

    /// The key at an index.
    pub fn derive(&self, index: u32) -> Result<DerivedKey, ExpandError> {
        match &self.body {
            Body::Single(Single { public, .. }) => {
                let (fingerprint, path) = origin_or(self.origin.as_ref(), || {
                    let [a, b, c, d, ..] = *Hash::as_byte_array(public.pubkey_hash().as_raw_hash());
                    [a, b, c, d]
                });
                Ok(DerivedKey { public: *public, fingerprint, path })
            }
            Body::Extended(extended) => {
                let (public, step) = extended.child(index)?;
                let (fingerprint, mut path) =
                    origin_or(self.origin.as_ref(), || extended.public.fingerprint().to_bytes());
                path.extend_from_slice(&extended.path);
                path.extend(step);
                Ok(DerivedKey { public: PublicKey::new(public), fingerprint, path })
            }
            Body::Musig(musig) => musig.derive(index),
        }
    }

    /// The private key at the end of the path, if known. `place` is the expression's index in the descriptor. An
    /// aggregate has no private key: its participants sign together (BIP 327), which is not supported.
    pub fn branch(&self, place: usize) -> Option<Branch> {
        match &self.body {
            Body::Single(single) => Some(Branch {
                place,
                wildcard: Wildcard::None,
                public: single.public,
                secret: single.secret?,
                chain_code: [0; 32],
            }),
            Body::Extended(extended) => {
                let parent = extended.parent().ok()?;
                let private = parent.private.as_ref()?;
                Some(Branch {
                    place,
                    wildcard: extended.wildcard,
                    public: PublicKey::new(parent.public.public_key),
                    secret: private.private_key,
                    chain_code: private.chain_code.to_bytes(),
                })
            }
            Body::Musig(_) => None,
        }
    }
}

impl Single {
    fn text(&self, form: Form, network: NetworkKind) -> String {
        match (form, self.secret) {
            (Form::Private, Some(inner)) => PrivateKey { compressed: self.public.compressed, network, inner }.to_wif(),
            _ if self.x_only => self.public.inner.x_only_public_key().0.to_string(),
            _ => self.public.to_string(),
        }
    }
}

/// The key at the end of a path, for derivation alone: the fingerprint is the root's. `None` beyond the depth of 255 (BIP 32).
fn derived(root: &Xpriv, path: &[ChildNumber]) -> Option<Xpriv> {
    let mut key = *root;
    for step in path {
        let (secret, chain_code) = child(&key.private_key, &key.chain_code.to_bytes(), None, *step)?;
        (key.private_key, key.chain_code, key.depth) = (secret, chain_code.into(), key.depth.checked_add(1)?);
    }
    Some(key)
}

impl Extended {
    fn parent(&self) -> Result<&Parent, ExpandError> {
        let derive = || {
            let private = self.private.as_ref().map(|root| derived(root, &self.path).ok_or(ExpandError::NoSuchKey));
            let private = private.transpose()?;
            let public = match &private {
                Some(private) => Xpub::from_priv(&SECP, private),
                None if self.path.iter().any(ChildNumber::is_hardened) => {
                    return Err(ExpandError::HardenedWithoutPrivateKey);
                }
                None => self.public.derive_pub(&SECP, &self.path).map_err(|_| ExpandError::NoSuchKey)?,
            };
            Ok(Parent { public, private })
        };
        self.parent.get_or_init(derive).as_ref().map_err(|error| *error)
    }

    /// The public key at an index, and the last step.
    fn child(&self, index: u32) -> Result<(secp256k1::PublicKey, Option<ChildNumber>), ExpandError> {
        let parent = self.parent()?;
        let step = self.wildcard.step(index)?;
        let public = match step {
            None => parent.public.public_key,
            Some(step) if step.is_normal() => {
                parent.public.ckd_pub(&SECP, step).map_err(|_| ExpandError::NoSuchKey)?.public_key
            }
            Some(step) => {
                let private = parent.private.as_ref().ok_or(ExpandError::HardenedWithoutPrivateKey)?;
                let child = private.derive_priv(&SECP, &[step]).map_err(|_| ExpandError::NoSuchKey)?;
                child.private_key.public_key(&SECP)
            }
        };
        Ok((public, step))
    }

    fn wildcard_text(&self, mark: Mark) -> &'static str {
        match (self.wildcard, mark) {
            (Wildcard::None, _) => "",
            (Wildcard::Normal, _) => "/*",
            (Wildcard::Hardened, Mark::H) => "/*h",
            (Wildcard::Hardened, Mark::Apostrophe) => "/*'",
        }
    }

    /// `[origin/hardened steps]xpub/other steps`; `None` without such steps or private key, or for a hardened wildcard.
    fn normalized(&self, origin: Option<&Origin>) -> Option<String> {
        if self.wildcard == Wildcard::Hardened {
            return None;
        }
        let split = self.path.iter().rposition(ChildNumber::is_hardened)? + 1;
        let (hardened, rest) = self.path.split_at_checked(split)?;
        let public = Xpub::from_priv(&SECP, &self.private.as_ref()?.derive_priv(&SECP, &hardened).ok()?);
        let (fingerprint, mut path) = origin_or(origin, || self.public.fingerprint().to_bytes());
        path.extend_from_slice(hardened);
        let origin = origin_text(fingerprint, &path, Mark::H);
        Some(format!("{origin}{public}{}{}", path_text(rest, Mark::H), self.wildcard_text(Mark::H)))
    }
}

/// The chain code of every aggregate key (BIP 328).
const MUSIG_CHAIN_CODE: [u8; 32] = [
    0x86, 0x80, 0x87, 0xca, 0x02, 0xa6, 0xf9, 0x74, 0xc4, 0x59, 0x89, 0x24, 0xc3, 0x6b, 0x57, 0x76, 0x2d, 0x32, 0xcb,
    0x45, 0x71, 0x71, 0x67, 0xe3, 0x00, 0x62, 0x2c, 0x71, 0x67, 0xe3, 0x89, 0x65,
];

/// `musig(KEY,...)/path`: the aggregate of the participants' keys, sorted, and keys derived from it (BIPs 390, 328).
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
    /// The aggregate as an extended key, cached if no participant is ranged.
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
        keys.sort_by_key(secp256k1::PublicKey::serialize);
        let public = Xpub {
            network: self.network,
            depth: 0,
            parent_fingerprint: Fingerprint::default(),
            child_number: ChildNumber::Normal { index: 0 },
            public_key: aggregate(&keys).ok_or(ExpandError::NoSuchKey)?,
            chain_code: ChainCode::from(MUSIG_CHAIN_CODE),
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
