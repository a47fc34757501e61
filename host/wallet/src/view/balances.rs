//! The sums of the wallet's coins, and which scripts it has spent from.

use std::sync::Arc;

use bitcoin::ScriptBuf;
use outrigger_service::Result as ServiceResult;
use outrigger_service::wallet::{Balances, BalancesQuery, TxState};

use super::WalletView;
use crate::error::Result;
use crate::sums::Sums;

impl WalletView {
    /// The sums of the wallet's coins.
    ///
    /// # Errors
    /// `Storage`.
    pub fn balances(&self, query: &BalancesQuery) -> ServiceResult<Balances> {
        Ok(self.read_balances(query)?)
    }

    /// Whether a transaction of the wallet has spent an output of each of these scripts, in their order.
    ///
    /// # Errors
    /// `Storage`.
    pub fn spent_from(&self, scripts: &[ScriptBuf]) -> ServiceResult<Vec<bool>> {
        let is_spent = |script: &ScriptBuf| {
            let row = self.t().script(&self.txn, script)?;
            Ok(row.is_some_and(|row| row.spent_from))
        };
        Ok(scripts.iter().map(is_spent).collect::<Result<_>>()?)
    }

    /// Compares the sums that are kept with the coins.
    #[cfg(test)]
    pub fn check_sums(&self) {
        let kept = self.wallet.sums.of(self.txn.id()).unwrap();
        assert_eq!(*kept, Sums::read(self.t(), &self.txn).unwrap());
    }

    fn read_balances(&self, query: &BalancesQuery) -> Result<Balances> {
        let number = self.txn.id();
        let sums = match self.wallet.sums.of(number) {
            Some(sums) => sums,
            None => {
                let sums = Arc::new(Sums::read(self.t(), &self.txn)?);
                self.wallet.sums.keep(number, &sums);
                sums
            }
        };
        let mut trust = self.trust();
        sums.balances(query, self.synced.height, |txid| trust.trusted(txid, &TxState::InMempool, true))
    }
}
