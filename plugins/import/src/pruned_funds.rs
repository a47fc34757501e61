//! importprunedfunds and removeprunedfunds: a transaction is added to the wallet by a proof that it is in a block, or removed.

use bitcoin::Txid;
use bitcoin::consensus::serialize;
use bitcoin::hashes::Hash;
use outrigger_sdk::params::{Params, hash, hex};
use outrigger_sdk::service::chain::BlockRef;
use outrigger_sdk::service::{ErrorKind, Scope};
use outrigger_sdk::standard::{merkle_block_from_bytes, sendable_from_hex};
use outrigger_sdk::wire::Blob;
use serde_json::Value;

use crate::ImportPlugin;
use crate::error::ImportError;

impl ImportPlugin {
    /// importprunedfunds.
    pub fn import_pruned_funds(&self, params: &Params, scope: Scope) -> Result<Value, ImportError> {
        let wallet = self.host.wallet.info(scope)?;
        let transaction = sendable_from_hex(params.text(0)?).ok_or(ImportError::Transaction)?;
        let proof = hex(params.get(1), "proof")?;
        let proof = merkle_block_from_bytes(&proof).map_err(ImportError::ProofEncoding)?;
        let (mut txids, mut positions) = (Vec::new(), Vec::new());
        proof.extract_matches(&mut txids, &mut positions).map_err(|_| ImportError::Proof)?;
        let block = proof.header.block_hash();
        let info = self.host.chain.block_info(scope, BlockRef::Hash { hash: block })?;
        if !info.is_some_and(|info| info.in_best_chain && info.height <= wallet.synced.height) {
            return Err(ImportError::BlockNotInChain);
        }
        let txid = transaction.compute_txid();
        let position = txids.iter().zip(positions).find(|(other, _)| **other == txid).map(|(_, position)| position);
        let position = position.ok_or(ImportError::NotInProof)?;
        let added = self.host.wallet.add_confirmed(scope, Blob(serialize(&transaction)), block, position);
        added.map_err(|error| match error.kind {
            ErrorKind::NotFound => ImportError::BlockNotInChain,
            ErrorKind::Refused => ImportError::NothingPaid,
            _ => error.into(),
        })?;
        Ok(Value::Null)
    }

    /// removeprunedfunds.
    pub fn remove_pruned_funds(&self, params: &Params, scope: Scope) -> Result<Value, ImportError> {
        let txid = Txid::from_byte_array(hash(params.get(0), "txid")?);
        self.host.wallet.remove_transaction(scope, txid).map_err(|error| match error.kind {
            ErrorKind::NotFound => ImportError::UnknownTransaction(txid),
            _ => error.into(),
        })?;
        Ok(Value::Null)
    }
}
