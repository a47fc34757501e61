//! Proofs that transactions are in a block: `gettxoutproof` and `verifytxoutproof`.

use std::collections::BTreeSet;

use bitcoin::hashes::Hash;
use bitcoin::{BlockHash, MerkleBlock, OutPoint, Txid, consensus};
use outrigger_sdk::params::{self, encode_hex};
use outrigger_sdk::service::chain::BlockRef;
use outrigger_sdk::standard::{block_from_bytes, merkle_block_from_bytes, transaction_from_bytes};
use serde_json::json;

use crate::blocks::hash_argument;
use crate::error::ChainError;
use crate::{Context, Outcome, args};

pub fn get_tx_out_proof(context: &Context<'_>) -> Outcome {
    let values = args::array(context.params.get(0))?;
    if values.is_empty() {
        return Err(ChainError::NoTxids);
    }
    let mut txids = BTreeSet::new();
    for value in values {
        let text = args::text(value)?;
        if !txids.insert(Txid::from_byte_array(params::hash_text(text, "txid")?)) {
            return Err(ChainError::DuplicateTxid(text.to_owned()));
        }
    }
    let hash = match context.params.given(1) {
        Some(_) => {
            let hash = hash_argument(context, 1, "blockhash")?;
            let known = context.host.chain.block_info(context.scope, BlockRef::Hash { hash })?;
            known.ok_or(ChainError::BlockNotFound)?.hash
        }
        None => block_of(context, &txids)?.ok_or(ChainError::NotYetInBlock)?,
    };
    let raw = context.host.chain.block(context.scope, hash)?.ok_or(ChainError::BlockNotAvailable)?;
    let block = block_from_bytes(&raw).ok_or_else(|| ChainError::Damaged(format!("block {hash}")))?;
    let ids: Vec<Txid> = block.txdata.iter().map(bitcoin::Transaction::compute_txid).collect();
    if ids.iter().filter(|txid| txids.contains(*txid)).count() != txids.len() {
        return Err(ChainError::NotAllInBlock);
    }
    let proof = MerkleBlock::from_header_txids_with_predicate(&block.header, &ids, |txid| txids.contains(txid));
    Ok(json!(encode_hex(&consensus::serialize(&proof))))
}

/// The block that holds the first of these transactions with an unspent output, else the block of the first of all.
fn block_of(context: &Context<'_>, txids: &BTreeSet<Txid>) -> Result<Option<BlockHash>, ChainError> {
    let genesis = context.host.chain.block_info(context.scope, BlockRef::Height { height: 0 })?;
    let mut of_first = None;
    for (index, &txid) in txids.iter().enumerate() {
        let Some(found) = context.host.chain.transaction(context.scope, txid)? else { continue };
        // Nobody can spend what the genesis block pays, so bitcoind's index does not have it.
        if genesis.as_ref().is_some_and(|genesis| genesis.hash == found.block) {
            continue;
        }
        let transaction = transaction_from_bytes(&found.raw);
        let transaction = transaction.ok_or_else(|| ChainError::Damaged(format!("transaction {txid}")))?;
        let outpoints = (0..transaction.output.len() as u32).map(|vout| OutPoint::new(txid, vout)).collect();
        if context.host.chain.coins(context.scope, outpoints)?.iter().any(Option::is_some) {
            return Ok(Some(found.block));
        }
        of_first = of_first.or((index == 0).then_some(found.block));
    }
    Ok(of_first)
}

pub fn verify_tx_out_proof(context: &Context<'_>) -> Outcome {
    let bytes = params::hex(context.params.get(0), "proof")?;
    let proof = merkle_block_from_bytes(&bytes).map_err(ChainError::ProofEncoding)?;
    let (mut matches, mut indexes) = (Vec::new(), Vec::new());
    if proof.extract_matches(&mut matches, &mut indexes).is_err() {
        return Ok(json!([]));
    }
    let hash = proof.header.block_hash();
    let block = context.host.chain.block_info(context.scope, BlockRef::Hash { hash })?;
    let block = block.filter(|block| block.in_best_chain).ok_or(ChainError::BlockNotInChain)?;
    // A proof of another number of transactions may take an inner node of the tree for a transaction.
    let right = block.transactions == Some(proof.txn.num_transactions());
    Ok(json!(if right { matches } else { Vec::new() }))
}
