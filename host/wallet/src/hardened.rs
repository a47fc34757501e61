//! Descriptors with a hardened step below the public key (`/*h`): what they mean at an index takes the private key. It is kept
//! for each derived index as a definite public descriptor, so that a locked wallet knows how to spend what it receives.

use std::ops::Range;

use bitcoin::Network;
use outrigger_descriptor::{Checksum, Descriptor, Expansion};
use outrigger_memory::parallel::map;
use outrigger_memory::wipe_stack;

use super::descriptors::{Derived, DescriptorPosition, bad_descriptor, parse_stored};
use super::encrypt::EncryptionKey;
use super::error::{Result, WalletError};
use super::keypool::private_key_of;
use super::live::Wallet;
use super::store::Reading;
use super::store::tables::place_key;
use super::write::Write;

/// The expansions that are worth a thread of their own.
const EXPANSIONS_PER_BATCH: usize = 16;

impl Write<'_> {
    /// Derives scripts with a descriptor's private keys, and keeps how each is spent.
    pub(super) fn derive_hardened(&mut self, number: u32, private: &Descriptor, range: Range<u32>) -> Result<Derived> {
        let expand = |index: u32| private.expand(index).map(|expansion| (index, expansion));
        let mut derived = Derived::with_capacity(range.len());
        for expanded in map(range.collect(), EXPANSIONS_PER_BATCH, expand) {
            let (index, Expansion { scripts }) = expanded.map_err(|error| bad_descriptor(number, &error))?;
            let texts: Vec<&str> = scripts.iter().map(|script| script.definite.as_str()).collect();
            self.put(self.t.derived, &place_key(number, index), texts.join("\n").as_bytes())?;
            derived.push((index, scripts.into_iter().map(|script| script.script_pubkey).collect()));
        }
        // Rescans and the following of the chain come here too, on threads that no call of a plugin wipes.
        wipe_stack();
        Ok(derived)
    }
}

impl Wallet {
    /// What a descriptor with a hardened step below the public key means at a place, as it was kept.
    pub(super) fn expand_derived(&self, txn: &Reading<'_>, place: DescriptorPosition) -> Result<Option<Expansion>> {
        let (number, index) = place;
        let texts = self.store.tables.derived.get(txn, &place_key(number, index))?;
        texts.map(|texts| read_derived(number, texts, self.shared.network)).transpose()
    }

    /// A descriptor with its private keys, where the wallet has them.
    pub(super) fn private_descriptor(
        &self,
        txn: &Reading<'_>,
        number: u32,
        encryption_key: &EncryptionKey,
    ) -> Result<Option<Descriptor>> {
        let key = private_key_of(number);
        let Some(value) = self.store.tables.keys.get(txn, &key)? else { return Ok(None) };
        let text = encryption_key.unwrap(&key, value)?;
        parse_stored(number, text.expose(), self.shared.network).map(Some)
    }
}

/// Reads the definite descriptors that were kept for a place.
fn read_derived(number: u32, texts: &[u8], network: Network) -> Result<Expansion> {
    let texts = std::str::from_utf8(texts).map_err(|_| WalletError::damaged(texts.len()))?;
    let mut scripts = Vec::new();
    for text in texts.lines() {
        let parsed = Descriptor::parse(text, network, Checksum::Required)
            .map_err(|error| WalletError::BadDescriptor { number, reason: error.to_string() })?;
        for descriptor in parsed {
            scripts.extend(descriptor.expand(0).map_err(|error| bad_descriptor(number, &error))?.scripts);
        }
    }
    Ok(Expansion { scripts })
}
