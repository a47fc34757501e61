//! Changes of a transaction's state, and their effects on its place in the history, its coins, the coins that it
//! spends, and its descendants. Every change of the table of coins updates the sums of the coins, too.

use std::collections::{BTreeSet, HashMap};

use bitcoin::hashes::Hash;
use bitcoin::transaction::Version;
use bitcoin::{BlockHash, OutPoint, Script, Txid};
use outrigger_service::wallet::{Ownership, TxState, WalletTransaction};

use crate::error::Result;
use crate::live::Wallet;
use crate::ownership::outputs_key;
use crate::store::{
    CoinRow, OF_MEMPOOL, OF_WALLET, Reading, ScriptRow, conflict_key, get, outpoint_from, outpoint_key, script_key,
};
use crate::write::Write;

/// The version of TRUC transactions. An unconfirmed one has at most one unconfirmed parent or child (BIP 431).
const TRUC: Version = Version(3);

/// Decides whether a transaction of the wallet counts: it is confirmed, in the mempool or inactive, and conflicts with
/// no mempool transaction. Each transaction is looked up once per change, however many of its outputs are involved.
#[derive(Default)]
pub struct Counting(HashMap<Txid, bool>);

impl Counting {
    /// Records a transaction by its state, without a lookup.
    fn note(&mut self, write: &Write<'_>, txid: &Txid, state: &TxState) -> Result<()> {
        let may_count = matches!(state, TxState::Confirmed { .. } | TxState::InMempool | TxState::Inactive);
        let counts = may_count && !write.t.is_mempool_conflicted(write.reads(), txid)?;
        self.0.insert(*txid, counts);
        Ok(())
    }

    /// Excludes a transaction in any state.
    pub fn leave_out(&mut self, txid: Txid) {
        self.0.insert(txid, false);
    }

    fn counts(&mut self, write: &Write<'_>, txid: &Txid) -> Result<bool> {
        if let Some(counts) = self.0.get(txid) {
            return Ok(*counts);
        }
        match write.t.transaction_view(write.reads(), txid)? {
            Some(row) => self.note(write, txid, &row.state)?,
            None => self.leave_out(*txid),
        }
        Ok(self.0.get(txid).is_some_and(|counts| *counts))
    }
}

/// The outpoints that no other transaction can spend while this one is in the mempool: its inputs. For version 3 also all
/// outputs of its unconfirmed parents in the wallet, because a parent has at most one child (BIP 431).
pub fn contended(
    wallet: &Wallet,
    txn: &Reading<'_>,
    version: Version,
    inputs: impl IntoIterator<Item = OutPoint>,
) -> Result<Vec<OutPoint>> {
    let mut contended: Vec<OutPoint> = inputs.into_iter().collect();
    if version != TRUC || !wallet.shared.rules().sibling_conflicts {
        return Ok(contended);
    }
    let parents: BTreeSet<Txid> = contended.iter().map(|input| input.txid).collect();
    for txid in parents {
        let parent = wallet.store.tables.transaction_view(txn, &txid)?;
        if let Some(parent) = parent.filter(|parent| !matches!(parent.state, TxState::Confirmed { .. })) {
            contended.extend((0_u32..).zip(parent.outputs.iter()).map(|(vout, _)| OutPoint { txid, vout }));
        }
    }
    Ok(contended)
}

impl Write<'_> {
    pub fn set_state(&mut self, mut row: WalletTransaction, state: TxState) -> Result<()> {
        if row.state == state {
            return Ok(());
        }
        self.note_standing(&row)?;
        let (table, key) = self.history_place(&row);
        // After a reorganisation, another transaction may have taken the key.
        if table.get(self.reads(), &key)? == Some(row.order_position.to_be_bytes().as_slice()) {
            self.delete(table, &key)?;
        }
        if matches!(row.state, TxState::Confirmed { .. }) && !matches!(state, TxState::Confirmed { .. }) {
            self.show_preferred_witness(&mut row)?;
        }
        let before = std::mem::replace(&mut row.state, state);
        if state == TxState::Inactive {
            let mut outgoing = self.wallet.outgoing.lock();
            let answer = outgoing.idle.remove(&row.txid).flatten();
            outgoing.note_idle(row.txid, answer);
            if before == TxState::InMempool {
                outgoing.evicted.insert(row.txid);
            }
        } else if before == TxState::Inactive {
            self.wallet.outgoing.lock().evicted.remove(&row.txid);
        }
        self.put_history(&row)?;
        self.put_transaction(&row)
    }

    /// Updates the coins that a transaction creates, and the coins that it spends.
    pub fn refresh_coins(&mut self, row: &WalletTransaction) -> Result<()> {
        let mut counting = Counting::default();
        counting.note(self, &row.txid, &row.state)?;
        let owned = row.outputs.iter().enumerate().filter(|(_, output)| output.ownership != Ownership::None);
        self.refresh_outputs(row, owned.map(|(vout, _)| vout), &mut counting)?;
        let mut inputs = row.inputs.clone();
        inputs.sort_unstable();
        for inputs in inputs.chunk_by(|one, other| one.txid == other.txid) {
            let Some(first) = inputs.first() else { continue };
            match self.t.transaction(self.reads(), &first.txid)? {
                Some(parent) => {
                    counting.note(self, &parent.txid, &parent.state)?;
                    let spent = inputs.iter().map(|input| input.vout as usize);
                    self.refresh_outputs(&parent, spent, &mut counting)?;
                }
                None => inputs.iter().try_for_each(|input| self.delete_coin(input))?,
            }
        }
        Ok(())
    }

    fn refresh_outputs(
        &mut self,
        row: &WalletTransaction,
        outputs: impl Iterator<Item = usize>,
        counting: &mut Counting,
    ) -> Result<()> {
        let orphaned = row.coinbase && !matches!(row.state, TxState::Confirmed { .. });
        let makes_coins = !orphaned && counting.counts(self, &row.txid)?;
        for at in outputs {
            let outpoint = OutPoint { txid: row.txid, vout: u32::try_from(at).unwrap_or(u32::MAX) };
            let Some(output) = row.outputs.get(at).filter(|output| output.ownership != Ownership::None) else {
                self.delete_coin(&outpoint)?;
                continue;
            };
            let spenders = self.t.spenders(self.reads(), &outpoint)?;
            let reused = self.mark_spent_from(&output.script, !spenders.is_empty())?;
            if !makes_coins || self.any_counts(&spenders, counting)? {
                self.delete_coin(&outpoint)?;
                continue;
            }
            self.put_coin(&outpoint, &CoinRow::of(row, output, reused))?;
        }
        Ok(())
    }

    pub fn put_coin(&mut self, outpoint: &OutPoint, coin: &CoinRow) -> Result<()> {
        let key = outpoint_key(outpoint);
        let former: Option<CoinRow> = get(self.t.coins, self.reads(), &key)?;
        if former.as_ref() == Some(coin) {
            return Ok(());
        }
        if let Some(former) = former {
            self.sums.note(&outpoint.txid, &former, -1);
        }
        self.sums.note(&outpoint.txid, coin, 1);
        self.wallet.follow_coin(outpoint);
        self.store_row(self.t.coins, &key, coin)
    }

    pub fn delete_coin(&mut self, outpoint: &OutPoint) -> Result<()> {
        let key = outpoint_key(outpoint);
        if let Some(coin) = get(self.t.coins, self.reads(), &key)? {
            self.sums.note(&outpoint.txid, &coin, -1);
            self.delete(self.t.coins, &key)?;
        }
        Ok(())
    }

    /// Whether a transaction of the wallet has spent from a script. If one does `now`, marks the script and its coins as reused.
    pub fn mark_spent_from(&mut self, script: &Script, now: bool) -> Result<bool> {
        let key = script_key(script);
        let row: Option<ScriptRow> = get(self.t.scripts, self.reads(), &key)?;
        let row = match row {
            Some(row) if now && !row.spent_from => row,
            other => return Ok(other.is_some_and(|row| row.spent_from)),
        };
        self.store_row(self.t.scripts, &key, &ScriptRow { spent_from: true, ..row })?;
        let mut outputs = Vec::new();
        for entry in self.t.outputs.prefix_iter(self.reads(), &outputs_key(script))? {
            outputs.push(outpoint_from(entry?.0.get(32..).unwrap_or_default())?);
        }
        for outpoint in outputs {
            let coin: Option<CoinRow> = get(self.t.coins, self.reads(), &outpoint_key(&outpoint))?;
            if let Some(coin) = coin.filter(|coin| coin.script.as_script() == script) {
                self.put_coin(&outpoint, &CoinRow { reused: true, ..coin })?;
            }
        }
        Ok(true)
    }

    /// Whether a transaction of the wallet that counts spends an outpoint.
    pub fn is_spent(&self, outpoint: &OutPoint, counting: &mut Counting) -> Result<bool> {
        self.any_counts(&self.t.spenders(self.reads(), outpoint)?, counting)
    }

    fn any_counts(&self, spenders: &[Txid], counting: &mut Counting) -> Result<bool> {
        for spender in spenders {
            if counting.counts(self, spender)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub fn spenders_of(&self, outpoints: impl Iterator<Item = OutPoint>) -> Result<BTreeSet<Txid>> {
        let mut spenders = BTreeSet::new();
        for outpoint in outpoints {
            spenders.extend(self.t.spenders(self.reads(), &outpoint)?);
        }
        Ok(spenders)
    }

    /// Records the conflicts of a mempool transaction: with the wallet's other spenders of the outpoints that it contends for
    /// ([`contended`]), and with their descendants. Their outputs are then not coins, and their inputs count as unspent.
    pub fn note_mempool_conflicts(
        &mut self,
        txid: Txid,
        version: Version,
        inputs: impl IntoIterator<Item = OutPoint>,
    ) -> Result<()> {
        let contended = contended(self.wallet, self.reads(), version, inputs)?;
        let mut pending: Vec<Txid> = self.spenders_of(contended.into_iter())?.into_iter().collect();
        pending.retain(|spender| *spender != txid);
        let mut fresh = Vec::new();
        while let Some(other) = pending.pop() {
            let key = [conflict_key(OF_WALLET, &other).as_slice(), txid.as_byte_array()].concat();
            if self.t.mempool_conflicts.get(self.reads(), &key)?.is_some() {
                continue;
            }
            let row = self.t.transaction(self.reads(), &other)?;
            row.iter().try_for_each(|row| self.note_standing(row))?;
            self.wallet.follow_conflict(&txid);
            self.put(self.t.mempool_conflicts, &key, &[])?;
            let key = [conflict_key(OF_MEMPOOL, &txid).as_slice(), other.as_byte_array()].concat();
            self.put(self.t.mempool_conflicts, &key, &[])?;
            if let Some(row) = row {
                pending.extend(self.children(&row)?);
            }
            fresh.push(other);
        }
        self.refresh_all(fresh)
    }

    /// Ends the conflicts of a transaction that has left the mempool.
    pub fn forget_mempool_conflicts(&mut self, txid: Txid) -> Result<()> {
        let others = self.t.mempool_conflicts_of(self.reads(), OF_MEMPOOL, &txid)?;
        for other in &others {
            self.forget_conflict(other, &txid)?;
        }
        self.refresh_all(others)
    }

    fn forget_conflict(&mut self, ours: &Txid, in_mempool: &Txid) -> Result<()> {
        let row = self.t.transaction(self.reads(), ours)?;
        row.iter().try_for_each(|row| self.note_standing(row))?;
        for (side, one, other) in [(OF_WALLET, ours, in_mempool), (OF_MEMPOOL, in_mempool, ours)] {
            let key = [conflict_key(side, one).as_slice(), other.as_byte_array()].concat();
            self.delete(self.t.mempool_conflicts, &key)?;
        }
        Ok(())
    }

    /// Removes a transaction without children from all tables.
    pub fn remove(&mut self, row: WalletTransaction) -> Result<()> {
        self.note_standing(&row)?;
        for other in self.t.mempool_conflicts_of(self.reads(), OF_WALLET, &row.txid)? {
            self.forget_conflict(&row.txid, &other)?;
        }
        self.remove_from_index(&row)?;
        self.forget_witnesses(&row.txid)?;
        // As if abandoned: its outputs are not coins, and its inputs are unspent.
        self.refresh_coins(&WalletTransaction { state: TxState::Abandoned, ..row })
    }

    fn refresh_all(&mut self, txids: Vec<Txid>) -> Result<()> {
        for txid in txids {
            if let Some(row) = self.t.transaction(self.reads(), &txid)? {
                self.refresh_coins(&row)?;
            }
        }
        Ok(())
    }

    /// Makes a transaction inactive after its block was disconnected. A coinbase cannot be in another block, so it is
    /// abandoned with all its descendants, even if they are still in the mempool.
    pub fn mark_disconnected(&mut self, row: WalletTransaction) -> Result<()> {
        if !row.coinbase {
            return self.set_state(row, TxState::Inactive);
        }
        self.move_with_descendants(row.txid, TxState::Abandoned, |_| true)
    }

    /// Moves `txid` and its descendants to a state. A transaction whose state is not `movable` stays, and the walk skips
    /// its descendants.
    fn move_with_descendants(&mut self, txid: Txid, state: TxState, movable: impl Fn(&TxState) -> bool) -> Result<()> {
        let (mut pending, mut seen) = (vec![txid], BTreeSet::new());
        while let Some(txid) = pending.pop() {
            if !seen.insert(txid) {
                continue;
            }
            let Some(row) = self.t.transaction(self.reads(), &txid)? else { continue };
            if movable(&row.state) {
                pending.extend(self.children(&row)?);
                self.set_state(row, state)?;
            }
        }
        Ok(())
    }

    pub fn children(&self, row: &WalletTransaction) -> Result<BTreeSet<Txid>> {
        self.spenders_of((0_u32..).take(row.outputs.len()).map(|vout| OutPoint { txid: row.txid, vout }))
    }

    /// Marks `txid` and its descendants as in conflict with a block. A conflict with a lower block takes precedence.
    pub fn mark_conflicted(&mut self, txid: Txid, block: BlockHash, height: u32) -> Result<()> {
        self.move_with_descendants(txid, TxState::Conflicted { block, height }, |state| match state {
            TxState::Confirmed { .. } => false,
            TxState::Conflicted { height: other, .. } => *other > height,
            _ => true,
        })
    }

    pub fn mark_abandoned(&mut self, txid: Txid) -> Result<()> {
        self.move_with_descendants(txid, TxState::Abandoned, |state| *state == TxState::Inactive)
    }
}
