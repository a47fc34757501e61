//! The transactions whose outputs a PSBT spends.

use std::ops::Deref;
use std::sync::Arc;

use bitcoin::hashes::Hash;
use bitcoin::{OutPoint, Transaction, TxIn, TxOut, Txid, Witness};
use outrigger_standard::transaction_to_bytes;

/// A transaction whose output an input spends, with what is told of it again and again: a PSBT may spend a thousand outputs of
/// one transaction, and has it whole in every input. Clones share it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PreviousTransaction(Arc<Parts>);

#[derive(PartialEq, Eq, Debug)]
struct Parts {
    transaction: Transaction,
    txid: Txid,
    bytes: Vec<u8>,
}

impl PreviousTransaction {
    /// Of a transaction, with or without its witnesses.
    pub fn new(transaction: Transaction) -> Self {
        let bytes = without_witness(&transaction);
        let txid = Txid::hash(&bytes);
        Self(Arc::new(Parts { transaction, txid, bytes }))
    }

    /// The output at this outpoint, if it is one of this transaction.
    pub fn output(&self, outpoint: OutPoint) -> Option<&TxOut> {
        let output = self.0.transaction.output.get(usize::try_from(outpoint.vout).ok()?)?;
        (self.0.txid == outpoint.txid).then_some(output)
    }

    /// The double SHA256 of the bytes without witnesses.
    pub fn txid(&self) -> Txid {
        self.0.txid
    }

    /// Its bytes without witnesses, as a PSBT has them.
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

/// The bytes of a transaction without its witnesses.
pub(super) fn without_witness(transaction: &Transaction) -> Vec<u8> {
    if transaction.input.iter().all(|input| input.witness.is_empty()) {
        return transaction_to_bytes(transaction);
    }
    let bare = |input: &TxIn| TxIn { witness: Witness::new(), ..input.clone() };
    transaction_to_bytes(&Transaction { input: transaction.input.iter().map(bare).collect(), ..transaction.clone() })
}
