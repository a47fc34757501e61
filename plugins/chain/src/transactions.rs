//! Transactions of the mempool, of blocks and of clients, and unspent outputs.

use bitcoin::hashes::Hash;
use bitcoin::{OutPoint, Transaction, Txid};
use outrigger_sdk::params::{self, encode_hex};
use outrigger_sdk::service::chain::{BlockInfo, BlockRef, Coin, SpentOutputs};
use outrigger_sdk::standard::decode::{Form, transaction_in_form};
use outrigger_sdk::standard::{
    Shown, Spent, script_json, transaction_from_bytes, transaction_from_params, transaction_json_with,
    transaction_to_bytes,
};
use outrigger_sdk::{RpcError, RpcErrorCode, amount};
use serde_json::{Map, Value, json};

use crate::blocks::{decode_block, hash_argument, raw_block};
use crate::header::{confirmations, damaged, decode};
use crate::{Context, args};

/// The height of a coin in the mempool.
const MEMPOOL_HEIGHT: u32 = u32::MAX;

pub fn create_raw_transaction(context: &Context<'_>) -> Result<Value, RpcError> {
    let transaction = transaction_from_params(&context.params, context.network()?)?;
    Ok(json!(encode_hex(&transaction_to_bytes(&transaction))))
}

/// The answer as JSON text, since it may have many megabytes.
pub fn decode_raw_transaction(context: &mut Context<'_>) -> Result<Vec<u8>, RpcError> {
    let undecodable = || RpcError::new(RpcErrorCode::DESERIALIZATION, "TX decode failed");
    let text = args::take_text(&mut context.params, 0)?;
    let is_extended = context.params.given(1).map(params::flag).transpose()?;
    let bytes = params::decode_hex(&text).filter(|bytes| !bytes.is_empty()).ok_or_else(undecodable)?;
    drop(text);
    let transaction = match is_extended {
        None => transaction_from_bytes(&bytes),
        Some(true) => transaction_in_form(&bytes, Form::Extended),
        Some(false) => transaction_in_form(&bytes, Form::Legacy),
    };
    drop(bytes);
    let transaction = transaction.ok_or_else(undecodable)?;
    // Writing JSON to memory cannot fail.
    Ok(serde_json::to_vec(&Shown(&transaction, context.network()?)).unwrap_or_default())
}

/// A transaction of the mempool or of a block.
struct Found {
    transaction: Transaction,
    /// The block and the transaction's position in it.
    block: Option<(BlockInfo, usize)>,
}

pub fn get_raw_transaction(context: &Context<'_>) -> Result<Value, RpcError> {
    let txid = Txid::from_byte_array(params::hash(context.params.get(0), "parameter 1")?);
    let genesis = context.host.chain.block_info(context.scope, BlockRef::Height { height: 0 })?;
    if let Some(genesis) = &genesis
        && decode(genesis)?.merkle_root.to_byte_array() == txid.to_byte_array()
    {
        return Err(RpcError::not_found(
            "The genesis block coinbase is not considered an ordinary transaction and cannot be retrieved",
        ));
    }
    let verbosity = args::verbosity(context.params.given(1), 0)?;
    let names_block = context.params.given(2).is_some();
    let found = if names_block { in_block(context, txid)? } else { anywhere(context, txid)? };
    if verbosity <= 0 {
        return Ok(json!(encode_hex(&transaction_to_bytes(&found.transaction))));
    }
    found_json(context, &found, names_block, verbosity > 1)
}

/// The transaction in the block that the third argument names.
fn in_block(context: &Context<'_>, txid: Txid) -> Result<Found, RpcError> {
    let hash = hash_argument(context, 2, "parameter 3")?;
    let info = context.host.chain.block_info(context.scope, BlockRef::Hash { hash })?;
    let info = info.ok_or_else(|| RpcError::not_found("Block hash not found"))?;
    let block = decode_block(&raw_block(context, hash)?, hash)?;
    let found = block.txdata.into_iter().enumerate().find(|(_, transaction)| transaction.compute_txid() == txid);
    let missing = "No such transaction found in the provided block. Use gettransaction for wallet transactions.";
    let (index, transaction) = found.ok_or_else(|| RpcError::not_found(missing))?;
    Ok(Found { transaction, block: Some((info, index)) })
}

fn anywhere(context: &Context<'_>, txid: Txid) -> Result<Found, RpcError> {
    if let Some(unconfirmed) = context.host.mempool.transactions(context.scope, vec![txid])?.pop().flatten() {
        return Ok(Found { transaction: decode_transaction(&unconfirmed.raw, txid)?, block: None });
    }
    let missing = "No such mempool or blockchain transaction. Use gettransaction for wallet transactions.";
    let confirmed = context.host.chain.transaction(context.scope, txid)?;
    let confirmed = confirmed.ok_or_else(|| RpcError::not_found(missing))?;
    let info = context.host.chain.block_info(context.scope, BlockRef::Hash { hash: confirmed.block })?;
    let block = info.map(|info| (info, confirmed.index as usize));
    Ok(Found { transaction: decode_transaction(&confirmed.raw, txid)?, block })
}

pub fn decode_transaction(raw: &[u8], txid: Txid) -> Result<Transaction, RpcError> {
    transaction_from_bytes(raw).ok_or_else(|| damaged(&format!("transaction {txid}")))
}

fn found_json(context: &Context<'_>, found: &Found, names_block: bool, with_spent: bool) -> Result<Value, RpcError> {
    let mut object = Map::new();
    if let (true, Some((info, _))) = (names_block, &found.block) {
        object.insert("in_active_chain".into(), json!(info.in_best_chain));
    }
    let undo = match &found.block {
        Some((info, _)) if with_spent => context.host.chain.spent_outputs(context.scope, info.hash)?,
        _ => None,
    };
    let index = found.block.as_ref().map_or(0, |(_, index)| *index);
    let spent = undo.as_ref().and_then(|undo| undo.get(index));
    let spent = spent.map(|SpentOutputs { coins }| Spent { coins, show: true });
    object.extend(transaction_json_with(&found.transaction, context.network()?, spent));
    object.insert("hex".into(), json!(encode_hex(&transaction_to_bytes(&found.transaction))));
    if let Some((info, _)) = &found.block {
        object.insert("blockhash".into(), json!(info.hash));
        if info.in_best_chain {
            let time = decode(info)?.time;
            let tip = context.host.chain.tip(context.scope)?;
            object.insert("confirmations".into(), json!(confirmations(info, &tip)));
            object.insert("time".into(), json!(time));
            object.insert("blocktime".into(), json!(time));
        } else {
            object.insert("confirmations".into(), json!(0));
        }
    }
    Ok(Value::Object(object))
}

pub fn get_tx_out(context: &Context<'_>) -> Result<Value, RpcError> {
    let txid = Txid::from_byte_array(params::hash(context.params.get(0), "txid")?);
    let outpoint = OutPoint::new(txid, args::integer(context.params.get(1))?);
    let Some(coin) = unspent(context, outpoint, context.params.flag_or(2, true)?)? else {
        return Ok(Value::Null);
    };
    let tip = context.host.chain.tip(context.scope)?;
    let confirmations = match coin.height {
        MEMPOOL_HEIGHT => 0,
        height => i64::from(tip.height) - i64::from(height) + 1,
    };
    Ok(json!({
        "bestblock": tip.hash,
        "confirmations": confirmations,
        "value": amount::to_json(coin.output.value),
        "scriptPubKey": script_json(&coin.output.script_pubkey, context.network()?),
        "coinbase": coin.coinbase,
    }))
}

fn unspent(context: &Context<'_>, outpoint: OutPoint, with_mempool: bool) -> Result<Option<Coin>, RpcError> {
    if with_mempool {
        let mempool = &context.host.mempool;
        if mempool.spenders(context.scope, vec![outpoint])?.iter().any(Option::is_some) {
            return Ok(None);
        }
        if let Some(parent) = mempool.transactions(context.scope, vec![outpoint.txid])?.pop().flatten() {
            let parent = transaction_from_bytes(&parent.raw);
            let output = parent.and_then(|parent| parent.output.get(outpoint.vout as usize).cloned());
            return Ok(output.map(|output| Coin { output, height: MEMPOOL_HEIGHT, coinbase: false }));
        }
    }
    Ok(context.host.chain.coins(context.scope, vec![outpoint])?.pop().flatten())
}
