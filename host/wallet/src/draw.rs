//! New addresses, returned addresses, and addresses found in use.

use bitcoin::{Script, ScriptBuf};
use outrigger_descriptor::ExpandError;
use outrigger_service::wallet::{AddressType, Ownership, check_label};
use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};

use super::descriptors::{bad_descriptor, derive};
use super::error::{Result, WalletError};
use super::imported::{NewKeys, p2wpkh};
use super::keypool::LAST_INDEX;
use super::live::Wallet;
use super::ownership::{has_address, outputs_key, p2pkh};
use super::store::{DescriptorRow, number_from, script_key};
use super::view::sources::{Side, has_next};
use super::write::Write;

/// The most scripts that one call derives ahead, per descriptor.
const MAX_REFILL: u32 = 1_000_000;

impl Write<'_> {
    /// Handles payments to these scripts. If a payment is at or beyond a descriptor's next index, that index moves past it.
    /// If the descriptor is active and for receiving, the skipped addresses enter the address book. Each payment refills
    /// the scripts derived ahead.
    ///
    /// `scripts` must be in output order: a later output may pay to a script derived because of an earlier one.
    pub fn note_payments<'s>(&mut self, scripts: impl Iterator<Item = &'s Script>) -> Result<()> {
        for script in scripts {
            let Some(row) = self.t.script(self.reads(), script)? else { continue };
            for (number, index) in row.owners {
                self.note_use(number, index)?;
            }
        }
        Ok(())
    }

    fn note_use(&mut self, number: u32, index: u32) -> Result<()> {
        let Some(mut row) = self.t.descriptor(self.reads(), number)?.filter(|row| row.ranged) else { return Ok(()) };
        let passed = row.next_index..index.saturating_add(1);
        if !passed.is_empty() {
            if row.active && !row.internal {
                self.enter_addresses(number, &row, passed.clone())?;
            }
            row.next_index = passed.end.min(LAST_INDEX);
            self.put_descriptor(number, &row)?;
        }
        self.top_up(number, &mut row)
    }

    /// Adds addresses without an entry to the address book.
    fn enter_addresses(&mut self, number: u32, row: &DescriptorRow, indexes: std::ops::Range<u32>) -> Result<()> {
        for script in self.addresses(number, row, indexes)? {
            if has_address(&script) && self.t.labels.get(self.reads(), &script_key(&script))?.is_none() {
                self.put_label(&script, "", true)?;
            }
        }
        Ok(())
    }

    /// The first script of a descriptor at each of these derived indexes.
    fn addresses(&self, number: u32, row: &DescriptorRow, indexes: std::ops::Range<u32>) -> Result<Vec<ScriptBuf>> {
        let public = self.wallet.descriptors.get(number, &row.public)?;
        match derive(&public, indexes.clone()) {
            Ok(derived) => Ok(derived.into_iter().filter_map(|(_, scripts)| scripts.into_iter().next()).collect()),
            Err(ExpandError::HardenedWithoutPrivateKey) => {
                // From the table `derived`.
                let mut scripts = Vec::with_capacity(indexes.len());
                for index in indexes {
                    let expansion = self.wallet.expand_derived(self.reads(), (number, index))?;
                    let first = expansion.and_then(|expansion| expansion.scripts.into_iter().next());
                    scripts.extend(first.map(|script| script.script_pubkey));
                }
                Ok(scripts)
            }
            Err(error) => Err(bad_descriptor(number, &error)),
        }
    }

    /// Removes the oldest key from the imported keypool and watches its script of this type.
    fn take_from_pool(&mut self, kind: AddressType, internal: bool) -> Result<Option<ScriptBuf>> {
        let first = self.t.imported_pool.prefix_iter(self.reads(), &[u8::from(internal)])?.next().transpose()?;
        let Some((place, hash)) = first.map(|(place, hash)| (place.to_vec(), hash.to_vec())) else { return Ok(None) };
        let hash = <[u8; 20]>::try_from(hash).map_err(|hash| WalletError::damaged(hash.len()))?;
        let script = match kind {
            AddressType::Legacy => p2pkh(&hash),
            AddressType::P2shSegwit => p2wpkh(&hash).to_p2sh(),
            AddressType::Bech32 => p2wpkh(&hash),
            AddressType::Bech32m => return Ok(None),
        };
        self.delete(self.t.imported_pool, &place)?;
        let mut learned = NewKeys::default();
        let timestamp = self.t.imported_key(self.reads(), &hash)?.map_or(1, |row| row.timestamp);
        self.watch(&script, timestamp, &mut learned)?;
        self.settle(learned)?;
        self.rederive()?;
        Ok(Some(script))
    }

    fn next_script(&mut self, kind: AddressType, internal: bool) -> Result<ScriptBuf> {
        let place = [kind as u8, u8::from(internal)];
        let Some(number) = self.t.active.get(self.reads(), &place)?.map(number_from).transpose()? else {
            if let Some(script) = self.take_from_pool(kind, internal)? {
                return Ok(script);
            }
            if !Side::read(self.wallet, self.reads(), internal)?.gives_addresses() {
                let detail = "Error: This wallet has no available keys";
                return Err(ServiceError::new(ErrorKind::Refused, detail).into());
            }
            let detail = format!("Error: No {} addresses available.", kind.name());
            return Err(ServiceError::new(ErrorKind::KeypoolRanOut, detail).into());
        };
        let mut row = self.t.descriptor(self.reads(), number)?.ok_or(WalletError::damaged(0))?;
        self.top_up(number, &mut row)?;
        let index = row.next_index;
        if !has_next(&row) {
            return Err(ErrorKind::KeypoolRanOut.into());
        }
        let script = self.addresses(number, &row, index..index.saturating_add(1))?.pop();
        row.next_index = index.saturating_add(1);
        self.put_descriptor(number, &row)?;
        script.ok_or_else(|| WalletError::damaged(0))
    }

    /// Makes the index of an unused address available again, if it was the last one handed out. Returns whether it did.
    fn give_back(&mut self, script: &Script) -> Result<bool> {
        let Some(known) = self.t.script(self.reads(), script)? else { return Ok(false) };
        let mut given_back = false;
        // An address with a payment stays used: the node may confirm a payment that it refuses now.
        if self.t.outputs.prefix_iter(self.reads(), &outputs_key(script))?.next().is_some() {
            return Ok(false);
        }
        for (number, index) in known.owners {
            let Some(mut row) = self.t.descriptor(self.reads(), number)? else { continue };
            if row.ranged && row.next_index == index.saturating_add(1) {
                row.next_index = index;
                self.put_descriptor(number, &row)?;
                given_back = true;
            }
        }
        Ok(given_back)
    }
}

impl Wallet {
    pub fn new_address(&self, kind: AddressType, internal: bool, label: Option<String>) -> ServiceResult<ScriptBuf> {
        check_label(label.as_deref().unwrap_or_default())?;
        Ok(self.write(|write| {
            let script = write.next_script(kind, internal)?;
            if let Some(label) = &label {
                write.put_label(&script, label, true)?;
            }
            Ok(script)
        })?)
    }

    pub fn return_address(&self, script: &Script) -> ServiceResult<bool> {
        Ok(self.write(|write| write.give_back(script))?)
    }

    /// keypoolrefill. `size` defaults to the setting `keypool`.
    pub fn refill_keypool(&self, size: Option<u32>) -> ServiceResult<()> {
        let size = size.unwrap_or(self.shared.settings.keypool);
        if size > MAX_REFILL {
            return Err(ServiceError::new(ErrorKind::Refused, "Error refreshing keypool."));
        }
        self.encryption_key()?;
        Ok(self.write(|write| {
            let active = write.t.active.iter(write.reads())?.map(|entry| number_from(entry?.1));
            for number in active.collect::<Result<Vec<u32>>>()? {
                if let Some(mut row) = write.t.descriptor(write.reads(), number)? {
                    write.top_up_to(number, &mut row, size)?;
                }
            }
            Ok(())
        })?)
    }

    pub fn set_label(&self, script: ScriptBuf, label: String) -> ServiceResult<()> {
        check_label(&label)?;
        Ok(self.write(|write| {
            let row = write.t.script(write.reads(), &script)?;
            let ours = row.is_some_and(|row| row.ownership() != Ownership::None);
            write.put_label(&script, &label, ours)
        })?)
    }
}
