//! Whether transactions of the mempool can be replaced (BIP 125). A transaction without the signal may have an ancestor with
//! the signal, and only the node knows the ancestors.

use std::collections::HashMap;

use bitcoin::Txid;
use outrigger_sdk::service::ServiceError;
use outrigger_sdk::service::wallet::{
    HistoryBatchView, Replaceable, TxState, UnsettledStateView, WalletTransactionView,
};

use crate::entry::WalletTx;
use outrigger_sdk::Call;

/// The node's answers during one call.
pub struct Replaceability<'q> {
    call: &'q Call<'q>,
    known: HashMap<Txid, Replaceable>,
}

impl<'q> Replaceability<'q> {
    pub fn new(call: &'q Call<'q>) -> Self {
        Self { call, known: HashMap::new() }
    }

    /// Whether a transaction can be replaced. One request to the node covers all transactions of the batch.
    pub fn of(&mut self, tx: &WalletTx<'_>) -> Result<Replaceable, ServiceError> {
        if !needs_node(&tx.transaction, &tx.unsettled) {
            return Ok(tx.unsettled.replaceable);
        }
        let txid = tx.transaction.txid;
        if !self.known.contains_key(&txid) {
            self.ask_node(tx.batch)?;
        }
        Ok(self.known.get(&txid).copied().unwrap_or(Replaceable::Unknown))
    }

    fn ask_node(&mut self, batch: HistoryBatchView<'_>) -> Result<(), ServiceError> {
        let mut txids = Vec::new();
        for row in batch.rows {
            let (transaction, unsettled) = row.open()?;
            if needs_node(&transaction, &unsettled) {
                txids.push(transaction.txid);
            }
        }
        let answers = self.call.host.wallet.replaceable(self.call.scope, txids.clone())?;
        self.known.extend(txids.into_iter().zip(answers));
        Ok(())
    }
}

fn needs_node(transaction: &WalletTransactionView<'_>, unsettled: &UnsettledStateView<'_>) -> bool {
    transaction.state == TxState::InMempool && unsettled.replaceable == Replaceable::Unknown
}
