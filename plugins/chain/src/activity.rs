//! `getdescriptoractivity`: receipts and spends of the scripts of descriptors, in some blocks and in the mempool.

use std::collections::BTreeMap;

use bitcoin::{OutPoint, Transaction, TxOut};
use outrigger_kit::blocks::find_block;
use outrigger_kit::without_nulls;
use outrigger_sdk::service::chain::{BlockInfo, BlockRef};
use outrigger_sdk::service::mempool::MempoolEntry;
use outrigger_sdk::standard::{script_json, transaction_from_bytes};
use outrigger_sdk::{Call, RpcError, amount, methods, params, typed};
use serde_json::{Value, json};

use crate::ChainPlugin;
use crate::blocks::block_not_available;
use crate::filters::Connected;
use crate::scan::Needles;
use crate::statistics::check_in_main_chain;
use crate::transactions::decode_transaction;

struct Activity<'a> {
    call: &'a Call<'a>,
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
            self.events.push(without_nulls(json!({
                "type": "spend",
                "amount": amount::to_json(output.value),
                "blockhash": block.map(|block| block.hash),
                "height": block.map(|block| block.height),
                "spend_txid": txid,
                "spend_vin": index,
                "prevout_txid": input.previous_output.txid,
                "prevout_vout": input.previous_output.vout,
                "prevout_spk": script_json(&output.script_pubkey, self.call.network()?),
            })));
        }
        let outputs = transaction.output.iter().enumerate();
        for (index, output) in outputs.filter(|(_, output)| is_wanted(output)) {
            self.events.push(without_nulls(json!({
                "type": "receive",
                "amount": amount::to_json(output.value),
                "blockhash": block.map(|block| block.hash),
                "height": block.map(|block| block.height),
                "txid": txid,
                "vout": index,
                "output_spk": script_json(&output.script_pubkey, self.call.network()?),
            })));
        }
        Ok(())
    }

    fn add_block(&mut self, info: &BlockInfo) -> Result<(), RpcError> {
        let connected = Connected::read(self.call, info)?.ok_or_else(block_not_available)?;
        for (index, transaction) in connected.block.txdata.iter().enumerate() {
            let coins = connected.spent.get(index).map_or(&[][..], |spent| &spent.coins);
            let spent: Vec<TxOut> = coins.iter().map(|coin| coin.output.clone()).collect();
            self.add(transaction, &spent, Some(info))?;
        }
        Ok(())
    }

    fn add_mempool(&mut self) -> Result<(), RpcError> {
        let (mempool, scope) = (&self.call.host.mempool, self.call.scope);
        let mut entries: Vec<MempoolEntry> =
            mempool.entries(scope, mempool.ids(scope)?)?.into_iter().flatten().collect();
        entries.sort_by(in_order);
        for entry in entries {
            // The transaction may have left the mempool meanwhile.
            let Some(found) = mempool.transactions(scope, vec![entry.txid])?.pop().flatten() else { continue };
            let transaction = decode_transaction(&found, entry.txid)?;
            let spent = transaction.input.iter().map(|input| spent_by_mempool(self.call, input.previous_output));
            let Some(spent) = spent.collect::<Result<Option<Vec<TxOut>>, _>>()? else { continue };
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

/// The output that an input in the mempool spends, from the chain or the mempool; `None` if neither still has it.
fn spent_by_mempool(call: &Call<'_>, outpoint: OutPoint) -> Result<Option<TxOut>, RpcError> {
    if let Some(coin) = call.host.chain.coins(call.scope, vec![outpoint])?.pop().flatten() {
        return Ok(Some(coin.output));
    }
    let parent = call.host.mempool.transactions(call.scope, vec![outpoint.txid])?.pop().flatten();
    let parent = parent.and_then(|parent| transaction_from_bytes(&parent));
    Ok(parent.and_then(|parent| parent.output.get(outpoint.vout as usize).cloned()))
}

#[methods(category = "Blockchain", long_running, private_keys)]
impl ChainPlugin {
    /// Lists the receipts and spends of descriptors in some blocks and in the mempool.
    ///
    /// * `blockhashes` - Blocks of the best chain.
    /// * `scanobjects` - The descriptors. Each is a text, or an object with desc and range. A range is the last
    ///   index, or [first, last]; the default is 1000.
    /// * `include_mempool` - Whether to include the mempool.
    ///
    /// # Result
    /// {"activity": [{"type": "spend", "amount": n, "blockhash": "hash", "height": n, "spend_txid": "txid",
    /// "spend_vin": n, "prevout_txid": "txid", "prevout_vout": n, "prevout_spk": {...}}, {"type": "receive",
    /// "amount": n, "blockhash": "hash", "height": n, "txid": "txid", "vout": n, "output_spk": {...}}, ...]}    (json
    /// object) Unconfirmed events have no blockhash and no height.
    ///
    /// # Example
    /// '["00000000c937983704a73af28acdec37b049d214adbda81d7e2a3dd146f6ed09"]' '["raw(51)"]'
    #[method]
    fn getdescriptoractivity(
        call: &Call<'_>,
        blockhashes: &[Value],
        scanobjects: &[Value],
        #[arg(default = true)] include_mempool: bool,
    ) -> Result<Value, RpcError> {
        let mut blocks = BTreeMap::new();
        for value in blockhashes {
            let hash = params::hash_text(typed::text(value)?, "blockhash")?;
            let info = find_block(call, BlockRef::Hash { hash })?;
            check_in_main_chain(&info)?;
            blocks.insert(info.height, info);
        }
        let needles = Needles::of(call, scanobjects)?;
        let mut activity = Activity { call, needles: &needles, events: Vec::new() };
        for info in blocks.values() {
            if !call.is_wanted() {
                break;
            }
            activity.add_block(info)?;
        }
        if include_mempool {
            activity.add_mempool()?;
        }
        Ok(json!({"activity": activity.events}))
    }
}
