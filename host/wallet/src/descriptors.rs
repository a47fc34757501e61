//! Parsed descriptors, and the scripts that they derive.

use std::collections::HashMap;
use std::fmt::Display;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use bitcoin::secp256k1::{All, Secp256k1};
use bitcoin::{Network, ScriptBuf};
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
/// The fewest indexes worth a thread of their own.
const INDEXES_PER_BATCH: usize = 64;

pub type DescriptorPosition = (u32, u32);
/// Expansions by descriptor number and index. A position is absent if a hardened step lacks its private key.
pub type Expansions = HashMap<DescriptorPosition, Arc<Expansion>>;

/// Caches parsed descriptors by text, and recent expansions: a wallet later spends from an address that received a
/// payment, and spending looks up each script several times.
pub struct DescriptorCache {
    network: Network,
    parsed: Mutex<HashMap<String, Arc<Descriptor>>>,
    expanded: Mutex<ExpansionSet>,
}

#[derive(Default)]
struct ExpansionSet {
    expansions: Expansions,
    keys: usize,
}

impl ExpansionSet {
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
        *self.expanded.lock() = ExpansionSet::default();
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

pub fn bad_descriptor(number: u32, error: &dyn Display) -> WalletError {
    WalletError::BadDescriptor { number, reason: error.to_string() }
}

pub fn parse_stored(number: u32, text: &str, network: Network) -> Result<Descriptor> {
    let parsed = Descriptor::parse(text, network, Checksum::Optional);
    let first = parsed.map_err(|error| bad_descriptor(number, &error))?.into_iter().next();
    first.ok_or_else(|| bad_descriptor(number, &"it is empty"))
}

pub type Derived = Vec<(u32, Vec<ScriptBuf>)>;

/// The scripts of a descriptor at a range of indexes, derived on several threads if there are many.
pub fn derive(descriptor: &Descriptor, range: Range<u32>) -> std::result::Result<Derived, ExpandError> {
    let at = |index: u32| descriptor.derive(index).and_then(|keys| Ok((index, descriptor.scripts(&keys)?)));
    map(range.collect(), INDEXES_PER_BATCH, at).into_iter().collect()
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
    fn descriptor_scripts_of_a_range_are_those_of_its_expansions() {
        for (open, close) in [
            ("pkh(", "/84h/1h/0h/0/*)"),
            ("wpkh([00112233/4h]", "/1/2/*)"),
            ("sh(wpkh(", "/*))"),
            ("tr(", "/86h/0/*)"),
            ("wpkh(", "/0/*h)"),
            ("combo(", "/0/*)"),
            ("wsh(pk(", "/0/*))"),
        ] {
            let text = format!("{open}{XPRV}{close}");
            let descriptor = parse_stored(0, &text, Network::Regtest).unwrap();
            for (index, scripts) in derive(&descriptor, 5..6 + INDEXES_PER_BATCH as u32).unwrap() {
                let expanded = descriptor.expand(index).unwrap().scripts;
                assert!(scripts.iter().eq(expanded.iter().map(|script| &script.script_pubkey)), "{text} {index}");
            }
        }
    }
}
