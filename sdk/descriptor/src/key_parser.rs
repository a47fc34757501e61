//! Parses key expressions with bitcoind's checks in bitcoind's order.

use std::str::FromStr;
use std::sync::OnceLock;

use bitcoin::bip32::{ChildNumber, Xpriv, Xpub};
use bitcoin::{NetworkKind, PrivateKey, PublicKey, base58};
use secp256k1::{SecretKey, XOnlyPublicKey};

use super::error::DescriptorError as Error;
use super::key::{Body, Extended, Form, Key, Mark, Origin, Single};
use super::key_ref::KeyRef;
use super::limits::{MAX_DERIVATION_STEPS, MAX_KEYS, MAX_MULTIPATH};
use super::secp::SECP;
use super::wildcard::Wildcard;
use outrigger_values::params::decode_hex;

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
    steps: usize,
}

impl KeyParser {
    pub fn new(network: NetworkKind) -> Self {
        Self { network, keys: Vec::new(), steps: 0 }
    }

    /// The text of a key without its private half.
    pub fn public_text(&self, key: KeyRef) -> String {
        self.keys.get(key.0).map(|key| key.text(Form::Public, self.network)).unwrap_or_default()
    }

    /// Gives each private key to all keys with the same public key, since it can sign for all of them.
    pub fn share_private_keys(&mut self) {
        let private: Vec<(secp256k1::PublicKey, SecretKey)> = self.keys.iter().filter_map(Key::private_half).collect();
        if private.is_empty() || self.keys.iter().all(Key::is_private) {
            return;
        }
        for key in &mut self.keys {
            key.complete(&private);
        }
    }

    /// Parses a key expression.
    pub fn key(&mut self, text: &str, context: Context, uncompressed: bool) -> Result<KeyRef, Error> {
        let permits_uncompressed = uncompressed && context.permits_uncompressed();
        let (origin, text) = match text.split(']').collect::<Vec<_>>().as_slice() {
            [text] => (None, *text),
            [origin, text] => (Some(self.origin(origin)?), *text),
            _ => return Err("Multiple ']' characters found for a single pubkey".into()),
        };
        let body = self.body(text, context, permits_uncompressed)?;
        if self.keys.len() >= MAX_KEYS {
            return Err(too_many_keys());
        }
        self.keys.push(Key { origin, body });
        Ok(KeyRef(self.keys.len() - 1))
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
            return Err(Error::NoKey);
        }
        // bitcoind ignores spaces around Base58, too.
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
        let wildcard = match parts.last().copied() {
            Some("*") => Wildcard::Normal,
            Some("*'" | "*h") => Wildcard::Hardened,
            _ => Wildcard::None,
        };
        if wildcard != Wildcard::None {
            parts.pop();
        }
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
                path.push(step(part, mark)?);
                continue;
            };
            if !multipath {
                let place = "a section where multipath is not allowed";
                return Err(format!("Key path value '{part}' specifies multipath in {place}").into());
            }
            if alternatives.is_some() {
                return Err("Multiple multipath key path specifiers found".into());
            }
            let steps = multipath_steps(inner, mark)?;
            let first = *steps.first().ok_or(MULTIPATH_TOO_SHORT)?;
            alternatives = Some((path.len(), steps));
            path.push(first);
        }
        Ok((path, alternatives))
    }
}

/// The steps of a path; the position of the multipath step, and its alternatives.
type PathAndAlternatives = (Vec<ChildNumber>, Option<(usize, Vec<ChildNumber>)>);

fn multipath_steps(inner: &str, mark: &mut Mark) -> Result<Vec<ChildNumber>, Error> {
    let count = inner.split(';').count();
    if count < 2 {
        return Err(MULTIPATH_TOO_SHORT.into());
    }
    if count > MAX_MULTIPATH {
        return Err(format!("Multipath key path specifier has {count} items, more than {MAX_MULTIPATH}").into());
    }
    let mut steps = Vec::with_capacity(count);
    for part in inner.split(';') {
        let step = step(part, mark)?;
        if steps.contains(&step) {
            let step = u32::from(step);
            return Err(format!("Duplicated key path value {step} in multipath specifier").into());
        }
        steps.push(step);
    }
    Ok(steps)
}

/// Parses a step. A hardened one sets `mark`.
fn step(part: &str, mark: &mut Mark) -> Result<ChildNumber, Error> {
    let (digits, read) = match (part.strip_suffix('h'), part.strip_suffix('\'')) {
        (Some(digits), _) => (digits, Some(Mark::H)),
        (_, Some(digits)) => (digits, Some(Mark::Apostrophe)),
        _ => (part, None),
    };
    *mark = read.unwrap_or(*mark);
    let hardened = read.is_some();
    let number = uint32(digits).ok_or_else(|| format!("Key path value '{digits}' is not a valid uint32"))?;
    let step = if hardened { ChildNumber::from_hardened_idx(number) } else { ChildNumber::from_normal_idx(number) };
    step.map_err(|_| format!("Key path value {number} is out of range").into())
}

/// A 32-bit number in decimal. bitcoind allows a leading plus, too.
pub(super) fn uint32(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('+').unwrap_or(text);
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
