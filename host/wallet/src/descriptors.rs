//! Parsed descriptors, and the scripts that they derive.

use std::collections::HashMap;
use std::ops::Range;
use std::str::FromStr as _;
use std::sync::{Arc, LazyLock};
use std::thread;

use bitcoin::bip32::{ChildNumber, Xpub};
use bitcoin::secp256k1::{All, Secp256k1};
use bitcoin::{CompressedPublicKey, Network, ScriptBuf};
use outrigger_descriptor::{Checksum, Descriptor, ExpandError, Expansion};
use outrigger_memory::parallel::map;
use parking_lot::Mutex;

use super::error::{Result, WalletError};

pub(super) static SECP: LazyLock<Secp256k1<All>> = LazyLock::new(Secp256k1::new);

/// The capacity of the cache of parsed descriptors. When it is full, it is cleared.
const MAX_CACHED: usize = 16_384;
/// The capacity of the cache of expansions, in keys of about 1 KiB.
const MAX_EXPANDED_KEYS: usize = 32_768;
/// The fewest expansions worth a thread of their own. Each key takes about 50 us.
const EXPANSIONS_PER_BATCH: usize = 4;
/// The fewest indexes worth a second thread.
const PARALLEL_FROM: u32 = 64;

pub type DescriptorPosition = (u32, u32);
/// Expansions by position. Positions are absent where a hardened step lacks its private key.
pub type Expansions = HashMap<DescriptorPosition, Arc<Expansion>>;

/// Caches parsed descriptors by text, and recent expansions: an address that receives a payment is spent from later,
/// and spending looks up each script several times.
pub struct DescriptorCache {
    network: Network,
    parsed: Mutex<HashMap<String, Arc<Descriptor>>>,
    expanded: Mutex<Expanded>,
}

#[derive(Default)]
struct Expanded {
    expansions: Expansions,
    keys: usize,
}

impl Expanded {
    fn insert(&mut self, place: DescriptorPosition, expansion: &Arc<Expansion>) {
        let keys = expansion.scripts.iter().map(|script| 1 + script.origins.len()).sum::<usize>();
        if self.keys + keys > MAX_EXPANDED_KEYS {
            *self = Self::default();
        }
        if self.expansions.insert(place, expansion.clone()).is_none() {
            self.keys += keys;
        }
    }
}

impl DescriptorCache {
    pub fn new(network: Network) -> Self {
        Self { network, parsed: Mutex::default(), expanded: Mutex::default() }
    }

    pub fn clear(&self) {
        *self.parsed.lock() = HashMap::new();
        *self.expanded.lock() = Expanded::default();
    }

    /// A stored descriptor, parsed from its public text.
    pub fn get(&self, number: u32, public: &str) -> Result<Arc<Descriptor>> {
        if let Some(parsed) = self.parsed.lock().get(public) {
            return Ok(parsed.clone());
        }
        let parsed = Arc::new(parse_stored(number, public, self.network)?);
        let mut cache = self.parsed.lock();
        if cache.len() >= MAX_CACHED {
            cache.clear();
        }
        cache.insert(public.to_owned(), parsed.clone());
        Ok(parsed)
    }

    pub fn expand(&self, mut wanted: Vec<(DescriptorPosition, Arc<Descriptor>)>) -> Expansions {
        let mut expansions = Expansions::new();
        {
            let cache = self.expanded.lock();
            wanted.retain(|(place, _)| match cache.expansions.get(place) {
                Some(expansion) => expansions.insert(*place, expansion.clone()).is_some(),
                None => true,
            });
        }
        let expand = |(place, descriptor): (DescriptorPosition, Arc<Descriptor>)| {
            Some((place, descriptor.expand(place.1).ok()?))
        };
        let expanded = map(wanted, EXPANSIONS_PER_BATCH, expand);
        let mut cache = self.expanded.lock();
        for (place, expansion) in expanded.into_iter().flatten() {
            let expansion = Arc::new(expansion);
            cache.insert(place, &expansion);
            expansions.insert(place, expansion);
        }
        expansions
    }
}

pub fn bad_descriptor(number: u32, error: &ExpandError) -> WalletError {
    WalletError::BadDescriptor { number, reason: error.to_string() }
}

pub fn parse_stored(number: u32, text: &str, network: Network) -> Result<Descriptor> {
    let bad = |reason: String| WalletError::BadDescriptor { number, reason };
    let parsed = Descriptor::parse(text, network, Checksum::Optional).map_err(|error| bad(error.to_string()))?;
    parsed.into_iter().next().ok_or_else(|| bad("it is empty".into()))
}

pub type Derived = Vec<(u32, Vec<ScriptBuf>)>;

enum Source<'a> {
    Descriptor(&'a Descriptor),
    /// A single key below an extended public key.
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

/// The scripts of a descriptor at a range of indexes, derived on two threads if there are many.
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
        // The thread panicked. This thread derives its half, and may panic in turn.
        Err(_) => all.append(&mut source.derive(middle..range.end)?),
    }
    Ok(all)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Pkh,
    ShWpkh,
    Wpkh,
    Tr,
}

/// A descriptor of one key with an unhardened wildcard, the usual kind. It derives scripts without the texts and
/// origins of an expansion.
struct Plain {
    form: Form,
    parent: Xpub,
}

impl Plain {
    /// Parses a normalised descriptor; `None` for any other form.
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
        // Hardened steps are not supported.
        let step = |part: &str| ChildNumber::from_normal_idx(part.parse().ok()?).ok();
        let path = parts.map(step).collect::<Option<Vec<_>>>()?;
        Some(Self { form, parent: xpub.derive_pub(&*SECP, &path).ok()? })
    }

    fn script(&self, index: u32) -> std::result::Result<ScriptBuf, ExpandError> {
        let step = ChildNumber::from_normal_idx(index).map_err(|_| ExpandError::Index(index))?;
        let public_key = self.parent.ckd_pub(&*SECP, step).map_err(|_| ExpandError::NoSuchKey)?.public_key;
        let key = CompressedPublicKey(public_key);
        Ok(match self.form {
            Form::Pkh => ScriptBuf::new_p2pkh(&key.pubkey_hash()),
            Form::Wpkh => ScriptBuf::new_p2wpkh(&key.wpubkey_hash()),
            Form::ShWpkh => ScriptBuf::new_p2sh(&ScriptBuf::new_p2wpkh(&key.wpubkey_hash()).script_hash()),
            Form::Tr => ScriptBuf::new_p2tr(&*SECP, public_key.x_only_public_key().0, None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expansions_are_kept_up_to_a_bound() {
        let cache = DescriptorCache::new(Network::Regtest);
        let descriptor = Arc::new(parse_stored(0, &format!("wpkh({XPRV}/0/*)"), Network::Regtest).unwrap());
        let all: Vec<_> = (0..20).map(|index| ((7, index), descriptor.clone())).collect();
        let first = cache.expand(all.clone());
        assert_eq!(first.len(), 20);
        let again = cache.expand(all);
        assert!(first.iter().all(|(place, expansion)| Arc::ptr_eq(expansion, &again[place])));
        let mut cache = cache.expanded.lock();
        // Each expansion counts 2: itself and its key.
        assert_eq!(cache.keys, 40);
        cache.keys = MAX_EXPANDED_KEYS - 1;
        cache.insert((7, 20), &first[&(7, 0)]);
        assert_eq!((cache.keys, cache.expansions.len()), (2, 1));
    }

    #[test]
    fn descriptor_that_cannot_be_expanded_is_left_out() {
        let private = parse_stored(0, &format!("wpkh({XPRV}/*h)"), Network::Regtest).unwrap();
        let public = parse_stored(0, &private.to_public_string(), Network::Regtest).unwrap();
        let expansions =
            DescriptorCache::new(Network::Regtest).expand(vec![((0, 0), public.into()), ((1, 0), private.into())]);
        assert_eq!(expansions.into_keys().collect::<Vec<_>>(), [(1, 0)]);
    }

    const XPRV: &str = "tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtHcQJCCRUcMRvmDUjyEmNUWwx8UbK";

    #[test]
    fn descriptor_quick_way_gives_what_expanding_gives() {
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
