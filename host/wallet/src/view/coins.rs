//! The wallet's coins, read in batches, their balances, and scripts that were spent from.

use std::collections::BTreeSet;

use bitcoin::hashes::Hash;
use bitcoin::{OutPoint, ScriptBuf, Txid};
use outrigger_service::Result as ServiceResult;
use outrigger_service::wallet::{Balances, BalancesQuery, CoinBatch, Ownership, TxState, WalletCoin};
use outrigger_service::wire::{Blob, from_bytes};

use super::{MAX_BATCH, Page, WalletView, check_place, page};
use crate::error::Result;
use crate::store::{CoinRow, outpoint_from};
use crate::sums::Sums;

impl WalletView {
    pub fn coins(&self, after: Option<&[u8]>, limit: u32) -> Result<CoinBatch> {
        self.coin_batch(page(self.t().coins, &self.txn, after, limit.clamp(1, MAX_BATCH) as usize)?)
    }

    /// The coins of transactions in the mempool. The wallet's sums name these transactions, so this reads no other coin.
    pub fn mempool_coins(&self, after: Option<&[u8]>, limit: u32) -> Result<CoinBatch> {
        check_place(after)?;
        let limit = limit.clamp(1, MAX_BATCH) as usize;
        let after = after.unwrap_or_default();
        let sums = self.wallet.sums.at(self.t(), &self.txn)?;
        let mut rows = Vec::new();
        // A key begins with the transaction's id.
        let is_passed = |txid: &Txid| after.get(..32).is_some_and(|passed| txid.as_byte_array().as_slice() < passed);
        for txid in sums.mempool_txids().into_iter().skip_while(|txid| is_passed(txid)) {
            for entry in self.t().coins.prefix_iter(&self.txn, txid.as_byte_array())? {
                let (key, row) = entry?;
                if key > after {
                    if rows.len() == limit {
                        return self.coin_batch((rows, true));
                    }
                    rows.push((key.to_vec(), row.to_vec()));
                }
            }
        }
        self.coin_batch((rows, false))
    }

    fn coin_batch(&self, (rows, more): Page) -> Result<CoinBatch> {
        let next = more.then(|| rows.last().map(|(key, _)| Blob(key.clone()))).flatten();
        let (labels, mut trust) = (self.all_labels()?, self.trust());
        let mut coins = Vec::with_capacity(rows.len());
        for (key, row) in rows {
            let row: CoinRow = from_bytes(&row)?;
            let outpoint = outpoint_from(&key)?;
            let trusted = trust.trusted(&outpoint.txid, &row.state, row.from_us)?;
            let label = labels.get(&row.script).map(str::to_owned);
            coins.push(WalletCoin {
                outpoint,
                value: row.value,
                script: row.script,
                state: row.state,
                coinbase: row.coinbase,
                ownership: row.ownership,
                change: row.ownership != Ownership::None && label.is_none(),
                label,
                trusted,
                from_us: row.from_us,
            });
        }
        Ok(CoinBatch { coins, next })
    }

    pub fn balances(&self, query: &BalancesQuery) -> ServiceResult<Balances> {
        let sums = self.wallet.sums.at(self.t(), &self.txn)?;
        let mut trust = self.trust();
        Ok(sums.balances(query, self.synced.height, |txid| trust.trusted(txid, &TxState::InMempool, true))?)
    }

    pub fn spent_from(&self, scripts: &[ScriptBuf]) -> Result<Vec<bool>> {
        let is_spent = |script: &ScriptBuf| Ok(self.t().script(&self.txn, script)?.is_some_and(|row| row.spent_from));
        scripts.iter().map(is_spent).collect()
    }

    /// Checks the cached sums and labels against the tables.
    #[cfg(test)]
    pub fn check_kept(&self) {
        use crate::latest::Derived;
        let (wallet, t, txn) = (&self.wallet, self.t(), &self.txn);
        assert_eq!(*wallet.sums.of(txn.id()).unwrap(), Sums::read(t, txn).unwrap());
        assert_eq!(*wallet.labels.at(t, txn).unwrap(), crate::labels::Labels::read(t, txn).unwrap());
    }

    pub fn spent_outside_mempool(&self, query: &BalancesQuery) -> Result<Balances> {
        let (t, txn) = (self.t(), &*self.txn);
        let mut sums = Sums::default();
        let mut seen = BTreeSet::new();
        for entry in t.unconfirmed.iter(txn)? {
            let payment = t.transaction_at(txn, entry?.1)?;
            if payment.state != TxState::Inactive || t.is_mempool_conflicted(txn, &payment.txid)? {
                continue;
            }
            for outpoint in payment.inputs {
                if !seen.insert(outpoint) || self.is_spent_elsewhere(&outpoint, &payment.txid)? {
                    continue;
                }
                if let Some(coin) = self.spent_coin(&outpoint)? {
                    sums.note(&outpoint.txid, &coin, 1);
                }
            }
        }
        let mut trust = self.trust();
        sums.balances(query, self.synced.height, |txid| trust.trusted(txid, &TxState::InMempool, true))
    }

    /// Whether a transaction other than the payment, in the mempool or in a block, spends an output.
    fn is_spent_elsewhere(&self, outpoint: &OutPoint, payment: &Txid) -> Result<bool> {
        let (t, txn) = (self.t(), &*self.txn);
        for spender in t.spenders(txn, outpoint)?.into_iter().filter(|spender| spender != payment) {
            let state = t.transaction_view(txn, &spender)?.map(|spender| spender.state);
            if matches!(state, Some(TxState::InMempool | TxState::Confirmed { .. })) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn spent_coin(&self, outpoint: &OutPoint) -> Result<Option<CoinRow>> {
        let (t, txn) = (self.t(), &*self.txn);
        let Some(parent) = t.transaction(txn, &outpoint.txid)? else { return Ok(None) };
        let Some(output) = parent.output(outpoint.vout).filter(|output| output.ownership != Ownership::None) else {
            return Ok(None);
        };
        let reused = t.script(txn, &output.script)?.is_some_and(|row| row.spent_from);
        Ok(Some(CoinRow::of(&parent, output, reused)))
    }
}
