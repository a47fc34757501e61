//! Balances, and scripts that were spent from.

use std::collections::BTreeSet;

use bitcoin::{OutPoint, ScriptBuf, Txid};
use outrigger_service::Result as ServiceResult;
use outrigger_service::wallet::{Balances, BalancesQuery, Ownership, TxState};

use super::WalletView;
use crate::error::Result;
use crate::store::CoinRow;
use crate::sums::Sums;

impl WalletView {
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
