//! Reads blocks by hash, and transactions of the mempool, from the node. The host uses a reply only if its hash is the requested one.

use bitcoin::consensus::deserialize;
use bitcoin::{BlockHash, Transaction, Txid};
use bytes::Bytes;
use outrigger_node::ReadBlock;
use outrigger_values::RpcErrorCode;
use serde_json::json;

use super::answers::Hex;
use super::error::AskError;
use super::proof;
use super::rpc::{Question, Rpc};

/// Whether getblock fails because the node has pruned the block, or knows at most its header.
pub fn is_missing(error: &AskError) -> bool {
    matches!(error.code(), Some(RpcErrorCode::INVALID_ADDRESS_OR_KEY | RpcErrorCode::MISC))
}

/// A block with its ids and its serialisation; `None` if the node has pruned it or never had it. [`AskError::Unproven`]
/// if neither REST nor RPC returns that block.
pub fn block(rpc: &Rpc, hash: BlockHash) -> Result<Option<(ReadBlock, Bytes)>, AskError> {
    let prove = |bytes: Bytes| match proof::block(hash, &bytes) {
        Ok(block) => Ok(Some((block, bytes))),
        Err(reason) => Err(rpc.unproven(format!("its block {hash} {reason}"))),
    };
    if let Some(bytes) = rpc.rest(&format!("/rest/block/{hash}.bin"))?
        && let Ok(proven) = prove(bytes)
    {
        return Ok(proven);
    }
    match rpc.ask::<Hex>("getblock", &json!([hash, 0])) {
        Ok(Hex(bytes)) => prove(bytes.into()),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The transactions of these ids that are still in the mempool.
pub fn transactions(rpc: &Rpc, txids: &[Txid]) -> Result<Vec<(Txid, Transaction)>, AskError> {
    let questions: Vec<Question> = txids.iter().map(|txid| ("getrawtransaction", json!([txid]))).collect();
    let answers = rpc.batch::<Hex>(&questions)?;
    let given = txids.iter().zip(answers).filter_map(|(txid, answer)| Some((*txid, answer.ok()?)));
    given.map(|(txid, Hex(bytes))| Ok((txid, transaction(rpc, txid, &bytes)?))).collect()
}

/// Parses a transaction. [`AskError::Unproven`] if it is not the transaction of this id.
pub fn transaction(rpc: &Rpc, txid: Txid, bytes: &[u8]) -> Result<Transaction, AskError> {
    let transaction = deserialize::<Transaction>(bytes).ok().filter(|transaction| transaction.compute_txid() == txid);
    transaction.ok_or_else(|| rpc.unproven(format!("its transaction {txid} is another, or none")))
}
