//! The wallet's coins, read in batches.

use bitcoin::Txid;
use bitcoin::hashes::Hash;
use outrigger_service::wallet::{CoinBatch, Ownership, WalletCoin};
use outrigger_service::wire::{Blob, from_bytes};

use super::{MAX_BATCH, Page, WalletView, check_place, page};
use crate::error::Result;
use crate::store::{CoinRow, outpoint_from};

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
}
