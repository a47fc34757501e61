//! Small changes of stored data: avoid_reuse, texts of transactions, abandontransaction.

use bitcoin::Txid;
use outrigger_service::wallet::{MAX_TEXT_LEN, TxState, check_length};
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
        Ok(self.write(|write| {
            let row = write.t.transaction(write.reads(), &txid)?.ok_or_else(unknown_transaction)?;
            if !matches!(row.state, TxState::Inactive | TxState::Abandoned) {
                return Err(ServiceError::new(ErrorKind::Refused, "Transaction not eligible for abandonment").into());
            }
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

pub fn unknown_transaction() -> ServiceError {
    ServiceError::new(ErrorKind::NotFound, "Invalid or non-wallet transaction id")
}
