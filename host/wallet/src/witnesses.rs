//! Several witnesses of one transaction. A txid does not commit to the witness. The wallet keeps every witness.
//! Results show the confirmed one; else, from release 32 on, the best by [`rank`], and before 32 the last one received.

use bitcoin::consensus::{deserialize, serialize};
use bitcoin::hashes::Hash;
use bitcoin::{Transaction, Txid, Weight, Wtxid};
use outrigger_service::wallet::{TxState, WalletTransaction};

use super::error::{Result, WalletError};
use super::store::witness_key;
use super::write::Write;

/// The order of preference in Bitcoin Core 32, best first: with a witness before without, then by weight.
fn rank(transaction: &Transaction) -> (bool, Weight) {
    let has_witness = transaction.input.iter().any(|input| !input.witness.is_empty());
    (!has_witness, transaction.weight())
}

fn key(txid: &Txid, wtxid: &Wtxid) -> Vec<u8> {
    [witness_key(txid).as_slice(), wtxid.as_byte_array()].concat()
}

fn decoded(raw: &[u8]) -> Result<Transaction> {
    deserialize(raw).map_err(|_| WalletError::damaged(raw.len()))
}

impl Write<'_> {
    /// Stores another witness of a transaction. `state` decides whether results show it.
    pub fn meet_witness(
        &mut self,
        transaction: &Transaction,
        wtxid: Wtxid,
        row: &mut WalletTransaction,
        state: &TxState,
    ) -> Result<()> {
        let chooses = self.wallet.shared.rules().alternate_wtxids && !matches!(state, TxState::Confirmed { .. });
        let shown = self.shown(&row.txid)?;
        if chooses && shown.is_some_and(|shown| rank(&shown) <= rank(transaction)) {
            return self.put(self.t.meta, &key(&row.txid, &wtxid), &serialize(transaction));
        }
        self.show_witness(row, wtxid, &serialize(transaction))
    }

    fn shown(&self, txid: &Txid) -> Result<Option<Transaction>> {
        self.t.serialised(self.reads(), txid)?.map(decoded).transpose()
    }

    /// Makes the best witness of an unconfirmed transaction the shown one (from release 32 on).
    pub fn show_preferred_witness(&mut self, row: &mut WalletTransaction) -> Result<()> {
        if !self.wallet.shared.rules().alternate_wtxids {
            return Ok(());
        }
        let mut known = Vec::new();
        for entry in self.t.meta.prefix_iter(self.reads(), &witness_key(&row.txid))? {
            known.push(decoded(entry?.1)?);
        }
        let shown = self.shown(&row.txid)?;
        let preferred = known.iter().min_by_key(|transaction| rank(transaction));
        match preferred.filter(|other| shown.is_none_or(|shown| rank(other) < rank(&shown))) {
            Some(transaction) => self.show_witness(row, transaction.compute_wtxid(), &serialize(transaction)),
            None => Ok(()),
        }
    }

    /// Makes a witness the shown one. The witness shown before becomes an alternate.
    fn show_witness(&mut self, row: &mut WalletTransaction, wtxid: Wtxid, raw: &[u8]) -> Result<()> {
        if let Some(former) = self.t.serialised(self.reads(), &row.txid)?.map(<[u8]>::to_vec) {
            self.put(self.t.meta, &key(&row.txid, &row.wtxid), &former)?;
        }
        self.delete(self.t.meta, &key(&row.txid, &wtxid))?;
        row.wtxid = wtxid;
        self.put(self.t.raw, &row.order_position.to_be_bytes(), raw)?;
        self.put_row(row)
    }

    /// Forgets the witnesses of a transaction that are not shown.
    pub fn forget_witnesses(&mut self, txid: &Txid) -> Result<()> {
        let wtxids = self.t.alternate_wtxids(self.reads(), txid)?;
        wtxids.iter().try_for_each(|wtxid| self.delete(self.t.meta, &key(txid, wtxid)).map(drop))
    }
}
