//! importprunedfunds, which adds a transaction with a proof of its block, and removeprunedfunds.

use bitcoin::Txid;
use bitcoin::consensus::serialize;
use bitcoin::hashes::Hash;
use outrigger_sdk::params::{hash, hex};
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::service::chain::BlockRef;
use outrigger_sdk::standard::{merkle_block_from_bytes, sendable_from_hex};
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, RpcError, RpcErrorCode};
use serde_json::Value;

use crate::ImportPlugin;

const DEPRECATED: &str = "DEPRECATION WARNING: This feature will be removed in the next major release. Start bitcoind with the `-deprecatedrpc=removeprunedfunds` option in order to use this.";

impl ImportPlugin {
    pub fn import_pruned_funds(&self, call: &Call<'_>) -> Result<Value, RpcError> {
        let (params, scope) = (&call.params, call.scope);
        let wallet = self.host.wallet.info(scope)?;
        let transaction = sendable_from_hex(params.text(0)?).ok_or_else(undecodable)?;
        let proof = hex(params.get(1), "proof")?;
        let proof = merkle_block_from_bytes(&proof, &call.rules).map_err(RpcError::misc)?;
        let (mut txids, mut positions) = (Vec::new(), Vec::new());
        let proved = proof.extract_matches(&mut txids, &mut positions);
        proved.map_err(|_| RpcError::not_found("Something wrong with merkleblock"))?;
        let block = proof.header.block_hash();
        let info = self.host.chain.block_info(scope, BlockRef::Hash { hash: block })?;
        if !info.is_some_and(|info| info.in_best_chain && info.height <= wallet.synced.height) {
            return Err(block_not_in_chain());
        }
        let txid = transaction.compute_txid();
        let position = txids.iter().zip(positions).find(|(other, _)| **other == txid).map(|(_, position)| position);
        let position = position.ok_or_else(|| RpcError::not_found("Transaction given doesn't exist in proof"))?;
        let added = self.host.import.add_confirmed(scope, Blob(serialize(&transaction)), block, position);
        added.map_err(|error| match error.kind {
            ErrorKind::NotFound => block_not_in_chain(),
            ErrorKind::Refused => RpcError::not_found("No addresses in wallet correspond to included transaction"),
            _ => error.into(),
        })?;
        Ok(Value::Null)
    }

    pub fn remove_pruned_funds(&self, call: &Call<'_>) -> Result<Value, RpcError> {
        if call.rules.deprecates_pruned_funds {
            return Err(RpcError::new(RpcErrorCode::METHOD_DEPRECATED, DEPRECATED));
        }
        let (params, scope) = (&call.params, call.scope);
        let txid = Txid::from_byte_array(hash(params.get(0), "txid")?);
        self.host.import.remove_transaction(scope, txid).map_err(|error| match error.kind {
            ErrorKind::NotFound => RpcError::wallet(format!("Transaction {txid} does not belong to this wallet")),
            _ => error.into(),
        })?;
        Ok(Value::Null)
    }
}

fn undecodable() -> RpcError {
    RpcError::new(RpcErrorCode::DESERIALIZATION, "TX decode failed. Make sure the tx has at least one input.")
}

fn block_not_in_chain() -> RpcError {
    RpcError::not_found("Block not found in chain")
}
