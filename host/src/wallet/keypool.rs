//! Scripts derived ahead: storing descriptors, topping them up, handing out addresses.

use std::ops::Range;

use bitcoin::bip32::Xpriv;
use bitcoin::{NetworkKind, ScriptBuf};
use outrigger_sdk::descriptor::{Descriptor, ExpandError};
use outrigger_sdk::service::wallet::AddressType;
use outrigger_sdk::service::{ErrorKind, Result as ServiceResult, ServiceError};
use outrigger_sdk::wire::Secret;
use secp256k1::rand::{RngCore, thread_rng};
use zeroize::Zeroizing;

use super::descriptors::{Derived, derive, parse_stored};
use super::error::{Result, WalletError};
use super::legacy::{Learned, p2sh, p2wpkh};
use super::live::Wallet;
use super::ownership::p2pkh;
use super::seal::SealingKey;
use super::store::rows::{DescriptorRow, ScriptRow};
use super::store::tables::{get, hash160, number_from, put, script_key};
use super::write::{PIECE, Write};

/// The key of a descriptor's private text in the table `keys`.
pub fn private_key_of(number: u32) -> Vec<u8> {
    [b"d", number.to_be_bytes().as_slice()].concat()
}

/// The key of an imported private key in the table `keys`.
pub fn private_key_at(hash: &[u8; 20]) -> Vec<u8> {
    [b"k", hash.as_slice()].concat()
}

/// The most scripts that one call derives ahead, per descriptor.
const MAX_REFILL: u32 = 1_000_000;

/// The key in the table `identities` of what [`Descriptor::identity`] gives.
fn identity_key(identity: &str) -> [u8; 32] {
    script_key(bitcoin::Script::from_bytes(identity.as_bytes()))
}

fn type_name(kind: AddressType) -> &'static str {
    match kind {
        AddressType::Legacy => "legacy",
        AddressType::P2shSegwit => "p2sh-segwit",
        AddressType::Bech32 => "bech32",
        AddressType::Bech32m => "bech32m",
    }
}

impl Write<'_> {
    /// Stores a new descriptor's row and private text, and derives its scripts.
    pub fn add_descriptor(
        &mut self,
        row: DescriptorRow,
        parsed: &Descriptor,
        sealing: &SealingKey,
        touched: &mut Vec<ScriptBuf>,
    ) -> Result<u32> {
        let number = self.meta.next_descriptor;
        self.meta.next_descriptor = number.checked_add(1).ok_or(WalletError::damaged(0))?;
        self.store_private(number, parsed, sealing)?;
        let identity = identity_key(&parsed.identity());
        self.t.identities.put(&mut self.txn, &identity, &number.to_le_bytes())?;
        self.put_descriptor(number, &row)?;
        self.add_scripts(number, parsed, row.derived_begin..row.range_end, touched)?;
        Ok(number)
    }

    /// Stores a descriptor's private text, where it holds private keys.
    pub fn store_private(&mut self, number: u32, parsed: &Descriptor, sealing: &SealingKey) -> Result<()> {
        if let Some(text) = parsed.to_private_string() {
            let key = private_key_of(number);
            self.t.keys.put(&mut self.txn, &key, &sealing.wrap(&key, text.expose())?)?;
        }
        Ok(())
    }

    /// Writes a descriptor's row.
    pub fn put_descriptor(&mut self, number: u32, row: &DescriptorRow) -> Result<()> {
        put(self.t.descriptors, &mut self.txn, &number.to_be_bytes(), row)
    }

    /// The number of the same descriptor, where it is known: the marks of its hardened steps make no difference.
    pub fn find_descriptor(&self, parsed: &Descriptor) -> Result<Option<u32>> {
        // Wallets that were written before marks made no difference know it by its text.
        for identity in [parsed.identity(), parsed.to_public_string()] {
            if let Some(number) = self.t.identities.get(&self.txn, &identity_key(&identity))? {
                return number_from(number).map(Some);
            }
        }
        Ok(None)
    }

    /// Derives a descriptor's scripts at some indexes and stores them as ours.
    pub fn add_scripts(
        &mut self,
        number: u32,
        parsed: &Descriptor,
        range: Range<u32>,
        touched: &mut Vec<ScriptBuf>,
    ) -> Result<()> {
        let bad = |error: ExpandError| WalletError::BadDescriptor { number, reason: error.to_string() };
        for begin in range.clone().step_by(PIECE) {
            let end = begin.saturating_add(PIECE as u32).min(range.end);
            let derived = derive(parsed, begin..end).map_err(bad)?;
            self.store_scripts(number, derived, touched)?;
            if end < range.end {
                self.check_wanted()?;
            }
        }
        Ok(())
    }

    fn store_scripts(&mut self, number: u32, derived: Derived, touched: &mut Vec<ScriptBuf>) -> Result<()> {
        for (index, scripts) in derived {
            for script in scripts {
                let key = script_key(&script);
                let mut row = get(self.t.scripts, &self.txn, &key)?.unwrap_or_else(|| ScriptRow {
                    script: script.clone(),
                    owners: Vec::new(),
                    imported: outrigger_sdk::service::wallet::Ownership::None,
                });
                if !row.owners.contains(&(number, index)) {
                    row.owners.push((number, index));
                    put(self.t.scripts, &mut self.txn, &key, &row)?;
                    touched.push(script);
                }
            }
        }
        Ok(())
    }

    /// Derives scripts until enough lie ahead of the next index. A descriptor whose hardened steps need a private key
    /// that is sealed stays as it is until it is asked again.
    pub fn top_up(&mut self, number: u32, row: &mut DescriptorRow) -> Result<()> {
        self.top_up_to(number, row, self.wallet.shared.settings.keypool)
    }

    fn top_up_to(&mut self, number: u32, row: &mut DescriptorRow, ahead: u32) -> Result<()> {
        let wanted = row.next_index.saturating_add(ahead).min(1 << 31);
        if !row.ranged || wanted <= row.range_end {
            return Ok(());
        }
        let public = self.wallet.descriptors.get(number, &row.public)?;
        let derived = match derive(&public, row.range_end..wanted) {
            Err(ExpandError::HardenedWithoutPrivateKey) => {
                let Ok(sealing) = self.wallet.sealing() else { return Ok(()) };
                let Some(private) = self.private_descriptor(number, &sealing)? else { return Ok(()) };
                derive(&private, row.range_end..wanted)
            }
            other => other,
        };
        let bad = |error: ExpandError| WalletError::BadDescriptor { number, reason: error.to_string() };
        let mut touched = Vec::new();
        self.store_scripts(number, derived.map_err(bad)?, &mut touched)?;
        row.range_end = wanted;
        self.grown.push((number, wanted));
        self.put_descriptor(number, row)?;
        self.rederive(&touched)
    }

    fn private_descriptor(&self, number: u32, sealing: &SealingKey) -> Result<Option<Descriptor>> {
        let key = private_key_of(number);
        let Some(value) = self.t.keys.get(&self.txn, &key)? else { return Ok(None) };
        let text = sealing.unwrap(&key, value)?;
        parse_stored(number, text.expose(), self.wallet.shared.network).map(Some)
    }

    /// Payments were seen at these indexes of these descriptors: addresses up to there are not handed out any more, and
    /// as many as before lie ahead.
    pub fn note_use(&mut self, used: impl Iterator<Item = (u32, u32)>) -> Result<()> {
        for (number, index) in used {
            let Some(mut row) = self.t.descriptor(&self.txn, number)? else { continue };
            if row.ranged && index >= row.next_index {
                row.next_index = index.saturating_add(1);
                self.put_descriptor(number, &row)?;
                self.top_up(number, &mut row)?;
            }
        }
        Ok(())
    }

    /// Makes a descriptor the source of new addresses of its type, in the place of the former one.
    pub fn activate(&mut self, number: u32, row: &mut DescriptorRow, kind: u8, internal: bool) -> Result<()> {
        let place = [kind, u8::from(internal)];
        let former = self.t.active.get(&self.txn, &place)?.map(number_from).transpose()?;
        if let Some(former) = former.filter(|former| *former != number)
            && let Some(mut other) = self.t.descriptor(&self.txn, former)?
        {
            other.active = false;
            self.put_descriptor(former, &other)?;
        }
        self.t.active.put(&mut self.txn, &place, &number.to_le_bytes())?;
        (row.active, row.internal) = (true, internal);
        self.put_descriptor(number, row)
    }

    /// New addresses come from a descriptor no more.
    pub fn deactivate(&mut self, number: u32, row: &mut DescriptorRow) -> Result<()> {
        let Some(kind) = row.output_type else { return Ok(()) };
        let place = [kind, u8::from(row.internal)];
        if self.t.active.get(&self.txn, &place)?.map(number_from).transpose()? == Some(number) {
            self.t.active.delete(&mut self.txn, &place)?;
        }
        row.active = false;
        self.put_descriptor(number, row)
    }

    /// Gives the wallet a fresh master key and the active descriptors that bitcoind gives a new wallet (BIP 44, 49, 84,
    /// 86; account 0).
    pub fn add_default_descriptors(&mut self, sealing: &SealingKey) -> Result<()> {
        let shared = &self.wallet.shared;
        let mut seed = Zeroizing::new([0_u8; 32]);
        thread_rng().fill_bytes(seed.as_mut_slice());
        let master = Xpriv::new_master(shared.network, seed.as_slice()).map_err(|_| WalletError::damaged(32))?;
        let master = Zeroizing::new(master.to_string());
        let coin = u8::from(NetworkKind::from(shared.network) == NetworkKind::Test);
        let now = shared.chain.time(outrigger_sdk::service::Scope::NONE)?;
        let mut touched = Vec::new();
        for internal in [false, true] {
            for (kind, purpose, open, close) in
                [(0, 44, "pkh(", ")"), (1, 49, "sh(wpkh(", "))"), (2, 84, "wpkh(", ")"), (3, 86, "tr(", ")")]
            {
                let side = u8::from(internal);
                let text = format!("{open}{}/{purpose}h/{coin}h/0h/{side}/*{close}", master.as_str());
                let text = Secret::new(text);
                let parsed = parse_stored(self.meta.next_descriptor, text.expose(), shared.network)?;
                let mut row = DescriptorRow {
                    public: parsed.to_normalized_string(),
                    identity: parsed.to_public_string(),
                    timestamp: now,
                    ranged: true,
                    range_begin: 0,
                    range_end: shared.settings.keypool,
                    derived_begin: 0,
                    next_index: 0,
                    output_type: Some(kind),
                    active: true,
                    internal,
                    has_private: true,
                };
                let number = self.add_descriptor(row.clone(), &parsed, sealing, &mut touched)?;
                self.activate(number, &mut row, kind, internal)?;
            }
        }
        self.meta.birth_time = self.meta.birth_time.min(now);
        self.note_backup_needed()
    }

    /// Takes the oldest key of the imported keypool, and gives its script of a kind.
    fn take_from_pool(&mut self, kind: AddressType, internal: bool) -> Result<Option<ScriptBuf>> {
        let first = self.t.imported_pool.prefix_iter(&self.txn, &[u8::from(internal)])?.next().transpose()?;
        let Some((place, hash)) = first.map(|(place, hash)| (place.to_vec(), hash.to_vec())) else { return Ok(None) };
        let hash = <[u8; 20]>::try_from(hash).map_err(|hash| WalletError::damaged(hash.len()))?;
        let script = match kind {
            AddressType::Legacy => p2pkh(&hash),
            AddressType::P2shSegwit => p2sh(&hash160(p2wpkh(&hash).as_bytes())),
            AddressType::Bech32 => p2wpkh(&hash),
            AddressType::Bech32m => return Ok(None),
        };
        self.t.imported_pool.delete(&mut self.txn, &place)?;
        let mut learned = Learned::default();
        let timestamp = self.t.imported_key(&self.txn, &hash)?.map_or(1, |row| row.timestamp);
        self.watch(&script, timestamp, &mut learned)?;
        let mut touched = Vec::new();
        self.settle(learned, &mut touched)?;
        self.rederive(&touched)?;
        Ok(Some(script))
    }

    fn next_script(&mut self, kind: AddressType, internal: bool) -> Result<ScriptBuf> {
        let place = [kind as u8, u8::from(internal)];
        let Some(number) = self.t.active.get(&self.txn, &place)?.map(number_from).transpose()? else {
            if let Some(script) = self.take_from_pool(kind, internal)? {
                return Ok(script);
            }
            if self.t.active.is_empty(&self.txn)? {
                let detail = "Error: This wallet has no available keys";
                return Err(ServiceError::new(ErrorKind::Refused, detail).into());
            }
            let detail = format!("Error: No {} addresses available.", type_name(kind));
            return Err(ServiceError::new(ErrorKind::KeypoolRanOut, detail).into());
        };
        let mut row = self.t.descriptor(&self.txn, number)?.ok_or(WalletError::damaged(0))?;
        self.top_up(number, &mut row)?;
        let index = row.next_index;
        if index >= row.range_end {
            return Err(ErrorKind::KeypoolRanOut.into());
        }
        let public = self.wallet.descriptors.get(number, &row.public)?;
        let script = match public.expand(index) {
            Ok(expansion) => expansion.scripts.into_iter().next().map(|script| script.script_pubkey),
            // Hardened below the public key: the script was derived when the key was at hand.
            Err(_) => self.derived_script(number, index)?,
        };
        row.next_index = index.saturating_add(1);
        self.put_descriptor(number, &row)?;
        self.top_up(number, &mut row)?;
        script.ok_or_else(|| WalletError::damaged(0))
    }

    fn derived_script(&self, number: u32, index: u32) -> Result<Option<ScriptBuf>> {
        for entry in self.t.scripts.iter(&self.txn)? {
            let row: ScriptRow = outrigger_sdk::wire::from_bytes(entry?.1).map_err(WalletError::Damaged)?;
            if row.owners.contains(&(number, index)) {
                return Ok(Some(row.script));
            }
        }
        Ok(None)
    }
}

impl Wallet {
    /// A fresh address's script, entered in the address book with the label (none: for change, not entered).
    ///
    /// # Errors
    /// `Refused` when no descriptor is active, `KeypoolRanOut` when none of the kind is or nothing can be derived.
    pub fn new_address(&self, kind: AddressType, internal: bool, label: Option<String>) -> ServiceResult<ScriptBuf> {
        Ok(self.write(|write| {
            let script = write.next_script(kind, internal)?;
            if let Some(label) = &label {
                let mut touched = Vec::new();
                write.put_label(&script, label, &mut touched)?;
                write.rederive(&touched)?;
            }
            Ok(script)
        })?)
    }

    /// Derives scripts until `size` lie ahead of the next index of each active descriptor; none: as many as are kept ahead
    /// anyway (keypoolrefill).
    ///
    /// # Errors
    /// `WalletLocked` where it has keys and they are sealed; `Refused` for more than [`MAX_REFILL`].
    pub fn refill_keypool(&self, size: Option<u32>) -> ServiceResult<()> {
        let size = size.unwrap_or(self.shared.settings.keypool);
        if size > MAX_REFILL {
            return Err(ServiceError::new(ErrorKind::Refused, "Error refreshing keypool."));
        }
        self.sealing()?;
        Ok(self.write(|write| {
            let mut active = Vec::new();
            for entry in write.t.active.iter(&write.txn)? {
                active.push(number_from(entry?.1)?);
            }
            for number in active {
                if let Some(mut row) = write.t.descriptor(&write.txn, number)? {
                    write.top_up_to(number, &mut row, size)?;
                }
            }
            Ok(())
        })?)
    }

    /// Sets a script's label in the address book. Nothing where it has no address form.
    ///
    /// # Errors
    /// `Storage`.
    pub fn set_label(&self, script: ScriptBuf, label: String) -> ServiceResult<()> {
        Ok(self.write(|write| {
            let mut touched = Vec::new();
            write.put_label(&script, &label, &mut touched)?;
            write.rederive(&touched)
        })?)
    }
}
