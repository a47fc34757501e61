//! Imports of descriptors (importdescriptors), and of keys and scripts (importmulti).
//!
//! All requests of a call are one write. A request that the rules refuse stores nothing and does not affect the others.
//! A storage error aborts them all.

use std::collections::HashMap;

use bitcoin::PrivateKey;
use bitcoin::secp256k1::PublicKey;
use outrigger_descriptor::{Checksum, Descriptor};
use outrigger_service::wallet::{DescriptorImport, Import, ImportOutcome, KeyOrigin, KeysImport, Ownership};
use outrigger_service::wire::{Blob, Secret};
use outrigger_service::{ErrorKind, Result as ServiceResult};

use super::descriptors::SECP;
use super::error::{Result, WalletError};
use super::imported::{self, NewKeys, p2pk};
use super::keypool::{END, private_key_at};
use super::live::Wallet;
use super::live::rescan_slot::Stage;
use super::ownership::has_address;
use super::rescan;
use super::store::{DescriptorRow, KeyRow, RescanRow, ScriptRow, hash160};
use super::write::Write;
use outrigger_disk::StoreError;

/// If the range of a first import begins at or below this index, the scripts are derived from index 0, as in bitcoind.
/// Otherwise they are derived from the start of the range, so that no request makes the host derive a billion scripts
/// outside its range.
const MAX_GAP_BELOW: u32 = 1_000_000;

/// A path of a descriptor import; `internal` means change.
struct PathImport {
    parsed: Descriptor,
    internal: bool,
    known: Option<(u32, DescriptorRow)>,
}

impl Wallet {
    pub fn import(&self, requests: Vec<Import>) -> ServiceResult<Vec<ImportOutcome>> {
        self.import_with(&requests, |_| {})
    }

    /// Imports descriptors of the wallet's own keys (createwalletdescriptor). The wallet is no longer blank.
    pub fn add_own_descriptors(&self, descriptors: Vec<DescriptorImport>) -> ServiceResult<Vec<ImportOutcome>> {
        let requests: Vec<_> = descriptors.into_iter().map(|descriptor| Import::Descriptor { descriptor }).collect();
        self.import_with(&requests, |write| write.meta.blank = false)
    }

    /// Imports all requests in one write. If any succeeds, `done` adds to the write.
    fn import_with(&self, requests: &[Import], done: impl FnOnce(&mut Write<'_>)) -> ServiceResult<Vec<ImportOutcome>> {
        let reserved = matches!(self.rescan.state.lock().stage, Stage::Reserved { .. });
        let stored = self.write(|write| {
            // Read within the write, since encryptwallet may just have replaced the key.
            write.key = Some(self.encryption_key()?);
            let mut outcomes = Vec::with_capacity(requests.len());
            for request in requests {
                if let Err(error) = request.check_lengths() {
                    outcomes.push(ImportOutcome::BadDescriptor { reason: error.detail });
                    continue;
                }
                outcomes.push(match request {
                    Import::Descriptor { descriptor } => write.import_descriptor(descriptor)?,
                    Import::Keys { parts } => write.import_keys(parts)?,
                });
            }
            write.rederive()?;
            if !outcomes.iter().any(|outcome| matches!(outcome, ImportOutcome::Imported { .. })) {
                return Ok((outcomes, None));
            }
            done(write);
            let rescan = if reserved { Some(write.put_rescan(requests)?) } else { None };
            Ok((outcomes, rescan))
        });
        match stored {
            Err(WalletError::Service(error)) if error.kind != ErrorKind::Storage => Err(error),
            Err(error @ WalletError::Store(StoreError::DiskFull(_) | StoreError::MapFull)) => Err(error.into()),
            Err(error) => {
                tracing::error!(wallet = self.name(), %error, "an import could not be stored");
                Ok(vec![ImportOutcome::NotStored; requests.len()])
            }
            Ok((outcomes, rescan)) => {
                if let Some(rescan) = rescan {
                    self.rescan.note_stored(rescan);
                }
                Ok(outcomes)
            }
        }
    }
}

impl Write<'_> {
    /// Stores the start of the rescan after an import: if the process is killed before the rescan begins, the next load
    /// runs it.
    fn put_rescan(&mut self, requests: &[Import]) -> Result<RescanRow> {
        let timestamp = |request: &Import| match request {
            Import::Descriptor { descriptor } => descriptor.timestamp,
            Import::Keys { parts } => parts.iter().map(|part| part.timestamp).min().unwrap_or(u64::MAX),
        };
        let row = rescan::begin(requests.iter().map(timestamp).fold(u64::from(self.synced.time), u64::min));
        self.store_row(self.t.meta, b"rescan", &row)?;
        Ok(row)
    }

    fn note_import(&mut self, timestamp: u64) -> Result<()> {
        self.meta.birth_time = self.meta.birth_time.min(timestamp);
        self.note_backup_needed()
    }

    fn import_descriptor(&mut self, import: &DescriptorImport) -> Result<ImportOutcome> {
        let network = self.wallet.shared.network;
        let parsed = match Descriptor::parse(import.text.expose(), network, Checksum::Optional) {
            Ok(parsed) => parsed,
            Err(error) => return Ok(ImportOutcome::BadDescriptor { reason: error.to_string() }),
        };
        let missing_private_keys = match self.check_private_keys(&parsed) {
            Ok(missing) => missing,
            Err(outcome) => return Ok(outcome),
        };
        let mut paths = Vec::with_capacity(parsed.len());
        // Of two paths, the first is for receiving and the second for change (BIP 389).
        let paired = parsed.len() == 2;
        let (begin, end) = self.range(import);
        for (position, parsed) in parsed.into_iter().enumerate() {
            let internal = if paired { position == 1 } else { import.internal.unwrap_or(false) };
            let known = match self.find_descriptor(&parsed)? {
                Some(number) => self.t.descriptor(self.reads(), number)?.map(|row| (number, row)),
                None => None,
            };
            if let Some((_, row)) = &known
                && parsed.is_ranged()
                && (row.range_begin < begin || end < row.range_end)
            {
                return Ok(ImportOutcome::RangeShrinks {
                    begin: row.range_begin,
                    end: row.range_end.saturating_sub(1),
                });
            }
            paths.push(PathImport { parsed, internal, known });
        }
        let mut unknown_output_type = false;
        for path in paths {
            unknown_output_type |= import.active && path.parsed.output_type().is_none();
            self.import_path(import, path)?;
        }
        self.note_import(import.timestamp)?;
        Ok(ImportOutcome::Imported { missing_private_keys, unknown_output_type })
    }

    /// Whether private keys are missing. `Err` is the outcome of a refused import: the wallet may not hold these keys,
    /// or the descriptors derive nothing.
    fn check_private_keys(&self, parsed: &[Descriptor]) -> std::result::Result<bool, ImportOutcome> {
        let enabled = self.meta.private_keys_enabled;
        if !enabled && parsed.iter().any(Descriptor::has_private_keys) {
            return Err(ImportOutcome::PrivateKeysDisabled);
        }
        if parsed.iter().any(|parsed| parsed.expand(0).is_err()) {
            return Err(ImportOutcome::NotExpandable);
        }
        if enabled && !parsed.iter().any(Descriptor::has_private_keys) {
            return Err(ImportOutcome::NoPrivateKeys);
        }
        Ok(enabled && !parsed.iter().all(Descriptor::has_all_private_keys))
    }

    /// The range of an import, with an exclusive end.
    fn range(&self, import: &DescriptorImport) -> (u32, u32) {
        match import.range {
            Some((begin, end)) => (begin, end.saturating_add(1)),
            None => (0, self.wallet.shared.settings.keypool),
        }
    }

    fn import_path(&mut self, import: &DescriptorImport, path: PathImport) -> Result<()> {
        let PathImport { parsed, internal, known } = path;
        let ranged = parsed.is_ranged();
        let (begin, end) = if ranged { self.range(import) } else { (0, 1) };
        let next_index = if ranged { import.next_index.unwrap_or(begin) } else { 0 };
        let ahead = if ranged { next_index.saturating_add(self.wallet.shared.settings.keypool).min(END) } else { 1 };
        let mut row = DescriptorRow {
            range_begin: begin,
            range_end: end.max(ahead),
            derived_begin: if begin > MAX_GAP_BELOW { begin } else { 0 },
            next_index,
            ..DescriptorRow::new(&parsed, import.timestamp, internal)
        };
        let number = match known {
            None => self.add_descriptor(row.clone(), &parsed)?,
            Some((number, former)) => {
                self.replace_descriptor(number, former, &mut row, &parsed)?;
                number
            }
        };
        if import.active
            && let Some(kind) = row.output_type
        {
            self.activate(number, &mut row, kind, internal)?;
        }
        if !ranged && !internal {
            self.label_descriptor(&parsed, import.label.as_deref().unwrap_or_default())?;
        }
        Ok(())
    }

    /// Replaces the row of a known descriptor with that of a new import. Its scripts stay, and new ones are added.
    fn replace_descriptor(
        &mut self,
        number: u32,
        mut former: DescriptorRow,
        row: &mut DescriptorRow,
        parsed: &Descriptor,
    ) -> Result<()> {
        if former.active {
            self.deactivate(number, &mut former)?;
        }
        if parsed.has_private_keys() {
            self.store_private(number, parsed)?;
        } else {
            (row.has_private, row.private_keys) = (former.has_private, former.private_keys);
        }
        row.range_end = row.range_end.max(former.range_end);
        row.derived_begin = row.derived_begin.min(former.derived_begin);
        if !former.has_private && row.has_private {
            // With private keys, the normalised text has all hardened steps derived.
            row.public = parsed.to_normalized_string();
        } else {
            row.public = former.public;
        }
        self.put_descriptor(number, row)?;
        self.add_scripts(number, parsed, row.derived_begin..former.derived_begin)?;
        self.add_scripts(number, parsed, former.range_end..row.range_end)
    }

    /// Adds the address of a descriptor without a wildcard to the address book; for `combo` all its addresses.
    pub(super) fn label_descriptor(&mut self, parsed: &Descriptor, label: &str) -> Result<()> {
        let Ok(expansion) = parsed.expand(0) else { return Ok(()) };
        for script in expansion.scripts {
            // Skips the P2PK script of `combo`, which has no address.
            if has_address(&script.script_pubkey) {
                self.put_label(&script.script_pubkey, label, true)?;
            }
        }
        Ok(())
    }

    /// Imports all parts of a request, or none if one is refused.
    fn import_keys(&mut self, parts: &[KeysImport]) -> Result<ImportOutcome> {
        let mut keys = Vec::with_capacity(parts.len());
        for part in parts {
            match self.check_keys(part)? {
                Ok(private) => keys.push(private),
                Err(outcome) => return Ok(outcome),
            }
        }
        for (part, private) in parts.iter().zip(keys) {
            self.store_keys(part, private)?;
        }
        Ok(ImportOutcome::Imported { missing_private_keys: false, unknown_output_type: false })
    }

    /// The private keys of an import, each with its public key. The inner `Err` is the outcome of a refused import.
    fn check_keys<'i>(
        &self,
        import: &'i KeysImport,
    ) -> Result<std::result::Result<Vec<PrivateEntry<'i>>, ImportOutcome>> {
        if !self.meta.private_keys_enabled && !import.private_keys.is_empty() {
            return Ok(Err(ImportOutcome::PrivateKeysDisabled));
        }
        for script in &import.script_pubkeys {
            let row = self.t.script(self.reads(), script)?;
            if row.as_ref().map(ScriptRow::ownership) == Some(Ownership::Spendable) {
                return Ok(Err(ImportOutcome::AlreadyOwned { script: script.clone() }));
            }
        }
        let mut keys = Vec::with_capacity(import.private_keys.len());
        for (number, wif) in import.private_keys.iter().enumerate() {
            self.check_chunk(number)?;
            match PrivateKey::from_wif(wif.expose()) {
                Ok(key) => keys.push((wif, key.public_key(&SECP).to_bytes())),
                Err(_) => {
                    return Ok(Err(ImportOutcome::BadDescriptor { reason: "Invalid private key encoding".into() }));
                }
            }
        }
        Ok(Ok(keys))
    }

    fn store_keys(&mut self, import: &KeysImport, keys: Vec<PrivateEntry<'_>>) -> Result<()> {
        // Reversed, so that the first of several origins of a key counts. A ranged descriptor has one per index.
        let origins = import.origins.iter().rev().map(|origin| (origin.public_key.0.as_slice(), origin));
        let origins: HashMap<&[u8], &KeyOrigin> = origins.collect();
        let key_row = |public_key: Vec<u8>, private| {
            let origin = origins.get(public_key.as_slice()).map(|origin| (*origin).clone());
            KeyRow { public_key: Blob(public_key), timestamp: import.timestamp, private, origin }
        };
        let mut learned = NewKeys::default();
        for (number, script) in import.scripts.iter().enumerate() {
            self.check_chunk(number)?;
            self.learn_script(script, import.timestamp, &mut learned)?;
        }
        for (number, (wif, public_key)) in keys.into_iter().enumerate() {
            self.check_chunk(number)?;
            let place = private_key_at(&hash160(&public_key));
            if self.t.keys.get(self.reads(), &place)?.is_none() {
                self.put_private(&place, wif)?;
                self.adds_keys = true;
                self.new_keys.extend(PublicKey::from_slice(&public_key));
            }
            self.learn_key(key_row(public_key, true), &mut learned)?;
        }
        for (number, public_key) in import.public_keys.iter().enumerate() {
            self.check_chunk(number)?;
            self.import_public_key(import, key_row(public_key.0.clone(), false), &mut learned)?;
        }
        self.settle(learned)?;
        self.watch_scripts(import)?;
        self.note_import(import.timestamp)
    }

    /// Stores a public key, watches its P2PK script, and adds it to the keypool if requested.
    fn import_public_key(&mut self, import: &KeysImport, row: KeyRow, learned: &mut NewKeys) -> Result<()> {
        let public_key = row.public_key.clone();
        if !self.learn_key(row, learned)? {
            return Ok(());
        }
        self.watch(&p2pk(&public_key), import.timestamp, learned)?;
        if import.keypool {
            let number = self.meta.next_pool;
            self.meta.next_pool += 1;
            let place = [&[u8::from(import.internal)], number.to_be_bytes().as_slice()].concat();
            self.put(self.t.imported_pool, &place, &hash160(&public_key))?;
        }
        Ok(())
    }

    /// Watches the scripts of an import, unless its keys make them ours, and adds all addresses to the address book.
    fn watch_scripts(&mut self, import: &KeysImport) -> Result<()> {
        let mut learned = NewKeys::default();
        for (number, script) in import.script_pubkeys.iter().enumerate() {
            self.check_chunk(number)?;
            let ours = imported::ownership(&self.t, self.reads(), script)? != Ownership::None;
            if !import.solving_data || !ours {
                self.watch(script, import.timestamp, &mut learned)?;
            }
        }
        self.settle(learned)?;
        if !import.internal {
            for script in &import.script_pubkeys {
                self.put_label(script, &import.label, true)?;
            }
        }
        Ok(())
    }
}

type PrivateEntry<'a> = (&'a Secret, Vec<u8>);
