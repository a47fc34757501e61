//! Parsed descriptors, and the derivation of their scripts.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread;

use bitcoin::{Network, ScriptBuf};
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

fn derive_some(descriptor: &Descriptor, range: Range<u32>) -> std::result::Result<Derived, ExpandError> {
    let at = |index| {
        let expansion = descriptor.expand(index)?;
        Ok((index, expansion.scripts.into_iter().map(|script| script.script_pubkey).collect()))
    };
    range.map(at).collect()
}

/// The scripts of a descriptor at a range of indexes, derived on two threads where there are many.
pub fn derive(descriptor: &Descriptor, range: Range<u32>) -> std::result::Result<Derived, ExpandError> {
    let count = range.end.saturating_sub(range.start);
    if count < PARALLEL_FROM {
        return derive_some(descriptor, range);
    }
    let middle = range.start + count / 2;
    let (first, second) = thread::scope(|scope| {
        let second = scope.spawn(|| derive_some(descriptor, middle..range.end));
        let first = derive_some(descriptor, range.start..middle);
        (first, second.join())
    });
    let mut all = first?;
    match second {
        Ok(second) => all.append(&mut second?),
        // The thread panicked: what it should have done is done here, and panics here if it must.
        Err(_) => all.append(&mut derive_some(descriptor, middle..range.end)?),
    }
    Ok(all)
}
