//! importprunedfunds, which adds a transaction with a proof of its block, and removeprunedfunds.

use bitcoin::consensus::serialize;
use outrigger_sdk::params::{hash_text, hex};
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::service::chain::BlockRef;
use outrigger_sdk::standard::{merkle_block_from_bytes, sendable_from_hex};
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, RpcError, RpcErrorCode, methods};
use serde_json::Value;

use crate::ImportPlugin;

const DEPRECATED: &str = "DEPRECATION WARNING: This feature will be removed in the next major release. Start bitcoind with the `-deprecatedrpc=removeprunedfunds` option in order to use this.";

#[methods(category = "Wallet")]
impl ImportPlugin {
    /// Adds a confirmed transaction that pays to the wallet, without a rescan. Add later transactions that spend from
    /// it, too.
    ///
    /// * `rawtransaction` - The transaction in hexadecimal.
    /// * `txoutproof` - The proof that it is in a block, from gettxoutproof.
    #[method]
    fn importprunedfunds(
        call: &Call<'_>,
        rawtransaction: &str,
        #[arg(kind = "string")] txoutproof: &Value,
    ) -> Result<(), RpcError> {
        let (host, scope) = (call.host, call.scope);
        let wallet = call.wallet()?;
        let transaction = sendable_from_hex(rawtransaction).ok_or_else(undecodable)?;
        let proof = hex(txoutproof, "proof")?;
        let proof = merkle_block_from_bytes(&proof, &call.rules).map_err(RpcError::misc)?;
        let (mut txids, mut positions) = (Vec::new(), Vec::new());
        let proved = proof.extract_matches(&mut txids, &mut positions);
        proved.map_err(|_| RpcError::not_found("Something wrong with merkleblock"))?;
        let block = proof.header.block_hash();
        let info = host.chain.block_info(scope, BlockRef::Hash { hash: block })?;
        if !info.is_some_and(|info| info.in_best_chain && info.height <= wallet.synced.height) {
            return Err(block_not_in_chain());
        }
        let txid = transaction.compute_txid();
        let position = txids.iter().zip(positions).find(|(other, _)| **other == txid).map(|(_, position)| position);
        let position = position.ok_or_else(|| RpcError::not_found("Transaction given doesn't exist in proof"))?;
        let added = host.import.add_confirmed(scope, Blob(serialize(&transaction)), block, position);
        added.map_err(|error| match error.kind {
            ErrorKind::NotFound => block_not_in_chain(),
            ErrorKind::Refused => RpcError::not_found("No addresses in wallet correspond to included transaction"),
            _ => error.into(),
        })
    }

    /// Removes a transaction from the wallet, which changes its balances.
    ///
    /// * `txid` - The transaction's id.
    #[method]
    fn removeprunedfunds(call: &Call<'_>, txid: &str) -> Result<(), RpcError> {
        if call.rules.deprecates_pruned_funds {
            return Err(RpcError::new(RpcErrorCode::METHOD_DEPRECATED, DEPRECATED));
        }
        let txid = hash_text(txid, "txid")?;
        call.host.import.remove_transaction(call.scope, txid).map_err(|error| match error.kind {
            ErrorKind::NotFound => RpcError::wallet(format!("Transaction {txid} does not belong to this wallet")),
            _ => error.into(),
        })
    }
}

fn undecodable() -> RpcError {
    RpcError::undecodable("TX decode failed. Make sure the tx has at least one input.")
}

fn block_not_in_chain() -> RpcError {
    RpcError::not_found("Block not found in chain")
}
