//! Small changes of stored data: avoid_reuse, texts of transactions, abandontransaction.

use bitcoin::Txid;
use outrigger_service::wallet::{MAX_TEXT_LEN, TxState, WalletTransaction, check_length};
use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};

use super::error::Result;
use super::live::Wallet;
use super::write::Write;

impl Wallet {
    /// setwalletflag.
    pub fn set_avoid_reuse(&self, avoid: bool) -> ServiceResult<()> {
        Ok(self.write(|write| {
            write.meta.avoid_reuse = avoid;
            Ok(())
        })?)
    }

    pub fn set_metadata(&self, txid: Txid, key: String, value: String) -> ServiceResult<()> {
        check_length(&key, &value, MAX_TEXT_LEN)?;
        Ok(self.write(|write| write.set_text(txid, key, value))?)
    }

    pub fn abandon(&self, txid: Txid) -> ServiceResult<()> {
        let check = |row: Option<WalletTransaction>| {
            let state = row.ok_or_else(unknown_transaction)?.state;
            let is_eligible = matches!(state, TxState::Inactive | TxState::Abandoned);
            if is_eligible { Ok(state) } else { Err(not_eligible()) }
        };
        let state = check(self.store.tables.transaction(&*self.store.read()?, &txid)?)?;
        // The node decides, since a transaction also counts as inactive while its mempool is unknown. Whoever abandons a
        // payment pays again.
        if state == TxState::Inactive && self.shared.node.mempool_entries(&[txid])?.iter().any(Option::is_some) {
            return Err(not_eligible());
        }
        Ok(self.write(|write| {
            check(write.t.transaction(write.reads(), &txid)?)?;
            write.mark_abandoned(txid)
        })?)
    }
}

impl Write<'_> {
    /// Sets a transaction's text `key`. An empty `value` removes it.
    pub fn set_text(&mut self, txid: Txid, key: String, value: String) -> Result<()> {
        let mut row = self.t.transaction(self.reads(), &txid)?.ok_or_else(unknown_transaction)?;
        row.metadata.retain(|(other, _)| *other != key);
        if !value.is_empty() {
            row.metadata.push((key, value));
            row.metadata.sort_unstable();
        }
        self.put_row(&row)
    }
}

fn not_eligible() -> ServiceError {
    ServiceError::new(ErrorKind::Refused, "Transaction not eligible for abandonment")
}

pub fn unknown_transaction() -> ServiceError {
    ServiceError::new(ErrorKind::NotFound, "Invalid or non-wallet transaction id")
}
