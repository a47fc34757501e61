//! Where a transaction stands, and what follows from a change of it: its place in the history, its coins, the coins
//! that it spends, its descendants.

use std::collections::BTreeSet;

use bitcoin::hashes::Hash;
use bitcoin::{BlockHash, OutPoint, Txid};
use outrigger_service::wallet::{Ownership, TxState, WalletTransaction};

use crate::error::Result;
use crate::store::rows::CoinRow;
use crate::store::tables::{OF_MEMPOOL, OF_WALLET, conflict_key, outpoint_key, put};
use crate::write::Write;

/// Whether a transaction in this state counts: it is confirmed, or may yet be.
fn counts(state: &TxState) -> bool {
    matches!(state, TxState::Confirmed { .. } | TxState::InMempool | TxState::Inactive)
}

impl Write<'_> {
    /// Moves a stored transaction to `state`.
    pub fn set_state(&mut self, mut row: WalletTransaction, state: TxState) -> Result<()> {
        if row.state == state {
            return Ok(());
        }
        let (table, key) = self.history_place(&row);
        // After a reorganisation the place may have been taken by the transaction that is there now.
        if table.get(&self.txn, &key)? == Some(row.order_position.to_be_bytes().as_slice()) {
            table.delete(&mut self.txn, &key)?;
        }
        row.state = state;
        self.put_history(&row)?;
        self.put_transaction(&row)
    }

    /// Brings the coins that a transaction makes and those that it spends up to date.
    pub fn refresh_coins(&mut self, row: &WalletTransaction) -> Result<()> {
        for (vout, output) in (0_u32..).zip(&row.outputs) {
            if output.ownership != Ownership::None {
                self.refresh_coin(&OutPoint { txid: row.txid, vout }, Some(row))?;
            }
        }
        for input in &row.inputs {
            let parent = self.t.transaction(&self.txn, &input.txid)?;
            self.refresh_coin(input, parent.as_ref())?;
        }
        Ok(())
    }

    fn refresh_coin(&mut self, outpoint: &OutPoint, parent: Option<&WalletTransaction>) -> Result<()> {
        let key = outpoint_key(outpoint);
        match parent.and_then(|parent| parent.output(outpoint.vout).map(|output| (parent, output))) {
            Some((parent, output)) if self.is_coin(outpoint, parent, output.ownership)? => {
                let coin = CoinRow {
                    value: output.value,
                    script: output.script.clone(),
                    state: parent.state,
                    coinbase: parent.coinbase,
                    ownership: output.ownership,
                    change: output.change,
                    label: output.label.clone(),
                    from_us: parent.is_from_us(),
                };
                self.wallet.follow_coin(outpoint);
                put(self.t.coins, &mut self.txn, &key, &coin)
            }
            _ => {
                self.t.coins.delete(&mut self.txn, &key)?;
                Ok(())
            }
        }
    }

    fn is_coin(&self, outpoint: &OutPoint, parent: &WalletTransaction, ownership: Ownership) -> Result<bool> {
        let orphaned = parent.coinbase && !matches!(parent.state, TxState::Confirmed { .. });
        if ownership == Ownership::None || orphaned || !counts(&parent.state) {
            return Ok(false);
        }
        if self.t.is_mempool_conflicted(&self.txn, &parent.txid)? {
            return Ok(false);
        }
        Ok(!self.is_spent(outpoint)?)
    }

    /// Whether a transaction of the wallet that counts spends an outpoint.
    pub fn is_spent(&self, outpoint: &OutPoint) -> Result<bool> {
        self.is_spent_but_by(outpoint, None)
    }

    /// The same, where one transaction does not matter.
    pub fn is_spent_but_by(&self, outpoint: &OutPoint, other: Option<Txid>) -> Result<bool> {
        for spender in self.t.spenders(&self.txn, outpoint)?.into_iter().filter(|spender| Some(*spender) != other) {
            let counts = self.t.transaction(&self.txn, &spender)?.is_some_and(|row| counts(&row.state));
            if counts && !self.t.is_mempool_conflicted(&self.txn, &spender)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A transaction that is in the mempool spends these: the wallet's others that spend one of them, and what builds on
    /// those, conflict with it as long as it is there. Their coins are none, and what they spend is free.
    pub fn note_mempool_conflicts(&mut self, txid: Txid, inputs: impl IntoIterator<Item = OutPoint>) -> Result<()> {
        let mut pending = Vec::new();
        for input in inputs {
            pending.extend(self.t.spenders(&self.txn, &input)?.into_iter().filter(|spender| *spender != txid));
        }
        let mut fresh = Vec::new();
        while let Some(other) = pending.pop() {
            let key = [conflict_key(OF_WALLET, &other).as_slice(), txid.as_byte_array()].concat();
            if self.t.mempool_conflicts.get(&self.txn, &key)?.is_some() {
                continue;
            }
            self.wallet.follow_conflict(&txid);
            self.t.mempool_conflicts.put(&mut self.txn, &key, &[])?;
            let key = [conflict_key(OF_MEMPOOL, &txid).as_slice(), other.as_byte_array()].concat();
            self.t.mempool_conflicts.put(&mut self.txn, &key, &[])?;
            pending.extend(self.children(other)?);
            fresh.push(other);
        }
        self.refresh_all(fresh)
    }

    /// A transaction is in the mempool no more: what conflicted with it there does not.
    pub fn forget_mempool_conflicts(&mut self, txid: Txid) -> Result<()> {
        let others = self.t.mempool_conflicts_of(&self.txn, OF_MEMPOOL, &txid)?;
        for other in &others {
            self.forget_conflict(other, &txid)?;
        }
        self.refresh_all(others)
    }

    fn forget_conflict(&mut self, ours: &Txid, in_mempool: &Txid) -> Result<()> {
        for (side, one, other) in [(OF_WALLET, ours, in_mempool), (OF_MEMPOOL, in_mempool, ours)] {
            let key = [conflict_key(side, one).as_slice(), other.as_byte_array()].concat();
            self.t.mempool_conflicts.delete(&mut self.txn, &key)?;
        }
        Ok(())
    }

    /// Removes a transaction that nothing builds on, as if it had never been stored.
    pub fn remove(&mut self, row: WalletTransaction) -> Result<()> {
        for other in self.t.mempool_conflicts_of(&self.txn, OF_WALLET, &row.txid)? {
            self.forget_conflict(&row.txid, &other)?;
        }
        self.remove_from_index(&row)?;
        // What it pays to us is no coin, and what it spends is free.
        self.refresh_coins(&WalletTransaction { state: TxState::Abandoned, ..row })
    }

    fn refresh_all(&mut self, txids: Vec<Txid>) -> Result<()> {
        for txid in txids {
            if let Some(row) = self.t.transaction(&self.txn, &txid)? {
                self.refresh_coins(&row)?;
            }
        }
        Ok(())
    }

    /// What a disconnected block confirmed is unconfirmed. Its coinbase can be in no other block: it is given up, and with
    /// it all that builds on it, whether or not that is in the mempool still.
    pub fn mark_disconnected(&mut self, row: WalletTransaction) -> Result<()> {
        if !row.coinbase {
            return self.set_state(row, TxState::Inactive);
        }
        let mut pending = vec![row.txid];
        let mut seen = BTreeSet::new();
        while let Some(txid) = pending.pop() {
            let Some(row) = self.t.transaction(&self.txn, &txid)?.filter(|_| seen.insert(txid)) else { continue };
            pending.extend(self.children(txid)?);
            self.set_state(row, TxState::Abandoned)?;
        }
        Ok(())
    }

    /// The wallet's transactions that spend outputs of `txid`, themselves left out.
    pub fn children(&self, txid: Txid) -> Result<Vec<Txid>> {
        let Some(row) = self.t.transaction(&self.txn, &txid)? else { return Ok(Vec::new()) };
        let mut children = Vec::new();
        for vout in (0_u32..).take(row.outputs.len()) {
            children.extend(self.t.spenders(&self.txn, &OutPoint { txid, vout })?);
        }
        children.sort_unstable();
        children.dedup();
        Ok(children)
    }

    /// A block made `txid` impossible, and with it all that builds on it. A conflict that lies deeper stays the one
    /// that is counted from.
    pub fn mark_conflicted(&mut self, txid: Txid, block: BlockHash, height: u32) -> Result<()> {
        let mut pending = vec![txid];
        while let Some(txid) = pending.pop() {
            let Some(row) = self.t.transaction(&self.txn, &txid)? else { continue };
            let deeper = match row.state {
                TxState::Confirmed { .. } => true,
                TxState::Conflicted { height: other, .. } => other <= height,
                _ => false,
            };
            if !deeper {
                pending.extend(self.children(txid)?);
                self.set_state(row, TxState::Conflicted { block, height })?;
            }
        }
        Ok(())
    }

    /// Gives up `txid` and what builds on it.
    pub fn mark_abandoned(&mut self, txid: Txid) -> Result<()> {
        let mut pending = vec![txid];
        while let Some(txid) = pending.pop() {
            let Some(row) = self.t.transaction(&self.txn, &txid)? else { continue };
            if row.state == TxState::Inactive {
                pending.extend(self.children(txid)?);
                self.set_state(row, TxState::Abandoned)?;
            }
        }
        Ok(())
    }
}
