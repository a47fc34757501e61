//! Proofs that transactions are in a block: `gettxoutproof` and `verifytxoutproof`.

use std::collections::BTreeSet;

use bitcoin::hashes::Hash;
use bitcoin::{BlockHash, MerkleBlock, OutPoint, Txid, consensus};
use outrigger_sdk::RpcError;
use outrigger_sdk::params::{self, encode_hex};
use outrigger_sdk::service::chain::BlockRef;
use outrigger_sdk::standard::merkle_block_from_bytes;
use serde_json::{Value, json};

use crate::blocks::{decode_block, find_block, hash_argument, raw_block};
use crate::transactions::decode_transaction;
use crate::{Context, args};

pub fn get_tx_out_proof(context: &Context<'_>) -> Result<Value, RpcError> {
    let values = args::array(context.params.get(0))?;
    if values.is_empty() {
        return Err(RpcError::invalid_parameter("Parameter 'txids' cannot be empty"));
    }
    let mut txids = BTreeSet::new();
    for value in values {
        let text = args::text(value)?;
        if !txids.insert(Txid::from_byte_array(params::hash_text(text, "txid")?)) {
            return Err(RpcError::invalid_parameter(format!("Invalid parameter, duplicated txid: {text}")));
        }
    }
    let hash = match context.params.given(1) {
        Some(_) => {
            let hash = hash_argument(context, 1, "blockhash")?;
            find_block(context, BlockRef::Hash { hash })?.hash
        }
        None => block_of(context, &txids)?.ok_or_else(|| RpcError::not_found("Transaction not yet in block"))?,
    };
    let block = decode_block(&raw_block(context, hash)?, hash)?;
    let ids: Vec<Txid> = block.txdata.iter().map(bitcoin::Transaction::compute_txid).collect();
    if ids.iter().filter(|txid| txids.contains(*txid)).count() != txids.len() {
        return Err(RpcError::not_found("Not all transactions found in specified or retrieved block"));
    }
    let proof = MerkleBlock::from_header_txids_with_predicate(&block.header, &ids, |txid| txids.contains(txid));
    Ok(json!(encode_hex(&consensus::serialize(&proof))))
}

/// The block of the first transaction with an unspent output. If there is none, the block of the first transaction.
fn block_of(context: &Context<'_>, txids: &BTreeSet<Txid>) -> Result<Option<BlockHash>, RpcError> {
    let genesis = context.host.chain.block_info(context.scope, BlockRef::Height { height: 0 })?;
    let mut of_first = None;
    for (index, &txid) in txids.iter().enumerate() {
        let Some(found) = context.host.chain.transaction(context.scope, txid)? else { continue };
        // The genesis coinbase is unspendable and absent from bitcoind's index.
        if genesis.as_ref().is_some_and(|genesis| genesis.hash == found.block) {
            continue;
        }
        let transaction = decode_transaction(&found.raw, txid)?;
        let outpoints = (0..transaction.output.len() as u32).map(|vout| OutPoint::new(txid, vout)).collect();
        if context.host.chain.coins(context.scope, outpoints)?.iter().any(Option::is_some) {
            return Ok(Some(found.block));
        }
        of_first = of_first.or((index == 0).then_some(found.block));
    }
    Ok(of_first)
}

pub fn verify_tx_out_proof(context: &Context<'_>) -> Result<Value, RpcError> {
    let bytes = params::hex(context.params.get(0), "proof")?;
    let proof = merkle_block_from_bytes(&bytes, &context.rules).map_err(RpcError::misc)?;
    let (mut matches, mut indexes) = (Vec::new(), Vec::new());
    if proof.extract_matches(&mut matches, &mut indexes).is_err() {
        return Ok(json!([]));
    }
    let hash = proof.header.block_hash();
    let block = context.host.chain.block_info(context.scope, BlockRef::Hash { hash })?;
    let block = block.filter(|block| block.in_best_chain);
    let block = block.ok_or_else(|| RpcError::not_found("Block not found in chain"))?;
    // With a wrong number of transactions, a proof can pass off an inner node of the tree as a transaction.
    let is_valid = block.transactions == Some(proof.txn.num_transactions());
    Ok(json!(if is_valid { matches } else { Vec::new() }))
}
