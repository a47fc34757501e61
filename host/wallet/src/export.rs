//! exportwatchonlywallet: a copy of a wallet without private keys.
//!
//! The rows are written to a new file, so no part of a former row, such as an encrypted key, is in it. The new file has
//! an encryption key of its own.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use bitcoin::Amount;
use outrigger_base::client_files::{ClientFileError, Folders};
use outrigger_disk::MAKING;
use outrigger_service::wallet::{Ownership, WalletTransaction};
use outrigger_service::wire::{from_bytes, to_bytes};
use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};

use super::encrypt::EncryptionKey;
use super::error::{Result, WalletError};
use super::guarding::POLICY_STATE;
use super::keypool::identity_key;
use super::live::Wallet;
use super::store::{
    CoinRow, DescriptorRow, ENCRYPTION, KeyRow, MetaRow, PLAINTEXT_KEY, Reading, SCRUB, ScriptRow, Store, Table,
    Tables, Writing,
};

const NOTHING: &str = "Error: Wallet has no descriptors to export";

impl Wallet {
    /// Writes a copy without private keys to a new file, within the rules for clients' files.
    ///
    /// Fails with `Refused` if the file exists, or may not or cannot be written, or the wallet has nothing to watch.
    /// Fails with `Storage` if the wallet's file is damaged. The log has the reason for every failure.
    pub fn export_watch_only(&self, file: &Path, folders: &Folders) -> ServiceResult<()> {
        if let Some(damage) = self.store.env.damage() {
            return Err(WalletError::Store(damage.into()).into());
        }
        let exported = self.shared.client_files.replace(file, folders, |_| Ok(false), |to| self.export(to));
        exported.map_err(|error| {
            tracing::error!(wallet = self.name(), file = %file.display(), %error, "the export failed");
            let shown = file.display();
            let detail = match error {
                WalletError::ClientFile(
                    ClientFileError::OtherFile | ClientFileError::NotAFile | ClientFileError::NoName,
                ) => format!("Error: Export destination '{shown}' already exists"),
                WalletError::ClientFile(reason @ ClientFileError::NotAllowed) => {
                    format!("Error: Could not create file '{shown}': {reason}")
                }
                WalletError::ClientFile(_) => format!("Error: Could not create file '{shown}'"),
                other => return other.into(),
            };
            ServiceError::new(ErrorKind::Refused, detail)
        })
    }

    /// Copies the rows to a new store below the wallet's folder, then that store's pages to the file.
    fn export(&self, to: &mut File) -> Result<()> {
        self.in_making(|folder| {
            let store = Store::create(folder, self.store.env.folder(), &self.shared.settings)?;
            self.copy_rows(&store)?;
            Ok(store.env.copy_to(to)?)
        })
    }

    fn copy_rows(&self, store: &Store) -> Result<()> {
        let (txn, t) = (self.store.read()?, self.store.tables);
        if t.descriptors.is_empty(&txn)? && t.imported_keys.is_empty(&txn)? && t.imported_watch.is_empty(&txn)? {
            return Err(ServiceError::new(ErrorKind::Refused, NOTHING).into());
        }
        let mut export = Export { from: &t, txn: &txn, to: store.tables, out: store.write()? };
        export.rows()?;
        Ok(export.out.commit()?)
    }

    /// Runs `copy` with an empty folder below the wallet's, for one copy at a time. The wallet stays usable. If the
    /// process is killed, the next start removes the folder.
    pub(super) fn in_making(&self, copy: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let _making = self.making.lock();
        let folder = self.store.env.folder();
        outrigger_disk::finish(folder)?;
        DirBuilder::new().mode(0o700).create(folder.join(MAKING))?;
        let copied = copy(&folder.join(MAKING));
        let removed = outrigger_disk::finish(folder);
        copied?;
        Ok(removed?)
    }
}

struct Export<'e> {
    from: &'e Tables,
    txn: &'e Reading<'e>,
    to: Tables,
    out: Writing<'e>,
}

impl Export<'_> {
    fn rows(&mut self) -> Result<()> {
        let (from, to) = (*self.from, self.to);
        for (from, to) in from.copied().into_iter().zip(to.copied()) {
            self.copy(from, to, |_, value| Ok(value.to_vec()))?;
        }
        self.meta()?;
        self.descriptors()?;
        self.imported()
    }

    /// Copies the rows of a table, with values changed by `change`.
    fn copy(&mut self, from: Table, to: Table, change: impl Fn(&[u8], &[u8]) -> Result<Vec<u8>>) -> Result<()> {
        for row in from.iter(self.txn)? {
            let (key, value) = row?;
            to.put(&mut self.out, key, &change(key, value)?)?;
        }
        Ok(())
    }

    fn meta(&mut self) -> Result<()> {
        for row in self.from.meta.iter(self.txn)? {
            let (key, value) = row?;
            if ![ENCRYPTION, PLAINTEXT_KEY, SCRUB, b"scrubbed"].contains(&key) && !key.starts_with(POLICY_STATE) {
                self.to.meta.put(&mut self.out, key, value)?;
            }
        }
        self.to.meta.put(&mut self.out, PLAINTEXT_KEY, &EncryptionKey::random().to_plaintext())?;
        let meta = MetaRow {
            private_keys_enabled: false,
            blank: false,
            signer: None,
            policies: Vec::new(),
            ..self.from.meta(self.txn)?
        };
        Ok(self.to.meta.put(&mut self.out, b"meta", &to_bytes(&meta))?)
    }

    /// Copies the descriptors without private keys. The identity of each becomes its normalised text, because the copy
    /// cannot derive hardened steps.
    fn descriptors(&mut self) -> Result<()> {
        for (number, row) in self.from.all_descriptors(self.txn)? {
            let identity = row.public.clone();
            let row = DescriptorRow { identity, has_private: false, private_keys: Vec::new(), ..row };
            self.to.descriptors.put(&mut self.out, &number.to_be_bytes(), &to_bytes(&row))?;
            self.to.identities.put(&mut self.out, &identity_key(&row.public), &number.to_le_bytes())?;
        }
        Ok(())
    }

    /// Copies scripts, coins and transactions. Outputs of imported private keys become watch-only.
    fn imported(&mut self) -> Result<()> {
        let (from, to, txn) = (*self.from, self.to, self.txn);
        self.copy(from.imported_keys, to.imported_keys, |_, value| {
            let row: KeyRow = from_bytes(value)?;
            Ok(to_bytes(&KeyRow { private: false, ..row }))
        })?;
        for row in from.scripts.iter(txn)? {
            let (key, value) = row?;
            let mut row: ScriptRow = from_bytes(value)?;
            if row.imported == Ownership::Spendable {
                row.imported = Ownership::WatchOnly;
                if to.imported_watch.get(&self.out, key)?.is_none() {
                    to.imported_watch.put(&mut self.out, key, &1_u64.to_le_bytes())?;
                }
            }
            to.scripts.put(&mut self.out, key, &to_bytes(&row))?;
        }
        self.copy(from.coins, to.coins, |_, value| {
            let mut row: CoinRow = from_bytes(value)?;
            let owned = from.script(txn, &row.script)?.is_some_and(|script| !script.owners.is_empty());
            if row.ownership == Ownership::Spendable && !owned {
                row.ownership = Ownership::WatchOnly;
            }
            Ok(to_bytes(&row))
        })?;
        self.copy(from.transactions, to.transactions, |_, value| {
            let mut row: WalletTransaction = from_bytes(value)?;
            for input in &row.inputs {
                let Some(parent) = from.transaction(txn, &input.txid)? else { continue };
                let spent = usize::try_from(input.vout).ok().and_then(|vout| parent.outputs.get(vout));
                if let Some(spent) = spent.filter(|output| is_imported(output.ownership, &output.descriptors)) {
                    let watched = row.debit_spendable.min(spent.value);
                    row.debit_spendable = row.debit_spendable.checked_sub(watched).unwrap_or(Amount::ZERO);
                    row.debit_watch_only = row.debit_watch_only.checked_add(watched).unwrap_or(row.debit_watch_only);
                }
            }
            for output in &mut row.outputs {
                if is_imported(output.ownership, &output.descriptors) {
                    output.ownership = Ownership::WatchOnly;
                }
            }
            Ok(to_bytes(&row))
        })
    }
}

/// Whether an output is spendable only with imported private keys.
fn is_imported(ownership: Ownership, descriptors: &[u32]) -> bool {
    ownership == Ownership::Spendable && descriptors.is_empty()
}
