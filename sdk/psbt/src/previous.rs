//! The previous transactions of a PSBT's inputs.

use std::ops::Deref;
use std::sync::Arc;

use bitcoin::hashes::Hash;
use bitcoin::{OutPoint, Transaction, TxIn, TxOut, Txid, Witness};
use outrigger_standard::transaction_to_bytes;

/// The transaction that created an input's coin, with its txid and bytes cached. Clones share it, since a PSBT that
/// spends a thousand outputs of one transaction contains it in each input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PreviousTransaction(Arc<Parts>);

#[derive(PartialEq, Eq, Debug)]
struct Parts {
    transaction: Transaction,
    txid: Txid,
    bytes: Vec<u8>,
}

impl PreviousTransaction {
    /// Wraps a transaction with or without witnesses.
    pub fn new(transaction: Transaction) -> Self {
        let bytes = without_witness(&transaction);
        let txid = Txid::hash(&bytes);
        Self(Arc::new(Parts { transaction, txid, bytes }))
    }

    /// The output at this outpoint; `None` if this transaction does not have it.
    pub fn output(&self, outpoint: OutPoint) -> Option<&TxOut> {
        let output = self.0.transaction.output.get(usize::try_from(outpoint.vout).ok()?)?;
        (self.0.txid == outpoint.txid).then_some(output)
    }

    /// The txid.
    pub fn txid(&self) -> Txid {
        self.0.txid
    }

    /// The bytes without witnesses, as in a PSBT.
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl Deref for PreviousTransaction {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        &self.0.transaction
    }
}

pub(super) fn without_witness(transaction: &Transaction) -> Vec<u8> {
    if transaction.input.iter().all(|input| input.witness.is_empty()) {
        return transaction_to_bytes(transaction);
    }
    let bare = |input: &TxIn| TxIn { witness: Witness::new(), ..input.clone() };
    transaction_to_bytes(&Transaction { input: transaction.input.iter().map(bare).collect(), ..transaction.clone() })
}
