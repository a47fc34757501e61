//! The wtxids of transactions with other witnesses (`alternate_wtxids`).

use std::collections::HashMap;

use bitcoin::{Txid, Wtxid};
use outrigger_sdk::service::ServiceError;

use crate::entry::WalletTx;
use outrigger_sdk::Call;

/// The alternate wtxids of the current batch.
pub struct AlternateWtxids<'q> {
    call: &'q Call<'q>,
    known: HashMap<Txid, Vec<Wtxid>>,
}

impl<'q> AlternateWtxids<'q> {
    pub fn new(call: &'q Call<'q>) -> Self {
        Self { call, known: HashMap::new() }
    }

    /// The wtxids of a transaction's other witnesses. One request covers all transactions of the batch.
    pub fn of(&mut self, tx: &WalletTx<'_>) -> Result<&[Wtxid], ServiceError> {
        let txid = tx.transaction.txid;
        if !self.known.contains_key(&txid) {
            self.known.clear();
            let rows = tx.batch.rows.into_iter();
            let txids = rows.map(|row| Ok(row.open()?.0.txid)).collect::<Result<Vec<Txid>, ServiceError>>()?;
            let wtxids = self.call.host.wallet.alternate_wtxids(self.call.scope, txids.clone())?;
            self.known.extend(txids.into_iter().zip(wtxids));
        }
        Ok(self.known.get(&txid).map(Vec::as_slice).unwrap_or_default())
    }
}
