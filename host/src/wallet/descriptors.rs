//! Parsed descriptors, and the derivation of their scripts.

use std::collections::HashMap;
use std::ops::Range;
use std::str::FromStr as _;
use std::sync::{Arc, Mutex};
use std::thread;

use bitcoin::bip32::{ChildNumber, Xpub};
use bitcoin::secp256k1::{Secp256k1, VerifyOnly};
use bitcoin::{CompressedPublicKey, Network, ScriptBuf};
use outrigger_sdk::descriptor::{Checksum, Descriptor, ExpandError};

use super::error::{Result, WalletError};
use super::lock;

/// How many parsed descriptors are kept; beyond it the cache starts anew.
const MAX_CACHED: usize = 4096;
/// From how many indexes on derivation is worth a second thread.
const PARALLEL_FROM: u32 = 64;

/// Parsed descriptors by their text.
pub struct DescriptorCache {
    network: Network,
    parsed: Mutex<HashMap<String, Arc<Descriptor>>>,
}

impl DescriptorCache {
    /// An empty cache for descriptors of a network.
    pub fn new(network: Network) -> Self {
        Self { network, parsed: Mutex::new(HashMap::new()) }
    }

    /// The parsed form of a stored descriptor's public text.
    pub fn get(&self, number: u32, public: &str) -> Result<Arc<Descriptor>> {
        if let Some(parsed) = lock(&self.parsed).get(public) {
            return Ok(parsed.clone());
        }
        let parsed = Arc::new(parse_stored(number, public, self.network)?);
        let mut cache = lock(&self.parsed);
        if cache.len() >= MAX_CACHED {
            cache.clear();
        }
        cache.insert(public.to_owned(), parsed.clone());
        Ok(parsed)
    }
}

/// Parses the text of a stored descriptor, which is one that parsed when it was stored.
pub fn parse_stored(number: u32, text: &str, network: Network) -> Result<Descriptor> {
    let bad = |reason: String| WalletError::BadDescriptor { number, reason };
    let parsed = Descriptor::parse(text, network, Checksum::Optional).map_err(|error| bad(error.to_string()))?;
    parsed.into_iter().next().ok_or_else(|| bad("it is empty".into()))
}

/// The scripts at some indexes.
pub type Derived = Vec<(u32, Vec<ScriptBuf>)>;

/// Where scripts come from.
enum Source<'a> {
    /// Any descriptor.
    Descriptor(&'a Descriptor),
    /// One key below an extended public key.
    Plain(Plain),
}

impl Source<'_> {
    fn scripts(&self, index: u32) -> std::result::Result<Vec<ScriptBuf>, ExpandError> {
        match self {
            Self::Descriptor(descriptor) => {
                Ok(descriptor.expand(index)?.scripts.into_iter().map(|script| script.script_pubkey).collect())
            }
            Self::Plain(plain) => Ok(vec![plain.script(index)?]),
        }
    }

    fn derive(&self, range: Range<u32>) -> std::result::Result<Derived, ExpandError> {
        range.map(|index| Ok((index, self.scripts(index)?))).collect()
    }
}

/// The scripts of a descriptor at a range of indexes, derived on two threads where there are many.
pub fn derive(descriptor: &Descriptor, range: Range<u32>) -> std::result::Result<Derived, ExpandError> {
    let count = range.end.saturating_sub(range.start);
    if count < PARALLEL_FROM {
        return Source::Descriptor(descriptor).derive(range);
    }
    let source = Plain::of(&descriptor.to_normalized_string()).map_or(Source::Descriptor(descriptor), Source::Plain);
    let middle = range.start + count / 2;
    let (first, second) = thread::scope(|scope| {
        let second = scope.spawn(|| source.derive(middle..range.end));
        let first = source.derive(range.start..middle);
        (first, second.join())
    });
    let mut all = first?;
    match second {
        Ok(second) => all.append(&mut second?),
        // The thread panicked: what it should have done is done here, and panics here if it must.
        Err(_) => all.append(&mut source.derive(middle..range.end)?),
    }
    Ok(all)
}

/// The form of the script that a key is wrapped in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Pkh,
    ShWpkh,
    Wpkh,
    Tr,
}

/// A descriptor of one key with an unhardened wildcard: what wallets have most of, derived without the texts and origins
/// that expanding gives.
struct Plain {
    form: Form,
    parent: Xpub,
    secp: Secp256k1<VerifyOnly>,
}

impl Plain {
    /// Reads a normalised descriptor text; none when it is of another form.
    fn of(text: &str) -> Option<Self> {
        let (text, _) = text.split_once('#')?;
        let forms = [
            ("pkh(", ")", Form::Pkh),
            ("sh(wpkh(", "))", Form::ShWpkh),
            ("wpkh(", ")", Form::Wpkh),
            ("tr(", ")", Form::Tr),
        ];
        let (key, form) = forms
            .into_iter()
            .find_map(|(open, close, form)| text.strip_prefix(open)?.strip_suffix(close).map(|key| (key, form)))?;
        let key = key.rsplit_once(']').map_or(key, |(_, key)| key).strip_suffix("/*")?;
        let mut parts = key.split('/');
        let xpub = Xpub::from_str(parts.next()?).ok()?;
        // A hardened step, or anything else that a number is not, is not for here.
        let step = |part: &str| ChildNumber::from_normal_idx(part.parse().ok()?).ok();
        let path = parts.map(step).collect::<Option<Vec<_>>>()?;
        let secp = Secp256k1::verification_only();
        let parent = xpub.derive_pub(&secp, &path).ok()?;
        Some(Self { form, parent, secp })
    }

    fn script(&self, index: u32) -> std::result::Result<ScriptBuf, ExpandError> {
        let step = ChildNumber::from_normal_idx(index).map_err(|_| ExpandError::Index(index))?;
        let child = self.parent.ckd_pub(&self.secp, step).map_err(|_| ExpandError::NoSuchKey)?;
        let key = CompressedPublicKey(child.public_key);
        Ok(match self.form {
            Form::Pkh => ScriptBuf::new_p2pkh(&key.pubkey_hash()),
            Form::Wpkh => ScriptBuf::new_p2wpkh(&key.wpubkey_hash()),
            Form::ShWpkh => ScriptBuf::new_p2sh(&ScriptBuf::new_p2wpkh(&key.wpubkey_hash()).script_hash()),
            Form::Tr => ScriptBuf::new_p2tr(&self.secp, child.public_key.x_only_public_key().0, None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const XPRV: &str = "tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtHcQJCCRUcMRvmDUjyEmNUWwx8UbK";

    #[test]
    fn the_quick_way_gives_what_expanding_gives() {
        for (open, close, quick) in [
            ("pkh(", "/84h/1h/0h/0/*)", true),
            ("wpkh([00112233/4h]", "/1/2/*)", true),
            ("sh(wpkh(", "/*))", true),
            ("tr(", "/86h/0/*)", true),
            ("wpkh(", "/0/*h)", false),
            ("pk(", "/0/*)", false),
            ("wsh(pk(", "/0/*))", false),
        ] {
            let text = format!("{open}{XPRV}{close}");
            let descriptor = parse_stored(0, &text, Network::Regtest).unwrap();
            assert_eq!(Plain::of(&descriptor.to_normalized_string()).is_some(), quick, "{text}");
            let many = derive(&descriptor, 5..5 + PARALLEL_FROM + 1).unwrap();
            assert_eq!(many, Source::Descriptor(&descriptor).derive(5..5 + PARALLEL_FROM + 1).unwrap(), "{text}");
        }
    }
}
