//! Transactions wherever they are: in the mempool, in a block, or only in a client's hands; and unspent outputs.

use bitcoin::hashes::Hash;
use bitcoin::{BlockHash, OutPoint, Transaction, Txid};
use outrigger_sdk::amount;
use outrigger_sdk::params::{self, encode_hex};
use outrigger_sdk::service::chain::{BlockInfo, BlockRef, Coin, SpentOutputs};
use outrigger_sdk::standard::decode::{Form, transaction_in_form};
use outrigger_sdk::standard::{
    Shown, Spent, block_from_bytes, script_json, transaction_from_bytes, transaction_from_params,
    transaction_json_with, transaction_to_bytes,
};
use serde_json::{Map, Value, json};

use crate::error::ChainError;
use crate::header::{confirmations, decode};
use crate::{Context, Outcome, args};

/// The height that stands for the mempool in a coin.
const MEMPOOL_HEIGHT: u32 = u32::MAX;

pub fn create_raw_transaction(context: &Context<'_>) -> Outcome {
    let transaction = transaction_from_params(&context.params, context.network()?)?;
    Ok(json!(encode_hex(&transaction_to_bytes(&transaction))))
}

/// The answer as JSON text, which may be of many megabytes.
pub fn decode_raw_transaction(context: &mut Context<'_>) -> Result<Vec<u8>, ChainError> {
    let text = args::take_text(&mut context.params, 0)?;
    let is_extended = context.params.given(1).map(params::flag).transpose()?;
    let bytes = params::decode_hex(&text).filter(|bytes| !bytes.is_empty()).ok_or(ChainError::Undecodable)?;
    drop(text);
    let transaction = match is_extended {
        None => transaction_from_bytes(&bytes),
        Some(true) => transaction_in_form(&bytes, Form::Extended),
        Some(false) => transaction_in_form(&bytes, Form::Legacy),
    };
    drop(bytes);
    let transaction = transaction.ok_or(ChainError::Undecodable)?;
    // Memory takes all text.
    Ok(serde_json::to_vec(&Shown(&transaction, context.network()?)).unwrap_or_default())
}

/// A transaction and the block that it was found in, if any.
struct Found {
    transaction: Transaction,
    block: Option<(BlockInfo, usize)>,
}

pub fn get_raw_transaction(context: &Context<'_>) -> Outcome {
    let txid = Txid::from_byte_array(params::hash(context.params.get(0), "parameter 1")?);
    let genesis = context.host.chain.block_info(context.scope, BlockRef::Height { height: 0 })?;
    if let Some(genesis) = &genesis
        && decode(genesis)?.merkle_root.to_byte_array() == txid.to_byte_array()
    {
        return Err(ChainError::GenesisCoinbase);
    }
    let verbosity = args::verbosity(context.params.given(1), 0)?;
    let (found, asked) = match context.params.given(2) {
        Some(value) => (in_block(context, txid, value)?, true),
        None => (anywhere(context, txid)?, false),
    };
    if verbosity <= 0 {
        return Ok(json!(encode_hex(&transaction_to_bytes(&found.transaction))));
    }
    found_json(context, &found, asked, verbosity > 1)
}

fn in_block(context: &Context<'_>, txid: Txid, value: &Value) -> Result<Found, ChainError> {
    let hash = BlockHash::from_byte_array(params::hash(value, "parameter 3")?);
    let info = context.host.chain.block_info(context.scope, BlockRef::Hash { hash })?;
    let info = info.ok_or(ChainError::BlockHashNotFound)?;
    let raw = context.host.chain.block(context.scope, hash)?.ok_or(ChainError::BlockNotAvailable)?;
    let block = block_from_bytes(&raw).ok_or_else(|| ChainError::Damaged(format!("block {hash}")))?;
    let found = block.txdata.into_iter().enumerate().find(|(_, transaction)| transaction.compute_txid() == txid);
    let (index, transaction) = found.ok_or(ChainError::NotInBlock)?;
    Ok(Found { transaction, block: Some((info, index)) })
}

fn anywhere(context: &Context<'_>, txid: Txid) -> Result<Found, ChainError> {
    let read =
        |raw: &[u8]| transaction_from_bytes(raw).ok_or_else(|| ChainError::Damaged(format!("transaction {txid}")));
    if let Some(unconfirmed) = context.host.mempool.transactions(context.scope, vec![txid])?.pop().flatten() {
        return Ok(Found { transaction: read(&unconfirmed.raw)?, block: None });
    }
    let confirmed = context.host.chain.transaction(context.scope, txid)?.ok_or(ChainError::NoSuchTransaction)?;
    let info = context.host.chain.block_info(context.scope, BlockRef::Hash { hash: confirmed.block })?;
    let block = info.map(|info| (info, confirmed.index as usize));
    Ok(Found { transaction: read(&confirmed.raw)?, block })
}

fn found_json(context: &Context<'_>, found: &Found, asked: bool, with_spent: bool) -> Outcome {
    let mut object = Map::new();
    if let (true, Some((info, _))) = (asked, &found.block) {
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

pub fn get_tx_out(context: &Context<'_>) -> Outcome {
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

fn unspent(context: &Context<'_>, outpoint: OutPoint, with_mempool: bool) -> Result<Option<Coin>, ChainError> {
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
