//! Descriptors with a hardened step below the public key (`/*h`). Expanding them needs the private key. The wallet
//! stores each derived index as a definite public descriptor, so a locked wallet can solve the scripts of its coins.

use std::ops::Range;

use outrigger_descriptor::{Descriptor, Expansion};
use outrigger_memory::parallel::map;
use outrigger_memory::wipe_stack;

use super::descriptors::{Derived, DescriptorPosition, bad_descriptor, parse_stored};
use super::encrypt::EncryptionKey;
use super::error::{Result, WalletError};
use super::keypool::private_key_of;
use super::live::Wallet;
use super::store::{Reading, place_key};
use super::write::Write;

/// The fewest expansions worth a thread of their own.
const EXPANSIONS_PER_BATCH: usize = 16;

impl Write<'_> {
    /// Derives scripts with a descriptor's private keys, and stores their definite descriptors.
    pub(super) fn derive_hardened(&mut self, number: u32, private: &Descriptor, range: Range<u32>) -> Result<Derived> {
        let expand = |index: u32| private.expand(index).map(|expansion| (index, expansion));
        let mut derived = Derived::with_capacity(range.len());
        for expanded in map(range.collect(), EXPANSIONS_PER_BATCH, expand) {
            let (index, Expansion { scripts }) = expanded.map_err(|error| bad_descriptor(number, &error))?;
            let texts: Vec<&str> = scripts.iter().map(|script| script.definite.as_str()).collect();
            self.put(self.t.derived, &place_key(number, index), texts.join("\n").as_bytes())?;
            derived.push((index, scripts.into_iter().map(|script| script.script_pubkey).collect()));
        }
        // Rescan and follower threads run this, too, and no plugin call wipes their stacks.
        wipe_stack();
        Ok(derived)
    }
}

impl Wallet {
    /// The stored expansion at a position of a descriptor with a hardened step below the public key.
    pub(super) fn expand_derived(&self, txn: &Reading<'_>, place: DescriptorPosition) -> Result<Option<Expansion>> {
        let (number, index) = place;
        let Some(texts) = self.store.tables.derived.get(txn, &place_key(number, index))? else { return Ok(None) };
        let texts = std::str::from_utf8(texts).map_err(|_| WalletError::damaged(texts.len()))?;
        let mut scripts = Vec::new();
        for text in texts.lines() {
            let expanded = parse_stored(number, text, self.shared.network)?.expand(0);
            scripts.extend(expanded.map_err(|error| bad_descriptor(number, &error))?.scripts);
        }
        Ok(Some(Expansion { scripts }))
    }

    /// A descriptor with private keys; `None` if the wallet has none for it.
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
