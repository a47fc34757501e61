//! Transactions of the mempool, of blocks and of clients, and unspent outputs.

use bitcoin::hashes::Hash;
use bitcoin::{OutPoint, Transaction, Txid};
use outrigger_kit::blocks::{damaged, decode_header};
use outrigger_sdk::methods::Json;
use outrigger_sdk::params::{self, encode_hex};
use outrigger_sdk::service::chain::{BlockInfo, BlockRef, Coin, SpentOutputs};
use outrigger_sdk::standard::decode::transaction_as;
use outrigger_sdk::standard::{
    Shown, Spent, script_json, transaction_from_bytes, transaction_from_params, transaction_json, transaction_to_bytes,
};
use outrigger_sdk::{Call, RpcError, amount, methods, typed};
use serde_json::{Map, Value, json};

use crate::ChainPlugin;
use crate::blocks::{self, decode_block, raw_block};
use crate::header::confirmations;

/// Marks a coin of an unconfirmed transaction, in place of a height.
const MEMPOOL_HEIGHT: u32 = u32::MAX;

#[methods]
impl ChainPlugin {
    /// Gives an unspent output; null when it is spent or unknown.
    ///
    /// * `txid` - The transaction's id.
    /// * `n` - The output's position in it.
    /// * `include_mempool` - Whether to include the outputs and the spends of the mempool.
    ///
    /// # Result
    /// {"bestblock": "hash", "confirmations": n, "value": n, "scriptPubKey": {...}, "coinbase": bool}    (json
    /// object) Otherwise null (json null).
    ///
    /// # Example
    /// 1075db55d416d3ca199f55b6084e2115b9345e16c5cf302fc80e9d5fbf5d48d0 1
    #[method(category = "Blockchain", inline)]
    fn gettxout(
        call: &Call<'_>,
        txid: &str,
        #[arg(kind = "numeric")] n: &Value,
        #[arg(default = true)] include_mempool: bool,
    ) -> Result<Value, RpcError> {
        let txid = params::hash_text(txid, "txid")?;
        let outpoint = OutPoint::new(txid, typed::integer(n)?);
        let Some(coin) = unspent(call, outpoint, include_mempool)? else {
            return Ok(Value::Null);
        };
        let tip = call.host.chain.tip(call.scope)?;
        let confirmations = match coin.height {
            MEMPOOL_HEIGHT => 0,
            height => i64::from(tip.height) - i64::from(height) + 1,
        };
        Ok(json!({
            "bestblock": tip.hash,
            "confirmations": confirmations,
            "value": amount::to_json(coin.output.value),
            "scriptPubKey": script_json(&coin.output.script_pubkey, call.network()?),
            "coinbase": coin.coinbase,
        }))
    }

    /// Gives a transaction of the mempool or of the best chain, or of a given block.
    ///
    /// * `txid` - The transaction's id.
    /// * `verbosity` (default: 0) - 0 for hexadecimal, 1 for a decoded transaction, 2 also with its fee and its spent
    ///   outputs.
    /// * `blockhash` - The only block to search.
    ///
    /// # Result
    /// "hex"    (string) With verbosity 0.
    /// {"in_active_chain": bool, "txid": "txid", ..., "hex": "hex", "blockhash": "hash", "confirmations": n, "time": n,
    /// "blocktime": n}    (json object) With verbosity 1 or 2.
    ///
    /// # Example
    /// 1075db55d416d3ca199f55b6084e2115b9345e16c5cf302fc80e9d5fbf5d48d0 1
    #[method(category = "Rawtransactions", inline)]
    fn getrawtransaction(
        call: &Call<'_>,
        txid: &str,
        #[arg(kind = "verbosity", alias = "verbose")] verbosity: Option<&Value>,
        blockhash: Option<&str>,
    ) -> Result<Value, RpcError> {
        let txid: Txid = params::hash_text(txid, "parameter 1")?;
        let genesis = call.host.chain.block_info(call.scope, BlockRef::Height { height: 0 })?;
        if let Some(genesis) = &genesis
            && decode_header(genesis)?.merkle_root.to_byte_array() == txid.to_byte_array()
        {
            return Err(RpcError::not_found(
                "The genesis block coinbase is not considered an ordinary transaction and cannot be retrieved",
            ));
        }
        let verbosity = blocks::verbosity(verbosity, 0)?;
        let found = blockhash.map_or_else(|| anywhere(call, txid), |blockhash| in_block(call, txid, blockhash))?;
        if verbosity <= 0 {
            return Ok(json!(encode_hex(&transaction_to_bytes(&found.transaction))));
        }
        found_json(call, &found, blockhash.is_some(), verbosity > 1)
    }

    /// Makes an unsigned transaction. The call looks up, stores and sends nothing.
    ///
    /// * `inputs` - The inputs: objects with txid, vout and optionally sequence.
    /// * `outputs` - The outputs: an object, or an array of objects with one key each. A key is an address with an
    ///   amount in BTC, or "data" with hexadecimal for an OP_RETURN output.
    /// * `locktime` (default: 0) - The locktime. A locktime other than 0 also sets the sequences so that it applies.
    /// * `replaceable` (default: true) - Whether the transaction signals replaceability (BIP 125).
    /// * `version` (default: 2) - The version of the transaction, from 1 to 3. Bitcoin Core has this argument since
    ///   release 30.
    ///
    /// # Result
    /// "hex"    (string) The transaction.
    #[method(category = "Rawtransactions", inline)]
    fn createrawtransaction(
        call: &Call<'_>,
        #[arg(kind = "array")] inputs: &Value,
        #[arg(kind = "outputs")] outputs: &Value,
        #[arg(kind = "numeric")] locktime: Option<&Value>,
        replaceable: Option<bool>,
        #[arg(kind = "numeric")] version: Option<&Value>,
    ) -> Result<String, RpcError> {
        let network = call.network()?;
        let transaction = transaction_from_params(Some(inputs), outputs, locktime, replaceable, version, network)?;
        Ok(encode_hex(&transaction_to_bytes(&transaction)))
    }

    /// Decodes a transaction.
    ///
    /// * `hexstring` - The transaction.
    /// * `iswitness` (default: depends on which form makes sense) - Whether the serialisation has the witness form
    ///   (true) or the legacy form (false).
    ///
    /// # Result
    /// {"txid": "txid", "hash": "wtxid", "version": n, "size": n, "vsize": n, "weight": n, "locktime": n, "vin":
    /// [...], "vout": [...]}    (json object)
    #[method(category = "Rawtransactions")]
    fn decoderawtransaction(
        call: &Call<'_>,
        #[arg(kind = "hex")] hexstring: String,
        iswitness: Option<bool>,
    ) -> Result<Json, RpcError> {
        let undecodable = || RpcError::undecodable("TX decode failed");
        let bytes = params::decode_hex(&hexstring).filter(|bytes| !bytes.is_empty()).ok_or_else(undecodable)?;
        // Frees text and bytes early, because they may have many megabytes.
        drop(hexstring);
        let transaction = transaction_as(&bytes, iswitness);
        drop(bytes);
        let transaction = transaction.ok_or_else(undecodable)?;
        // The answer may have many megabytes as well. Writing JSON to memory cannot fail.
        let shown = Shown { transaction: &transaction, network: call.network()?, change: &[] };
        Ok(Json(serde_json::to_vec(&shown).unwrap_or_default()))
    }
}

/// A transaction of the mempool or of a block.
struct Found {
    transaction: Transaction,
    /// The block and the transaction's position in it; `None` in the mempool.
    block: Option<(BlockInfo, usize)>,
}

/// Finds the transaction in the block that the client names.
fn in_block(call: &Call<'_>, txid: Txid, blockhash: &str) -> Result<Found, RpcError> {
    let hash = params::hash_text(blockhash, "parameter 3")?;
    let info = call.host.chain.block_info(call.scope, BlockRef::Hash { hash })?;
    let info = info.ok_or_else(|| RpcError::not_found("Block hash not found"))?;
    let block = decode_block(&raw_block(call, hash)?, hash)?;
    let found = block.txdata.into_iter().enumerate().find(|(_, transaction)| transaction.compute_txid() == txid);
    let missing = "No such transaction found in the provided block. Use gettransaction for wallet transactions.";
    let (index, transaction) = found.ok_or_else(|| RpcError::not_found(missing))?;
    Ok(Found { transaction, block: Some((info, index)) })
}

fn anywhere(call: &Call<'_>, txid: Txid) -> Result<Found, RpcError> {
    if let Some(unconfirmed) = call.host.mempool.transactions(call.scope, vec![txid])?.pop().flatten() {
        return Ok(Found { transaction: decode_transaction(&unconfirmed, txid)?, block: None });
    }
    let missing = "No such mempool or blockchain transaction. Use gettransaction for wallet transactions.";
    let confirmed = call.host.chain.transaction(call.scope, txid)?;
    let confirmed = confirmed.ok_or_else(|| RpcError::not_found(missing))?;
    let info = call.host.chain.block_info(call.scope, BlockRef::Hash { hash: confirmed.block })?;
    let block = info.map(|info| (info, confirmed.index as usize));
    Ok(Found { transaction: decode_transaction(&confirmed.raw, txid)?, block })
}

pub fn decode_transaction(raw: &[u8], txid: Txid) -> Result<Transaction, RpcError> {
    transaction_from_bytes(raw).ok_or_else(|| damaged(&format!("transaction {txid}")))
}

fn found_json(call: &Call<'_>, found: &Found, names_block: bool, with_spent: bool) -> Result<Value, RpcError> {
    let mut object = Map::new();
    if let (true, Some((info, _))) = (names_block, &found.block) {
        object.insert("in_active_chain".into(), json!(info.in_best_chain));
    }
    let undo = match &found.block {
        Some((info, _)) if with_spent => call.host.chain.spent_outputs(call.scope, info.hash)?,
        _ => None,
    };
    let index = found.block.as_ref().map_or(0, |(_, index)| *index);
    let spent = undo.as_ref().and_then(|undo| undo.get(index));
    let spent = spent.map(|SpentOutputs { coins }| Spent { coins, show: true });
    object.extend(transaction_json(&found.transaction, call.network()?, spent));
    object.insert("hex".into(), json!(encode_hex(&transaction_to_bytes(&found.transaction))));
    if let Some((info, _)) = &found.block {
        object.insert("blockhash".into(), json!(info.hash));
        if info.in_best_chain {
            let time = decode_header(info)?.time;
            let tip = call.host.chain.tip(call.scope)?;
            object.insert("confirmations".into(), json!(confirmations(info, &tip)));
            object.insert("time".into(), json!(time));
            object.insert("blocktime".into(), json!(time));
        } else {
            object.insert("confirmations".into(), json!(0));
        }
    }
    Ok(Value::Object(object))
}

fn unspent(call: &Call<'_>, outpoint: OutPoint, with_mempool: bool) -> Result<Option<Coin>, RpcError> {
    if with_mempool {
        let mempool = &call.host.mempool;
        if mempool.spenders(call.scope, vec![outpoint])?.iter().any(Option::is_some) {
            return Ok(None);
        }
        if let Some(parent) = mempool.transactions(call.scope, vec![outpoint.txid])?.pop().flatten() {
            let parent = transaction_from_bytes(&parent);
            let output = parent.and_then(|parent| parent.output.get(outpoint.vout as usize).cloned());
            return Ok(output.map(|output| Coin { output, height: MEMPOOL_HEIGHT, coinbase: false }));
        }
    }
    Ok(call.host.chain.coins(call.scope, vec![outpoint])?.pop().flatten())
}
