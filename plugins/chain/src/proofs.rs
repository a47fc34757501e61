//! Proofs that transactions are in a block: `gettxoutproof` and `verifytxoutproof`.

use std::collections::BTreeSet;

use bitcoin::{BlockHash, MerkleBlock, OutPoint, Txid, consensus};
use outrigger_kit::blocks::find_block;
use outrigger_sdk::params::{self, encode_hex};
use outrigger_sdk::service::chain::BlockRef;
use outrigger_sdk::standard::merkle_block_from_bytes;
use outrigger_sdk::{Call, RpcError, methods, typed};
use serde_json::Value;

use crate::ChainPlugin;
use crate::blocks::{decode_block, raw_block};
use crate::transactions::decode_transaction;

#[methods(category = "Blockchain")]
impl ChainPlugin {
    /// Proves by Merkle branches that a block contains some transactions.
    ///
    /// * `txids` - The ids of transactions in one block.
    /// * `blockhash` (default: that of the first transaction) - The block.
    ///
    /// # Result
    /// "hex"    (string) The proof: a serialised merkleblock message.
    ///
    /// # Example
    /// '["1075db55d416d3ca199f55b6084e2115b9345e16c5cf302fc80e9d5fbf5d48d0"]'
    #[method]
    fn gettxoutproof(call: &Call<'_>, txids: &[Value], blockhash: Option<&str>) -> Result<String, RpcError> {
        if txids.is_empty() {
            return Err(RpcError::invalid_parameter("Parameter 'txids' cannot be empty"));
        }
        let mut wanted: BTreeSet<Txid> = BTreeSet::new();
        for value in txids {
            let text = typed::text(value)?;
            if !wanted.insert(params::hash_text(text, "txid")?) {
                return Err(RpcError::invalid_parameter(format!("Invalid parameter, duplicated txid: {text}")));
            }
        }
        let hash = match blockhash {
            Some(text) => find_block(call, BlockRef::Hash { hash: params::hash_text(text, "blockhash")? })?.hash,
            None => block_of(call, &wanted)?.ok_or_else(|| RpcError::not_found("Transaction not yet in block"))?,
        };
        let block = decode_block(&raw_block(call, hash)?, hash)?;
        let ids: Vec<Txid> = block.txdata.iter().map(bitcoin::Transaction::compute_txid).collect();
        if ids.iter().filter(|txid| wanted.contains(*txid)).count() != wanted.len() {
            return Err(RpcError::not_found("Not all transactions found in specified or retrieved block"));
        }
        let proof = MerkleBlock::from_header_txids_with_predicate(&block.header, &ids, |txid| wanted.contains(txid));
        Ok(encode_hex(&consensus::serialize(&proof)))
    }

    /// Checks a proof from gettxoutproof, and gives its transactions. The block must be in the best chain.
    ///
    /// * `proof` - The proof in hexadecimal.
    ///
    /// # Result
    /// ["txid", ...]    (json array) The array is empty if the proof is invalid.
    ///
    /// # Example
    /// 00000020...
    #[method]
    fn verifytxoutproof(call: &Call<'_>, proof: String) -> Result<Vec<Txid>, RpcError> {
        let bytes = params::hex(&Value::String(proof), "proof")?;
        let proof = merkle_block_from_bytes(&bytes, &call.rules).map_err(RpcError::misc)?;
        let (mut matches, mut indexes) = (Vec::new(), Vec::new());
        if proof.extract_matches(&mut matches, &mut indexes).is_err() {
            return Ok(Vec::new());
        }
        let hash = proof.header.block_hash();
        let block = call.host.chain.block_info(call.scope, BlockRef::Hash { hash })?;
        let block = block.filter(|block| block.in_best_chain);
        let block = block.ok_or_else(|| RpcError::not_found("Block not found in chain"))?;
        // With a wrong number of transactions, a proof can pass off an inner node of the tree as a transaction.
        let is_valid = block.transactions == Some(proof.txn.num_transactions());
        Ok(if is_valid { matches } else { Vec::new() })
    }
}

/// The block of the first transaction with an unspent output, else the block of the first transaction.
fn block_of(call: &Call<'_>, txids: &BTreeSet<Txid>) -> Result<Option<BlockHash>, RpcError> {
    let genesis = call.host.chain.block_info(call.scope, BlockRef::Height { height: 0 })?;
    let mut of_first = None;
    for (index, &txid) in txids.iter().enumerate() {
        let Some(found) = call.host.chain.transaction(call.scope, txid)? else { continue };
        // The genesis coinbase is unspendable and absent from bitcoind's index.
        if genesis.as_ref().is_some_and(|genesis| genesis.hash == found.block) {
            continue;
        }
        let transaction = decode_transaction(&found.raw, txid)?;
        let outpoints = (0..transaction.output.len() as u32).map(|vout| OutPoint::new(txid, vout)).collect();
        if call.host.chain.coins(call.scope, outpoints)?.iter().any(Option::is_some) {
            return Ok(Some(found.block));
        }
        of_first = of_first.or((index == 0).then_some(found.block));
    }
    Ok(of_first)
}
