//! Whether transactions of the mempool can be replaced (BIP 125): one that does not signal it may have an ancestor that does, which
//! only the node knows.

use std::collections::HashMap;

use bitcoin::Txid;
use outrigger_sdk::service::wallet::{
    HistoryBatchView, Replaceable, TxState, UnsettledStateView, WalletTransactionView,
};

use crate::CallContext;
use crate::entry::WalletTx;
use crate::error::HistoryError;

/// What one call has asked the node so far.
pub struct Replaceability<'q> {
    context: &'q CallContext<'q>,
    known: HashMap<Txid, Replaceable>,
}

impl<'q> Replaceability<'q> {
    /// Nothing asked yet.
    pub fn new(context: &'q CallContext<'q>) -> Self {
        Self { context, known: HashMap::new() }
    }

    /// Whether a transaction can be replaced. The node is asked for all transactions of its batch together.
    pub fn of(&mut self, tx: &WalletTx<'_>) -> Result<Replaceable, HistoryError> {
        if !is_open(&tx.transaction, &tx.unsettled) {
            return Ok(tx.unsettled.replaceable);
        }
        let txid = tx.transaction.txid;
        if !self.known.contains_key(&txid) {
            self.learn(tx.batch)?;
        }
        Ok(self.known.get(&txid).copied().unwrap_or(Replaceable::Unknown))
    }

    fn learn(&mut self, batch: HistoryBatchView<'_>) -> Result<(), HistoryError> {
        let mut open = Vec::new();
        for row in batch.rows {
            let (transaction, unsettled) = row.open()?;
            if is_open(&transaction, &unsettled) {
                open.push(transaction.txid);
            }
        }
        let answers = self.context.host.wallet.replaceable(self.context.scope, open.clone())?;
        self.known.extend(open.into_iter().zip(answers));
        Ok(())
    }
}

/// Whether only the node knows it.
fn is_open(transaction: &WalletTransactionView<'_>, unsettled: &UnsettledStateView<'_>) -> bool {
    transaction.state == TxState::InMempool && unsettled.replaceable == Replaceable::Unknown
}
