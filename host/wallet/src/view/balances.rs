//! Balances, and scripts that were spent from.

use bitcoin::ScriptBuf;
use outrigger_service::Result as ServiceResult;
use outrigger_service::wallet::{Balances, BalancesQuery, TxState};

use super::WalletView;
use crate::error::Result;

impl WalletView {
    pub fn balances(&self, query: &BalancesQuery) -> ServiceResult<Balances> {
        Ok(self.read_balances(query)?)
    }

    pub fn spent_from(&self, scripts: &[ScriptBuf]) -> ServiceResult<Vec<bool>> {
        let is_spent = |script: &ScriptBuf| {
            let row = self.t().script(&self.txn, script)?;
            Ok(row.is_some_and(|row| row.spent_from))
        };
        Ok(scripts.iter().map(is_spent).collect::<Result<_>>()?)
    }

    /// Checks the cached sums and labels against the tables.
    #[cfg(test)]
    pub fn check_kept(&self) {
        use crate::latest::Derived;
        let (wallet, t, txn) = (&self.wallet, self.t(), &self.txn);
        assert_eq!(*wallet.sums.of(txn.id()).unwrap(), crate::sums::Sums::read(t, txn).unwrap());
        assert_eq!(*wallet.labels.at(t, txn).unwrap(), crate::labels::Labels::read(t, txn).unwrap());
    }

    fn read_balances(&self, query: &BalancesQuery) -> Result<Balances> {
        let sums = self.wallet.sums.at(self.t(), &self.txn)?;
        let mut trust = self.trust();
        sums.balances(query, self.synced.height, |txid| trust.trusted(txid, &TxState::InMempool, true))
    }
}
