//! `getdescriptoractivity`: receipts and spends of the scripts of descriptors, in some blocks and in the mempool.

use std::collections::BTreeMap;

use bitcoin::hashes::Hash;
use bitcoin::{BlockHash, OutPoint, Transaction, TxOut};
use outrigger_sdk::service::chain::{BlockInfo, BlockRef};
use outrigger_sdk::service::mempool::MempoolEntry;
use outrigger_sdk::standard::{script_json, transaction_from_bytes};
use outrigger_sdk::{Reply, RpcError, amount, params};
use serde_json::{Map, Value, json};

use crate::blocks::{block_not_available, find_block};
use crate::filters::Connected;
use crate::scan::Needles;
use crate::statistics::check_in_main_chain;
use crate::transactions::decode_transaction;
use crate::{Context, args};

struct Activity<'a> {
    context: &'a Context<'a>,
    needles: &'a Needles,
    events: Vec<Value>,
}

impl Activity<'_> {
    /// Adds the spends and receipts of a transaction. An unconfirmed transaction has no block.
    fn add(&mut self, transaction: &Transaction, spent: &[TxOut], block: Option<&BlockInfo>) -> Result<(), RpcError> {
        let txid = transaction.compute_txid();
        let needles = self.needles;
        let is_wanted = |output: &TxOut| needles.has(&output.script_pubkey);
        let inputs = transaction.input.iter().zip(spent).enumerate();
        for (index, (input, output)) in inputs.filter(|(_, (_, output))| is_wanted(output)) {
            let mut event = head("spend", output, block);
            event.insert("spend_txid".into(), json!(txid));
            event.insert("spend_vin".into(), json!(index));
            event.insert("prevout_txid".into(), json!(input.previous_output.txid));
            event.insert("prevout_vout".into(), json!(input.previous_output.vout));
            self.push(event, "prevout_spk", output)?;
        }
        let outputs = transaction.output.iter().enumerate();
        for (index, output) in outputs.filter(|(_, output)| is_wanted(output)) {
            let mut event = head("receive", output, block);
            event.insert("txid".into(), json!(txid));
            event.insert("vout".into(), json!(index));
            self.push(event, "output_spk", output)?;
        }
        Ok(())
    }

    fn push(&mut self, mut event: Map<String, Value>, key: &str, output: &TxOut) -> Result<(), RpcError> {
        let script = script_json(&output.script_pubkey, self.context.network()?);
        event.insert(key.to_owned(), Value::Object(script));
        self.events.push(Value::Object(event));
        Ok(())
    }

    fn add_block(&mut self, info: &BlockInfo) -> Result<(), RpcError> {
        let connected = Connected::read(self.context, info)?.ok_or_else(block_not_available)?;
        for (index, transaction) in connected.block.txdata.iter().enumerate() {
            let coins = connected.spent.get(index).map_or(&[][..], |spent| &spent.coins);
            let spent: Vec<TxOut> = coins.iter().map(|coin| coin.output.clone()).collect();
            self.add(transaction, &spent, Some(info))?;
        }
        Ok(())
    }

    fn add_mempool(&mut self) -> Result<(), RpcError> {
        let (mempool, scope) = (&self.context.host.mempool, self.context.scope);
        let mut entries: Vec<MempoolEntry> =
            mempool.entries(scope, mempool.ids(scope)?)?.into_iter().flatten().collect();
        entries.sort_by(in_order);
        for entry in entries {
            // The transaction may have left the mempool meanwhile.
            let Some(found) = mempool.transactions(scope, vec![entry.txid])?.pop().flatten() else { continue };
            let transaction = decode_transaction(&found.raw, entry.txid)?;
            let mut spent = Vec::with_capacity(transaction.input.len());
            for input in &transaction.input {
                spent.push(spent_by_mempool(self.context, input.previous_output)?);
            }
            let Some(spent) = spent.into_iter().collect::<Option<Vec<TxOut>>>() else { continue };
            self.add(&transaction, &spent, None)?;
        }
        Ok(())
    }
}

/// bitcoind's order of the mempool: by the number of ancestors, then by the feerate, highest first.
fn in_order(one: &MempoolEntry, other: &MempoolEntry) -> std::cmp::Ordering {
    let rate = |entry: &MempoolEntry, size: u64| i128::from(entry.modified_fee.to_sat()) * i128::from(size);
    let by_rate = rate(other, one.virtual_size).cmp(&rate(one, other.virtual_size));
    one.ancestor_count.cmp(&other.ancestor_count).then(by_rate).then(one.txid.cmp(&other.txid))
}

/// The previous output of an input in the mempool. The chain or the mempool has it.
fn spent_by_mempool(context: &Context<'_>, outpoint: OutPoint) -> Result<Option<TxOut>, RpcError> {
    if let Some(coin) = context.host.chain.coins(context.scope, vec![outpoint])?.pop().flatten() {
        return Ok(Some(coin.output));
    }
    let parent = context.host.mempool.transactions(context.scope, vec![outpoint.txid])?.pop().flatten();
    let parent = parent.and_then(|parent| transaction_from_bytes(&parent.raw));
    Ok(parent.and_then(|parent| parent.output.get(outpoint.vout as usize).cloned()))
}

fn head(kind: &str, output: &TxOut, block: Option<&BlockInfo>) -> Map<String, Value> {
    let mut event = Map::new();
    event.insert("type".into(), json!(kind));
    event.insert("amount".into(), amount::to_json(output.value));
    if let Some(block) = block {
        event.insert("blockhash".into(), json!(block.hash));
        event.insert("height".into(), json!(block.height));
    }
    event
}

pub fn get_descriptor_activity(context: &Context<'_>, reply: &Reply) -> Result<Value, RpcError> {
    let mut blocks = BTreeMap::new();
    for value in args::array(context.params.get(0))? {
        args::text(value)?;
        let hash = BlockHash::from_byte_array(params::hash(value, "blockhash")?);
        let info = find_block(context, BlockRef::Hash { hash })?;
        check_in_main_chain(&info)?;
        blocks.insert(info.height, info);
    }
    let needles = Needles::of(context, context.params.get(1))?;
    let with_mempool = context.params.flag_or(2, true)?;
    let mut activity = Activity { context, needles: &needles, events: Vec::new() };
    for info in blocks.values() {
        if !reply.is_wanted() {
            break;
        }
        activity.add_block(info)?;
    }
    if with_mempool {
        activity.add_mempool()?;
    }
    Ok(json!({"activity": activity.events}))
}
