//! Parses key expressions with bitcoind's checks in bitcoind's order.

use std::str::FromStr;
use std::sync::OnceLock;

use bitcoin::bip32::{ChildNumber, Xpriv, Xpub};
use bitcoin::{NetworkKind, PrivateKey, PublicKey, base58};
use secp256k1::{SecretKey, XOnlyPublicKey};

use super::Syntax;
use super::error::DescriptorError as Error;
use super::key::{Body, Extended, Form, Key, Mark, Musig, Origin, Single};
use super::key_ref::KeyRef;
use super::lexer::{constant, expression};
use super::limits::{MAX_DERIVATION_STEPS, MAX_KEYS, MAX_MULTIPATH};
use super::secp::SECP;
use super::wildcard::Wildcard;
use outrigger_values::params::decode_hex;

/// The start of an aggregate key.
pub(super) const MUSIG: &str = "musig(";
const UNCOMPRESSED: &str = "Uncompressed keys are not allowed";
const MULTIPATH_TOO_SHORT: &str = "Multipath key path specifiers must have at least two items";

pub(super) fn too_many_keys() -> Error {
    format!("Descriptor has more than {MAX_KEYS} keys").into()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Context {
    Top,
    Sh,
    Wsh,
    Tr,
    /// A participant of `musig()`.
    Musig,
}

impl Context {
    fn permits_uncompressed(self) -> bool {
        matches!(self, Self::Top | Self::Sh)
    }
}

/// The keys of a descriptor while it is parsed.
pub(super) struct KeyParser {
    pub network: NetworkKind,
    pub keys: Vec<Key>,
    pub syntax: Syntax,
    /// The number of keys, including the participants of aggregates.
    count: usize,
    steps: usize,
}

impl KeyParser {
    pub fn new(network: NetworkKind, syntax: Syntax) -> Self {
        Self { network, keys: Vec::new(), syntax, count: 0, steps: 0 }
    }

    /// The text of a key without its private half.
    pub fn public_text(&self, key: KeyRef) -> String {
        self.keys.get(key.0).map(|key| key.text(Form::Public, self.network)).unwrap_or_default()
    }

    /// Adds each private key to all keys with the same public key, since it can sign for all of them.
    pub fn share_private_keys(&mut self) {
        let parts = self.keys.iter().flat_map(Key::parts);
        let private: Vec<(secp256k1::PublicKey, SecretKey)> = parts.filter_map(Key::private_half).collect();
        if private.is_empty() || self.keys.iter().all(Key::is_private) {
            return;
        }
        for key in &mut self.keys {
            key.complete(&private);
        }
    }

    /// Parses a key expression.
    pub fn key(&mut self, text: &str, context: Context, uncompressed: bool) -> Result<KeyRef, Error> {
        let key = match text.strip_prefix(MUSIG).filter(|_| self.syntax.musig) {
            Some(rest) => self.musig(rest, context)?,
            None => self.single(text, context, uncompressed && context.permits_uncompressed())?,
        };
        self.keys.push(key);
        Ok(KeyRef(self.keys.len() - 1))
    }

    /// Parses `musig()` after its opening parenthesis, and the derivation after it. As in bitcoind, text after it that
    /// does not begin with `/` is ignored.
    fn musig(&mut self, text: &str, context: Context) -> Result<Key, Error> {
        if context != Context::Tr {
            return Err("musig() is only allowed in tr() and rawtr()".into());
        }
        let (participants, rest) = text.split_once(')').ok_or("Invalid musig() expression")?;
        if rest.contains(')') {
            return Err("Too many ')' in musig() expression".into());
        }
        let participants = self.participants(participants)?;
        let derivation = rest.strip_prefix('/').map(|steps| self.after_musig(steps, &participants)).transpose()?;
        let (wildcard, (path, multipath)) = derivation.unwrap_or((Wildcard::None, (Vec::new(), None)));
        let mut counts = participants.iter().filter_map(Key::alternatives);
        if let Some(count) = counts.next() {
            if multipath.is_some() {
                return Err("musig(): Cannot have multipath participant keys if musig() is also multipath".into());
            }
            if counts.any(|other| other != count) {
                return Err("musig(): Multipath derivation paths have mismatched lengths".into());
            }
        }
        let network = self.network;
        let musig = Musig { participants, path, multipath, wildcard, network, aggregate: OnceLock::new() };
        Ok(Key { origin: None, body: Body::Musig(Box::new(musig)) })
    }

    fn participants(&mut self, mut text: &str) -> Result<Vec<Key>, Error> {
        let mut participants = Vec::new();
        while let Some(found) = text.chars().next() {
            if !participants.is_empty() && !constant(',', &mut text) {
                return Err(format!("musig(): expected ',', got '{found}'").into());
            }
            let key = self.single(expression(&mut text), Context::Musig, false);
            participants.push(key.map_err(|error| format!("musig(): {error}"))?);
        }
        if participants.is_empty() {
            return Err("musig(): Must contain key expressions".into());
        }
        Ok(participants)
    }

    /// Parses the derivation after an aggregate (BIP 328).
    fn after_musig(&mut self, steps: &str, participants: &[Key]) -> Result<(Wildcard, PathAndAlternatives), Error> {
        if participants.iter().any(|key| key.extended().is_none()) {
            return Err("musig(): derivation requires all participants to be xpubs or xprvs".into());
        }
        if participants.iter().any(Key::is_ranged) {
            return Err("musig(): Cannot have ranged participant keys if musig() also has derivation".into());
        }
        let mut parts: Vec<&str> = steps.split('/').collect();
        let wildcard = take_wildcard(&mut parts);
        if wildcard == Wildcard::Hardened {
            return Err("musig(): Cannot have hardened child derivation".into());
        }
        let path = self.path(parts.into_iter(), true, &mut Mark::H);
        let (path, multipath) = path.map_err(|error| format!("musig(): {error}"))?;
        let mut steps = path.iter().chain(multipath.iter().flat_map(|(_, steps)| steps));
        if steps.any(ChildNumber::is_hardened) {
            return Err("musig(): cannot have hardened derivation steps".into());
        }
        Ok((wildcard, (path, multipath)))
    }

    /// Parses a key with an optional origin.
    fn single(&mut self, text: &str, context: Context, permits_uncompressed: bool) -> Result<Key, Error> {
        let (origin, text) = match text.split(']').collect::<Vec<_>>().as_slice() {
            [text] => (None, *text),
            [origin, text] => (Some(self.origin(origin)?), *text),
            _ => return Err("Multiple ']' characters found for a single pubkey".into()),
        };
        let body = self.body(text, context, permits_uncompressed)?;
        self.count += 1;
        if self.count > MAX_KEYS {
            return Err(too_many_keys());
        }
        Ok(Key { origin, body })
    }

    fn origin(&mut self, text: &str) -> Result<Origin, Error> {
        let Some(inner) = text.strip_prefix('[') else {
            // bitcoind reports `]` for an empty origin.
            let found = text.chars().next().unwrap_or(']');
            return Err(format!("Key origin start '[ character expected but not found, got '{found}' instead").into());
        };
        let mut parts = inner.split('/');
        let fingerprint = parts.next().unwrap_or_default();
        if fingerprint.len() != 8 {
            let length = fingerprint.len();
            return Err(format!("Fingerprint is not 4 bytes ({length} characters instead of 8 characters)").into());
        }
        let fingerprint = decode_hex(fingerprint)
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(|| format!("Fingerprint '{fingerprint}' is not hex"))?;
        let mut mark = Mark::H;
        let (path, _) = self.path(parts, false, &mut mark)?;
        Ok(Origin { fingerprint, path, mark })
    }

    fn body(&mut self, text: &str, context: Context, permits_uncompressed: bool) -> Result<Body, Error> {
        let mut parts: Vec<&str> = text.split('/').collect();
        let key = parts.first().copied().unwrap_or_default();
        if key.is_empty() {
            return Err("No key provided".into());
        }
        if self.syntax.strict && (key.starts_with(is_space) || key.ends_with(is_space)) {
            return Err(format!("Key '{key}' is invalid due to whitespace").into());
        }
        // Bitcoin Core before release 30 ignores spaces around Base58.
        let trimmed = key.trim_matches(' ');
        if parts.len() == 1 {
            if let Some(bytes) = decode_hex(key) {
                return public_key(key, &bytes, context, permits_uncompressed).map(Body::Single);
            }
            if let Some(private) = private_key(trimmed, self.network) {
                if !private.compressed && !permits_uncompressed {
                    return Err(UNCOMPRESSED.into());
                }
                let single = Single {
                    public: private.public_key(&SECP),
                    secret: Some(private.inner),
                    x_only: context == Context::Tr,
                };
                return Ok(Body::Single(single));
            }
        }
        let (public, private) =
            extended_key(trimmed, self.network).ok_or_else(|| format!("key '{key}' is not valid"))?;
        // The mark of a hardened step in the path replaces that of the wildcard.
        let mut mark = if parts.last() == Some(&"*'") { Mark::Apostrophe } else { Mark::H };
        let wildcard = take_wildcard(&mut parts);
        let (path, multipath) = self.path(parts.into_iter().skip(1), true, &mut mark)?;
        Ok(Body::Extended(Box::new(Extended {
            public,
            private,
            path,
            multipath,
            wildcard,
            mark,
            parent: OnceLock::new(),
        })))
    }

    /// Parses the steps of a path. At most one has alternatives.
    fn path<'a>(
        &mut self,
        parts: impl Iterator<Item = &'a str>,
        multipath: bool,
        mark: &mut Mark,
    ) -> Result<PathAndAlternatives, Error> {
        let mut path = Vec::new();
        let mut alternatives = None;
        for part in parts {
            self.steps += 1;
            if self.steps > MAX_DERIVATION_STEPS {
                return Err(format!("Descriptor has more than {MAX_DERIVATION_STEPS} derivation steps").into());
            }
            let Some(inner) = part.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) else {
                path.push(self.step(part, mark)?);
                continue;
            };
            if !multipath {
                let place = "a section where multipath is not allowed";
                return Err(format!("Key path value '{part}' specifies multipath in {place}").into());
            }
            if alternatives.is_some() {
                return Err("Multiple multipath key path specifiers found".into());
            }
            let steps = self.multipath_steps(inner, mark)?;
            let first = *steps.first().ok_or(MULTIPATH_TOO_SHORT)?;
            alternatives = Some((path.len(), steps));
            path.push(first);
        }
        Ok((path, alternatives))
    }

    fn multipath_steps(&self, inner: &str, mark: &mut Mark) -> Result<Vec<ChildNumber>, Error> {
        let count = inner.split(';').count();
        if count < 2 {
            return Err(MULTIPATH_TOO_SHORT.into());
        }
        if count > MAX_MULTIPATH {
            return Err(format!("Multipath key path specifier has {count} items, more than {MAX_MULTIPATH}").into());
        }
        let mut steps = Vec::with_capacity(count);
        for part in inner.split(';') {
            let step = self.step(part, mark)?;
            if steps.contains(&step) {
                let step = u32::from(step);
                return Err(format!("Duplicated key path value {step} in multipath specifier").into());
            }
            steps.push(step);
        }
        Ok(steps)
    }

    /// Parses a step. A hardened one sets `mark`.
    fn step(&self, part: &str, mark: &mut Mark) -> Result<ChildNumber, Error> {
        let (digits, read) = match (part.strip_suffix('h'), part.strip_suffix('\'')) {
            (Some(digits), _) => (digits, Some(Mark::H)),
            (_, Some(digits)) => (digits, Some(Mark::Apostrophe)),
            _ => (part, None),
        };
        *mark = read.unwrap_or(*mark);
        let hardened = read.is_some();
        if part.is_empty() && self.syntax.strict {
            return Err("Key path value '' is not valid".into());
        }
        let quoted = if self.syntax.strict { part } else { digits };
        let number = uint32(digits, self.syntax.strict);
        let number = number.ok_or_else(|| format!("Key path value '{quoted}' is not a valid uint32"))?;
        let step = if hardened { ChildNumber::from_hardened_idx(number) } else { ChildNumber::from_normal_idx(number) };
        step.map_err(|_| format!("Key path value {number} is out of range").into())
    }
}

/// The steps of a path; the position of the multipath step, and its alternatives.
type PathAndAlternatives = (Vec<ChildNumber>, Option<(usize, Vec<ChildNumber>)>);

fn is_space(letter: char) -> bool {
    letter.is_ascii_whitespace()
}

/// Removes the wildcard from the end of a path, and returns it.
fn take_wildcard(parts: &mut Vec<&str>) -> Wildcard {
    let wildcard = match parts.last().copied() {
        Some("*") => Wildcard::Normal,
        Some("*'" | "*h") => Wildcard::Hardened,
        _ => return Wildcard::None,
    };
    parts.pop();
    wildcard
}

/// A 32-bit number in decimal. Unless `strict`, a leading plus is allowed.
pub(super) fn uint32(text: &str, strict: bool) -> Option<u32> {
    let digits = text.strip_prefix('+').filter(|_| !strict).unwrap_or(text);
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn public_key(text: &str, bytes: &[u8], context: Context, permits_uncompressed: bool) -> Result<Single, Error> {
    let hybrid = bytes.len() == 65 && matches!(bytes.first(), Some(6 | 7));
    if hybrid {
        return Err("Hybrid public keys are not allowed".into());
    }
    if let Ok(public) = PublicKey::from_slice(bytes) {
        if !public.compressed && !permits_uncompressed {
            return Err(UNCOMPRESSED.into());
        }
        return Ok(Single { public, secret: None, x_only: false });
    }
    if context == Context::Tr
        && let Ok(x_only) = XOnlyPublicKey::from_slice(bytes)
    {
        let public = PublicKey::new(x_only.public_key(secp256k1::Parity::Even));
        return Ok(Single { public, secret: None, x_only: true });
    }
    Err(format!("Pubkey '{text}' is invalid").into())
}

/// A private key in WIF for the network.
fn private_key(text: &str, network: NetworkKind) -> Option<PrivateKey> {
    const COMPRESSED_LEN: usize = 34;
    let key = PrivateKey::from_wif(text).ok().filter(|key| key.network == network)?;
    // A compressed key must end with the byte 1, which the library does not check.
    let payload = zeroize::Zeroizing::new(base58::decode_check(text).ok()?);
    (payload.len() != COMPRESSED_LEN || payload.last() == Some(&1)).then_some(key)
}

fn extended_key(text: &str, network: NetworkKind) -> Option<(Xpub, Option<Xpriv>)> {
    if let Ok(private) = Xpriv::from_str(text) {
        return (private.network == network).then(|| (Xpub::from_priv(&SECP, &private), Some(private)));
    }
    Xpub::from_str(text).ok().filter(|public| public.network == network).map(|public| (public, None))
}
