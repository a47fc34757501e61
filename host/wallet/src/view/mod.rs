//! A call's view of a wallet: one snapshot of its tables, and the wallet's state in memory.

mod coins;
mod history;
mod judged;
mod keys;
mod labels;
mod log;
mod received;
mod signing;
pub mod sources;

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use bitcoin::ScriptBuf;
use outrigger_service::chain::BlockRef;
use outrigger_service::wallet::{DescriptorInfo, Ownership, ScriptInfo, Synced, WalletInfo};
use outrigger_service::wire::Secret;
use outrigger_service::{ErrorKind, Result as ServiceResult};
use outrigger_standard::descriptor::with_checksum;

use super::encrypt::EncryptionKey;
use super::error::Result;
use super::follow::synced_at;
use super::imported::knowledge;
use super::keypool::private_key_of;
use super::labels::Labels;
use super::live::Wallet;
use super::live::outgoing::Unsent;
use super::scrub;
use super::store::{DescriptorRow, Reading, SCRUB, ScriptRow, Snapshot, Table, Tables};
use super::trust::{TrustResolver, Verdicts};
pub use signing::Signing;
use signing::{MAX_EXPANDED, Owners};
use sources::Side;

/// The most coins or labels in one answer.
const MAX_BATCH: u32 = 256;
/// The maximum key length, in bytes, of the tables that are read in batches.
const MAX_KEY: usize = 64;

/// A snapshot of a wallet, for one thread at a time.
pub struct WalletView {
    // Declared before the wallet, so that the snapshot ends first.
    txn: Snapshot,
    /// The snapshot's block, or a later one if the blocks between do not touch the wallet.
    synced: Synced,
    /// Taken from the last view of the same snapshot, and left for the next.
    verdicts: RefCell<Verdicts>,
    labels: OnceCell<Arc<Labels>>,
    wallet: Arc<Wallet>,
}

impl Drop for WalletView {
    fn drop(&mut self) {
        let verdicts = self.verdicts.take();
        if !verdicts.is_empty() {
            *self.wallet.verdicts.lock() = Some((self.txn.id(), verdicts));
        }
    }
}

impl WalletView {
    pub(super) fn open(wallet: Arc<Wallet>) -> Result<Self> {
        loop {
            let before = wallet.feed.position().stored.hash;
            let txn = wallet.store.env.snapshot()?;
            let stored = wallet.store.tables.synced(&txn)?;
            let place = wallet.feed.position();
            // The position in memory belongs to the rows of its stored block.
            if stored.hash == place.stored.hash {
                return Ok(Self::of(wallet, txn, place.now));
            }
            if before == place.stored.hash {
                // A write has committed but not yet updated the position in memory.
                return Ok(Self::of(wallet, txn, stored));
            }
        }
    }

    fn of(wallet: Arc<Wallet>, txn: Snapshot, synced: Synced) -> Self {
        let kept = wallet.verdicts.lock().take_if(|(number, _)| *number == txn.id());
        let verdicts = kept.map(|(_, verdicts)| verdicts).unwrap_or_default();
        Self { txn, synced, verdicts: RefCell::new(verdicts), labels: OnceCell::new(), wallet }
    }

    pub fn wallet(&self) -> &Arc<Wallet> {
        &self.wallet
    }

    fn t(&self) -> &Tables {
        &self.wallet.store.tables
    }

    pub fn info(&self) -> ServiceResult<WalletInfo> {
        let (encrypted, locked, unlocked_until) = self.wallet.lock_state();
        let rescan = self.wallet.rescan_progress();
        let synced = self.synced;
        let (stored, unsent) = self.stored_info()?;
        let unsent = self.wallet.unsent_warning(&unsent, &synced);
        let damage = self.wallet.store.env.damage().map(|damage| damage.to_string());
        let held = self.wallet.read_only().into_iter().chain(self.wallet.shared.node.warnings());
        let warnings = stored.warnings.iter().cloned().chain(damage).chain(unsent).chain(held).collect();
        let node_behind = self.node_behind()?;
        Ok(WalletInfo { synced, encrypted, locked, unlocked_until, rescan, warnings, node_behind, ..stored })
    }

    /// The node's position while it lacks blocks that the wallet has followed.
    fn node_behind(&self) -> Result<Option<Synced>> {
        let shared = &self.wallet.shared;
        let behind = shared.node.link().map_or(0, |link| link.behind);
        if behind == 0 {
            return Ok(None);
        }
        let height = shared.node.tip().height.saturating_sub(behind);
        let block = shared.block_info(BlockRef::Height { height })?;
        Ok(block.as_ref().map(synced_at).filter(|node| node.height < self.synced.height))
    }

    /// The stored part of the info, cached by snapshot: nearly every call needs it, and it rarely changes.
    fn stored_info(&self) -> Result<(WalletInfo, Arc<[Unsent]>)> {
        let number = self.txn.id();
        let told = || self.wallet.told.lock();
        if let Some((of, info, unsent)) = &*told()
            && *of == number
        {
            return Ok((info.clone(), unsent.clone()));
        }
        let (info, unsent) = (self.read_stored_info()?, Arc::from(self.wallet.unsent(&self.txn)?));
        *told() = Some((number, info.clone(), Arc::clone(&unsent)));
        Ok((info, unsent))
    }

    fn read_stored_info(&self) -> Result<WalletInfo> {
        let (t, txn) = (self.t(), &*self.txn);
        let meta = t.meta(txn)?;
        let (external, internal) = (Side::read(&self.wallet, txn, false)?, Side::read(&self.wallet, txn, true)?);
        Ok(WalletInfo {
            name: self.wallet.name.clone(),
            synced: t.synced(txn)?,
            private_keys_enabled: meta.private_keys_enabled,
            blank: meta.blank,
            avoid_reuse: meta.avoid_reuse,
            transactions: t.transactions.len(txn)?,
            keypool_external: external.ahead(),
            keypool_internal: internal.ahead(),
            birth_time: if meta.birth_time == u64::MAX { 0 } else { meta.birth_time },
            backup_needed: meta.backup_needed,
            last_backup: meta.last_backup,
            keypool: self.wallet.shared.settings.keypool,
            sources: [external.sources(), internal.sources()].concat(),
            warnings: t.meta.get(txn, SCRUB)?.map(|_| scrub::WARNING.to_owned()).into_iter().collect(),
            signer: meta.signer,
            ..WalletInfo::default()
        })
    }

    pub(super) fn synced(&self) -> Synced {
        self.synced
    }

    pub fn descriptor_texts(&self, numbers: &[u32]) -> Result<Vec<Option<String>>> {
        let normalized = self.wallet.shared.rules().parents_normalized;
        let text = |number: &u32| match self.t().descriptor(&self.txn, *number)? {
            Some(row) if normalized => self.public_text(*number, &row).map(Some),
            row => Ok(row.map(|row| row.identity)),
        };
        numbers.iter().map(text).collect()
    }

    pub fn scripts(&self, scripts: Vec<ScriptBuf>) -> ServiceResult<Vec<Option<ScriptInfo>>> {
        let mut infos = Vec::with_capacity(scripts.len());
        let (mut owners, mut texts) = (Owners::default(), HashMap::new());
        for scripts in scripts.chunks(MAX_EXPANDED) {
            let rows = scripts.iter().map(|script| self.t().script(&self.txn, script)).collect::<Result<Vec<_>>>()?;
            let places = rows.iter().flatten().flat_map(|row| row.owners.iter().copied());
            self.expand(places, &mut owners)?;
            // Once per descriptor, since writing the text is slow.
            for (number, (row, _)) in &owners.descriptors {
                if !texts.contains_key(number) {
                    texts.insert(*number, self.public_text(*number, row)?);
                }
            }
            for (script, row) in scripts.iter().zip(rows) {
                infos.push(self.script(script, row, &owners, &texts)?);
            }
        }
        Ok(infos)
    }

    fn script(
        &self,
        script: &ScriptBuf,
        row: Option<ScriptRow>,
        owners: &Owners,
        texts: &HashMap<u32, String>,
    ) -> Result<Option<ScriptInfo>> {
        let (t, txn) = (self.t(), &*self.txn);
        let label = self.all_labels()?.get(script).map(str::to_owned);
        let imported = knowledge(t, txn, script)?;
        let nothing = imported.solving.scripts.is_empty() && imported.descriptor.is_none();
        if row.is_none() && label.is_none() && (nothing || !imported.known) {
            return Ok(None);
        }
        let ownership = row.as_ref().map_or(Ownership::None, ScriptRow::ownership);
        let mut info = ScriptInfo {
            ownership,
            solvable: imported.descriptor.is_some(),
            change: ownership != Ownership::None && label.is_none(),
            label,
            internal: false,
            timestamp: imported.timestamp,
            descriptor: imported.descriptor.map(with_checksum).unwrap_or_default(),
            parents: Vec::new(),
            solving: imported.solving,
            origins: imported.origins,
        };
        for place in row.iter().flat_map(|row| row.owners.iter().copied()).rev() {
            let Some((row, parsed)) = owners.descriptors.get(&place.0) else { continue };
            info.internal = row.internal;
            info.timestamp = row.timestamp;
            info.parents.extend(texts.get(&place.0).cloned());
            let mut expanded = owners.expansions.get(&place).into_iter().flat_map(|expansion| &expansion.scripts);
            if let Some(found) = expanded.find(|found| found.script_pubkey == *script)
                && parsed.is_solvable()
            {
                // In place of the data of imported keys.
                info.solvable = true;
                info.descriptor = found.definite.clone();
                info.solving = found.solving.clone();
                info.origins = found.origins.clone();
            }
        }
        info.parents.reverse();
        Ok(Some(info))
    }

    fn trust(&self) -> TrustResolver<'_> {
        TrustResolver::new(self.t(), &self.txn, &self.wallet.shared, self.verdicts.borrow_mut())
    }

    pub fn descriptors(&self, private: bool) -> Result<Vec<DescriptorInfo>> {
        let encryption_key = if private { Some(self.wallet.encryption_key()?) } else { None };
        let mut infos = Vec::new();
        for (number, row) in self.t().all_descriptors(&self.txn)? {
            let text = match self.private_text(&private_key_of(number), encryption_key.as_ref())? {
                Some(text) => text,
                None => Secret::new(self.public_text(number, &row)?),
            };
            infos.push(DescriptorInfo {
                text,
                timestamp: row.timestamp,
                active: row.active,
                internal: row.active.then_some(row.internal),
                range: row.ranged.then(|| (row.range_begin, row.range_end.saturating_sub(1))),
                next_index: row.next_index,
            });
        }
        Ok(infos)
    }

    /// The text of a private entry, if there is an encryption key.
    fn private_text(&self, place: &[u8], encryption_key: Option<&EncryptionKey>) -> Result<Option<Secret>> {
        let Some(encryption_key) = encryption_key else { return Ok(None) };
        self.t().keys.get(&self.txn, place)?.map(|value| encryption_key.unwrap(place, value)).transpose()
    }

    /// A descriptor's public text in the form that the node's release shows.
    fn public_text(&self, number: u32, row: &DescriptorRow) -> Result<String> {
        if self.wallet.shared.rules().miniscript_as_given && row.identity != row.public {
            let public = self.wallet.descriptors.get(number, &row.public)?;
            if public.has_miniscript() {
                let given = self.wallet.descriptors.get(number, &row.identity)?;
                return Ok(public.to_normalized_string_with(&given));
            }
        }
        Ok(row.public.clone())
    }
}

/// Rows of a table, and whether there are more.
type Page = (Vec<(Vec<u8>, Vec<u8>)>, bool);

fn page(table: Table, txn: &Reading<'_>, after: Option<&[u8]>, limit: usize) -> Result<Page> {
    check_place(after)?;
    let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
    let mut rows = Vec::new();
    for entry in table.range(txn, &(begin, Bound::Unbounded))? {
        let (key, value) = entry?;
        if rows.len() == limit {
            return Ok((rows, true));
        }
        rows.push((key.to_vec(), value.to_vec()));
    }
    Ok((rows, false))
}

/// Refuses a position that cannot be a key.
fn check_place(after: Option<&[u8]>) -> Result<()> {
    match after {
        Some(after) if after.is_empty() || after.len() > MAX_KEY => Err(ErrorKind::Malformed.into()),
        _ => Ok(()),
    }
}
