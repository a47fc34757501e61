//! Stores and activates descriptors, and derives their scripts ahead of use.
//!
//! Expanding a descriptor with a hardened step below the public key (`/*h`) needs the private key. The wallet stores each derived index of
//! it as a definite public descriptor, so a locked wallet can solve the scripts of its coins.

use std::ops::Range;

use bitcoin::NetworkKind;
use bitcoin::bip32::Xpriv;
use outrigger_descriptor::{Descriptor, ExpandError, Expansion};
use outrigger_memory::parallel::map;
use outrigger_memory::wipe_stack;
use outrigger_service::wire::Secret;
use secp256k1::rand::{RngCore, thread_rng};
use zeroize::Zeroizing;

use super::descriptors::{Derived, DescriptorPosition, bad_descriptor, derive, parse_stored};
use super::encrypt::EncryptionKey;
use super::error::{Result, WalletError};
use super::live::Wallet;
use super::store::{DescriptorRow, Reading, ScriptRow, get, number_from, place_key, script_key};
use super::write::{CHUNK, Write};

/// The descriptors of a new wallet, each once for receiving and once for change: the wire number of the address type,
/// the purpose in the path (BIPs 44, 49, 84 and 86), and the text around the key.
const DEFAULTS: [(u8, u8, &str, &str); 4] =
    [(0, 44, "pkh(", ")"), (1, 49, "sh(wpkh(", "))"), (2, 84, "wpkh(", ")"), (3, 86, "tr(", ")")];

/// The key of a descriptor's private text in the table `keys`.
pub fn private_key_of(number: u32) -> Vec<u8> {
    [b"d", number.to_be_bytes().as_slice()].concat()
}

/// The key of an imported private key in the table `keys`.
pub fn private_key_at(hash: &[u8; 20]) -> Vec<u8> {
    [b"k", hash.as_slice()].concat()
}

/// The fewest expansions worth a thread of their own.
const EXPANSIONS_PER_BATCH: usize = 16;

/// The end (exclusive) of a descriptor's indexes.
pub const END: u32 = 1 << 31;
/// The greatest `next_index`. It is never handed out: the index after it would overflow the signed 32-bit number that
/// clients read.
pub const LAST_INDEX: u32 = END - 1;

/// The key in the table `identities` for a [`Descriptor::identity`].
pub fn identity_key(identity: &str) -> [u8; 32] {
    script_key(bitcoin::Script::from_bytes(identity.as_bytes()))
}

impl Write<'_> {
    /// Stores a new descriptor's row and private text, and derives its scripts.
    pub fn add_descriptor(&mut self, row: DescriptorRow, parsed: &Descriptor) -> Result<u32> {
        let number = self.meta.next_descriptor;
        self.meta.next_descriptor = number.checked_add(1).ok_or(WalletError::damaged(0))?;
        self.store_private(number, parsed)?;
        // A plugin may have the keys of a descriptor without private text.
        self.adds_keys = true;
        let identity = identity_key(&parsed.identity());
        self.put(self.t.identities, &identity, &number.to_le_bytes())?;
        self.put_descriptor(number, &row)?;
        self.add_scripts(number, parsed, row.derived_begin..row.range_end)?;
        Ok(number)
    }

    pub fn store_private(&mut self, number: u32, parsed: &Descriptor) -> Result<()> {
        if let Some(text) = parsed.to_private_string() {
            self.put_private(&private_key_of(number), &text)?;
            self.adds_keys = true;
            if !self.wallet.shared.guards.is_idle() {
                self.new_keys.extend(parsed.fixed_keys().iter().map(|public_key| public_key.inner));
            }
        }
        Ok(())
    }

    pub fn put_descriptor(&mut self, number: u32, row: &DescriptorRow) -> Result<()> {
        self.store_row(self.t.descriptors, &number.to_be_bytes(), row)
    }

    /// The number of an equal descriptor, if there is one. The notation of hardened steps (`h` or `'`) does not matter.
    pub fn find_descriptor(&self, parsed: &Descriptor) -> Result<Option<u32>> {
        let number = self.t.identities.get(self.reads(), &identity_key(&parsed.identity()))?;
        number.map(number_from).transpose()
    }

    pub fn add_scripts(&mut self, number: u32, parsed: &Descriptor, range: Range<u32>) -> Result<()> {
        let public = parse_stored(number, &parsed.to_normalized_string(), self.wallet.shared.network)?;
        for begin in range.clone().step_by(CHUNK) {
            let end = begin.saturating_add(CHUNK as u32).min(range.end);
            let derived = match derive(&public, begin..end) {
                Err(ExpandError::HardenedWithoutPrivateKey) => self.derive_hardened(number, parsed, begin..end)?,
                other => other.map_err(|error| bad_descriptor(number, &error))?,
            };
            self.store_scripts(number, derived)?;
            if end < range.end {
                self.check_wanted()?;
            }
        }
        Ok(())
    }

    fn store_scripts(&mut self, number: u32, derived: Derived) -> Result<()> {
        for (index, scripts) in derived {
            for script in scripts {
                let key = script_key(&script);
                let mut row =
                    get(self.t.scripts, self.reads(), &key)?.unwrap_or_else(|| ScriptRow::new(script.clone()));
                if !row.owners.contains(&(number, index)) {
                    row.owners.push((number, index));
                    self.store_row(self.t.scripts, &key, &row)?;
                    self.wallet.follow_script(&key);
                    self.touched.push(script);
                }
            }
        }
        Ok(())
    }

    /// Derives scripts until enough lie ahead of the next index. No effect if a hardened step needs a private key of a
    /// locked wallet; a later call derives them.
    pub fn top_up(&mut self, number: u32, row: &mut DescriptorRow) -> Result<()> {
        self.top_up_to(number, row, self.wallet.shared.settings.keypool)
    }

    pub(super) fn top_up_to(&mut self, number: u32, row: &mut DescriptorRow, ahead: u32) -> Result<()> {
        let wanted = row.next_index.saturating_add(ahead).min(END);
        if !row.ranged || wanted <= row.range_end {
            return Ok(());
        }
        let public = self.wallet.descriptors.get(number, &row.public)?;
        let derived = match derive(&public, row.range_end..wanted) {
            Err(ExpandError::HardenedWithoutPrivateKey) => {
                let Ok(encryption_key) = self.wallet.encryption_key() else { return Ok(()) };
                let Some(private) = self.wallet.private_descriptor(self.reads(), number, &encryption_key)? else {
                    return Ok(());
                };
                self.derive_hardened(number, &private, row.range_end..wanted)?
            }
            other => other.map_err(|error| bad_descriptor(number, &error))?,
        };
        self.store_scripts(number, derived)?;
        row.range_end = wanted;
        self.grown.push((number, wanted));
        self.put_descriptor(number, row)?;
        self.rederive()
    }

    /// Makes a descriptor the source of new addresses of its type, in place of the former one.
    pub fn activate(&mut self, number: u32, row: &mut DescriptorRow, kind: u8, internal: bool) -> Result<()> {
        let place = [kind, u8::from(internal)];
        let former = self.t.active.get(self.reads(), &place)?.map(number_from).transpose()?;
        if let Some(former) = former.filter(|former| *former != number)
            && let Some(mut other) = self.t.descriptor(self.reads(), former)?
        {
            other.active = false;
            self.put_descriptor(former, &other)?;
        }
        self.put(self.t.active, &place, &number.to_le_bytes())?;
        (row.active, row.internal) = (true, internal);
        self.put_descriptor(number, row)
    }

    /// Stops taking new addresses from a descriptor.
    pub fn deactivate(&mut self, number: u32, row: &mut DescriptorRow) -> Result<()> {
        let Some(kind) = row.output_type else { return Ok(()) };
        let place = [kind, u8::from(row.internal)];
        if self.t.active.get(self.reads(), &place)?.map(number_from).transpose()? == Some(number) {
            self.delete(self.t.active, &place)?;
        }
        row.active = false;
        self.put_descriptor(number, row)
    }

    /// Generates a master key and the active descriptors that bitcoind gives a new wallet (BIPs 44, 49, 84, 86; account 0).
    pub fn add_default_descriptors(&mut self) -> Result<()> {
        let shared = &self.wallet.shared;
        let mut seed = Zeroizing::new([0_u8; 32]);
        thread_rng().fill_bytes(seed.as_mut_slice());
        let master = Xpriv::new_master(shared.network, seed.as_slice()).map_err(|_| WalletError::damaged(32))?;
        let master = Zeroizing::new(master.to_string());
        let coin = u8::from(NetworkKind::from(shared.network) == NetworkKind::Test);
        let now = shared.node.time();
        for internal in [false, true] {
            for (kind, purpose, open, close) in DEFAULTS {
                let side = u8::from(internal);
                let text = format!("{open}{}/{purpose}h/{coin}h/0h/{side}/*{close}", master.as_str());
                let text = Secret::new(text);
                let parsed = parse_stored(self.meta.next_descriptor, text.expose(), shared.network)?;
                let range_end = shared.settings.keypool;
                let mut row = DescriptorRow { range_end, ..DescriptorRow::new(&parsed, now, internal) };
                let number = self.add_descriptor(row.clone(), &parsed)?;
                self.activate(number, &mut row, kind, internal)?;
            }
        }
        self.meta.birth_time = self.meta.birth_time.min(now);
        self.note_backup_needed()
    }

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
        parse_stored(number, encryption_key.unwrap(&key, value)?.expose(), self.shared.network).map(Some)
    }
}
