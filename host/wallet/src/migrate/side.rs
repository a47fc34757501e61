//! The wallets beside the migrated one: what they take over of its transactions, labels and locked coins.

use std::collections::{BTreeSet, HashSet};

use bitcoin::consensus::deserialize;
use bitcoin::{OutPoint, ScriptBuf, Transaction, Txid};
use outrigger_service::wallet::WalletTransaction;
use outrigger_service::wire::from_bytes;

use super::plan::{Group, Plan};
use crate::encrypt::EncryptionKey;
use crate::error::{Result, WalletError};
use crate::matching::Met;
use crate::store::rows::{RescanRow, ScriptRow};
use crate::store::tables::{get, put};
use crate::store::{Snapshot, Tables};
use crate::write::Write;

/// What another wallet has from now on, and the migrated one no more.
#[derive(Default)]
pub struct Moved {
    /// Transactions that were copied. They stay, too, where they concern the wallet.
    pub transactions: HashSet<Txid>,
    /// The scripts whose labels were moved.
    pub labels: Vec<ScriptBuf>,
    /// Locked coins.
    pub coins: Vec<OutPoint>,
}

/// A label of the address book, and whether it is of an address to receive at.
struct Label {
    script: ScriptBuf,
    text: String,
    receives: bool,
}

/// What a wallet is made of.
pub struct Contents<'p> {
    group: &'p Group,
    labels: Vec<Label>,
    /// In the order in which the migrated wallet met them.
    transactions: Vec<Txid>,
    locked: Vec<OutPoint>,
    /// What the migrated wallet has not looked through yet for these scripts.
    rescan: Option<RescanRow>,
}

impl Contents<'_> {
    /// Whether there is anything to make a wallet of.
    pub fn is_empty(&self) -> bool {
        self.group.descriptors.is_empty()
    }
}

/// The wallet that is migrated, as it is before.
pub struct Source<'s> {
    pub t: &'s Tables,
    pub txn: &'s Snapshot,
}

/// Divides what the wallet has: what becomes the watch-only wallet's and the wallet's of solvables, and what is moved by that.
pub fn divide<'p>(source: &Source<'_>, plan: &'p Plan) -> Result<(Moved, [Contents<'p>; 2])> {
    let contents =
        |group| Contents { group, labels: Vec::new(), transactions: Vec::new(), locked: Vec::new(), rescan: None };
    let (mut watched, mut solvable) = (contents(&plan.watched), contents(&plan.solvable));
    let mut moved = Moved::default();
    source.divide_transactions(&mut watched, &mut moved)?;
    source.divide_labels(plan, [&mut watched, &mut solvable], &mut moved)?;
    watched.rescan = source.t.rescan(source.txn)?;
    Ok((moved, [watched, solvable]))
}

impl Source<'_> {
    /// Notes the transactions that pay to scripts or spend from them, and the locked coins among what they pay.
    fn divide_transactions(&self, watched: &mut Contents<'_>, moved: &mut Moved) -> Result<()> {
        let locked: BTreeSet<OutPoint> = self.t.locked_coins(self.txn)?;
        let mut outpoints = HashSet::new();
        for row in self.transactions()? {
            let row = row?;
            for (vout, output) in (0_u32..).zip(&row.outputs) {
                if watched.group.scripts.contains(&output.script) {
                    outpoints.insert(OutPoint { txid: row.txid, vout });
                }
            }
        }
        for row in self.transactions()? {
            let row = row?;
            let pays = row.outputs.iter().any(|output| watched.group.scripts.contains(&output.script));
            if pays || row.inputs.iter().any(|input| outpoints.contains(input)) {
                watched.transactions.push(row.txid);
                moved.transactions.insert(row.txid);
            }
        }
        watched.locked = locked.into_iter().filter(|coin| outpoints.contains(coin)).collect();
        moved.coins.clone_from(&watched.locked);
        Ok(())
    }

    /// The transactions, in the order in which the wallet met them.
    fn transactions(&self) -> Result<impl Iterator<Item = Result<WalletTransaction>>> {
        let rows = self.t.transactions.iter(self.txn)?;
        Ok(rows.map(|entry| from_bytes(entry?.1).map_err(WalletError::Damaged)))
    }

    /// As in Bitcoin Core 29, the label of an address to receive at goes to the wallet that has the address; others are in all.
    fn divide_labels(&self, plan: &Plan, sides: [&mut Contents<'_>; 2], moved: &mut Moved) -> Result<()> {
        let mut sides = sides;
        for entry in self.t.labels.iter(self.txn)? {
            let (key, text) = entry?;
            let text = String::from_utf8_lossy(text).into_owned();
            let row: Option<ScriptRow> = get(self.t.scripts, self.txn, key)?;
            let entered = self.t.address_book.get(self.txn, key)?.map(|script| ScriptBuf::from_bytes(script.to_vec()));
            let watched = self.t.imported_watch.get(self.txn, key)?.is_some();
            let receives = entered.is_none() || watched;
            let stays = row.as_ref().is_some_and(|row| !row.owners.is_empty());
            // Of others' addresses that an older version has entered nothing but the label is known.
            let Some(script) = row.map(|row| row.script).or(entered) else { continue };
            if !receives || stays || plan.main.scripts.contains(&script) {
                for side in &mut sides {
                    side.labels.push(Label { script: script.clone(), text: text.clone(), receives });
                }
            } else if let Some(side) = sides.iter_mut().find(|side| side.group.scripts.contains(&script)) {
                moved.labels.push(script.clone());
                side.labels.push(Label { script, text, receives });
            }
        }
        Ok(())
    }
}

impl Write<'_> {
    /// Fills a wallet that is being made.
    pub(super) fn take_over(
        &mut self,
        source: &Source<'_>,
        contents: &Contents<'_>,
        key: &EncryptionKey,
    ) -> Result<()> {
        let mut touched = Vec::new();
        for planned in &contents.group.descriptors {
            self.add_planned(planned, key, &mut touched)?;
            // As in bitcoind, each of its addresses is one to receive at.
            self.label_descriptor(&planned.descriptor, "")?;
        }
        for Label { script, text, receives } in &contents.labels {
            self.put_label(script, text, *receives)?;
        }
        for (number, txid) in contents.transactions.iter().enumerate() {
            self.check_chunk(number)?;
            self.copy_transaction(source, txid)?;
        }
        for coin in &contents.locked {
            self.lock_coin((*coin, true))?;
        }
        if let Some(rescan) = &contents.rescan {
            put(self.t.meta, &mut self.txn, b"rescan", rescan)?;
        }
        self.note_backup_needed()?;
        // Nobody is told: the wallet is not loaded.
        self.changed.clear();
        Ok(())
    }

    /// Copies a transaction with its state, times and texts.
    fn copy_transaction(&mut self, source: &Source<'_>, txid: &Txid) -> Result<()> {
        let (row, raw) = (source.t.transaction(source.txn, txid)?, source.t.serialised(source.txn, txid)?);
        let (Some(row), Some(raw)) = (row, raw) else { return Err(WalletError::damaged(0)) };
        let transaction: Transaction = deserialize(raw).map_err(|_| WalletError::damaged(raw.len()))?;
        let known = transaction.output.iter().map(|output| self.t.script(&self.txn, &output.script_pubkey));
        let known = known.collect::<Result<Vec<_>>>()?;
        self.insert(&transaction, *txid, row.state, &known, Met::Now(row.time_received))?;
        let copied = self.t.transaction(&self.txn, txid)?.ok_or(WalletError::damaged(0))?;
        self.meta.birth_time = self.meta.birth_time.min(row.time);
        self.put_row(&WalletTransaction { time: row.time, metadata: row.metadata, ..copied })
    }
}
