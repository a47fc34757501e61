//! What changes in the wallet itself, in one write.

use std::collections::HashSet;

use bitcoin::{NetworkKind, ScriptBuf, Txid};
use outrigger_service::wallet::{Ownership, WalletKind, WalletTransaction};
use outrigger_service::wire::{Secret, from_bytes};
use outrigger_service::{ErrorKind, ServiceError};

use super::plan::{Plan, Planned};
use super::side::Moved;
use crate::descriptors::parse_stored;
use crate::encrypt::EncryptionKey;
use crate::error::{Result, WalletError};
use crate::keypool::DEFAULTS;
use crate::ownership::Parents;
use crate::store::rows::{CoinRow, DescriptorRow, ScriptRow};
use crate::store::tables::{outpoint_from, put, script_key};
use crate::write::Write;

impl Write<'_> {
    /// Makes the wallet one of descriptors. What `moved` names has been copied to other wallets.
    pub(super) fn become_descriptors(&mut self, plan: &Plan, moved: &Moved, key: &EncryptionKey) -> Result<()> {
        self.meta.kind = WalletKind::Descriptors as u8;
        if plan.empty {
            return Ok(());
        }
        self.meta.blank = false;
        let mut touched = Vec::new();
        for (number, planned) in plan.main.descriptors.iter().enumerate() {
            self.check_chunk(number)?;
            self.add_planned(planned, key, &mut touched)?;
        }
        self.forget_imports(&mut touched)?;
        for script in &moved.labels {
            self.delete_label(script)?;
        }
        if self.meta.private_keys_enabled {
            self.activate_defaults(plan.master.as_ref(), key)?;
        }
        self.unlock_coins(&moved.coins)?;
        self.forget_coins()?;
        self.rederive(&touched)?;
        self.remove_foreign(&moved.transactions)?;
        self.note_backup_needed()?;
        // Nobody is told: the wallet is not loaded.
        self.changed.clear();
        Ok(())
    }

    /// Adds a descriptor without a wildcard, unless it is known.
    pub(super) fn add_planned(
        &mut self,
        planned: &Planned,
        key: &EncryptionKey,
        touched: &mut Vec<ScriptBuf>,
    ) -> Result<()> {
        let Planned { descriptor, timestamp } = planned;
        if self.find_descriptor(descriptor)?.is_some() {
            return Ok(());
        }
        let mut row = DescriptorRow {
            public: descriptor.to_normalized_string(),
            identity: descriptor.to_public_string(),
            timestamp: *timestamp,
            ranged: false,
            range_begin: 0,
            range_end: 1,
            derived_begin: 0,
            next_index: 0,
            output_type: descriptor.output_type().map(|kind| kind as u8),
            active: false,
            internal: false,
            has_private: false,
            private_keys: None,
        };
        row.note_private_keys(descriptor);
        self.meta.birth_time = self.meta.birth_time.min(*timestamp);
        self.add_descriptor(row, descriptor, key, touched)?;
        Ok(())
    }

    /// Forgets imported keys and scripts. A script that no descriptor has is the wallet's no more.
    fn forget_imports(&mut self, touched: &mut Vec<ScriptBuf>) -> Result<()> {
        let mut known = Vec::new();
        for entry in self.t.scripts.iter(&self.txn)? {
            let row: ScriptRow = from_bytes(entry?.1).map_err(WalletError::Damaged)?;
            if row.imported != Ownership::None || row.owners.is_empty() {
                known.push(row);
            }
        }
        for row in known {
            let place = script_key(&row.script);
            touched.push(row.script.clone());
            if row.owners.is_empty() {
                self.t.scripts.delete(&mut self.txn, &place)?;
                // What stays of it in the address book stays readable.
                let label = self.t.labels.get(&self.txn, &place)?;
                if let Some(label) = label.map(|label| String::from_utf8_lossy(label).into_owned()) {
                    self.put_label(&row.script, &label, false)?;
                }
            } else {
                put(self.t.scripts, &mut self.txn, &place, &ScriptRow { imported: Ownership::None, ..row })?;
            }
        }
        let t = self.t;
        let tables = [t.imported_keys, t.imported_scripts, t.imported_watch, t.imported_uses, t.imported_pool];
        for table in tables {
            table.delete_range(&mut self.txn, &(..))?;
        }
        let keys =
            t.keys.prefix_iter(&self.txn, b"k")?.map(|entry| Ok(entry?.0.to_vec())).collect::<Result<Vec<_>>>()?;
        for place in keys {
            t.keys.delete(&mut self.txn, &place)?;
        }
        Ok(())
    }

    /// Forgets the coins of scripts that are the wallet's no more: rows of transactions bring no such coin to an end.
    fn forget_coins(&mut self) -> Result<()> {
        let mut gone = Vec::new();
        for entry in self.t.coins.iter(&self.txn)? {
            let (place, row) = entry?;
            let row: CoinRow = from_bytes(row).map_err(WalletError::Damaged)?;
            if self.t.script(&self.txn, &row.script)?.is_none() {
                gone.push(outpoint_from(place)?);
            }
        }
        gone.iter().try_for_each(|outpoint| self.delete_coin(outpoint))
    }

    /// New addresses come from the descriptors that a new wallet with this master key would have; with none, from fresh ones.
    fn activate_defaults(&mut self, master: Option<&Secret>, key: &EncryptionKey) -> Result<()> {
        let Some(master) = master else { return self.add_default_descriptors(key) };
        let network = self.wallet.shared.network;
        let coin = u8::from(NetworkKind::from(network) == NetworkKind::Test);
        let mut touched = Vec::new();
        for internal in [false, true] {
            for (kind, purpose, open, close) in DEFAULTS {
                let side = u8::from(internal);
                let text = format!("{open}{}/{purpose}h/{coin}h/0h/{side}/*{close}", master.expose());
                let parsed = parse_stored(self.meta.next_descriptor, Secret::new(text).expose(), network)?;
                let (number, mut row) = match self.find_descriptor(&parsed)? {
                    Some(number) => (number, self.t.descriptor(&self.txn, number)?.ok_or(WalletError::damaged(0))?),
                    None => {
                        let row = self.own_row(&parsed, kind, internal);
                        (self.add_descriptor(row.clone(), &parsed, key, &mut touched)?, row)
                    }
                };
                self.activate(number, &mut row, kind, internal)?;
            }
        }
        self.rederive(&touched)
    }

    /// Removes the transactions that concern the wallet no more.
    ///
    /// # Errors
    /// `Refused` for one that was not moved to another wallet.
    fn remove_foreign(&mut self, moved: &HashSet<Txid>) -> Result<()> {
        let mut foreign = Vec::new();
        for entry in self.t.transactions.iter(&self.txn)? {
            let row: WalletTransaction = from_bytes(entry?.1).map_err(WalletError::Damaged)?;
            if self.is_foreign(&row)? {
                foreign.push(row);
            }
        }
        for row in foreign {
            if !moved.contains(&row.txid) {
                let what = format!(
                    "Error: Transaction {} in wallet cannot be identified to belong to migrated wallets",
                    row.txid
                );
                return Err(ServiceError::new(ErrorKind::Refused, what).into());
            }
            self.forget_mempool_conflicts(row.txid)?;
            self.remove(row)?;
        }
        Ok(())
    }

    fn is_foreign(&self, row: &WalletTransaction) -> Result<bool> {
        if row.outputs.iter().any(|output| output.ownership != Ownership::None) {
            return Ok(false);
        }
        let mut parents = Parents::default();
        for input in &row.inputs {
            if parents.is_ours(&self.t, &self.txn, input)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
