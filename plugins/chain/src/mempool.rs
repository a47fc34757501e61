//! The mempool, and the node's fee estimates.

use std::collections::{BTreeSet, HashMap};

use bitcoin::{OutPoint, Txid};
use outrigger_kit::spend::EstimateMode;
use outrigger_kit::{outpoint, without_nulls};
use outrigger_sdk::params;
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::service::mempool::{ClusterLimits, FeeEstimate, MempoolEntry};
use outrigger_sdk::standard::policy::MAX_DATA_CARRIER;
use outrigger_sdk::{Call, RpcError, amount, methods};
use serde_json::{Value, json};

use crate::ChainPlugin;
use crate::chunks::{Chunk, chunks};

/// Bitcoin Core's default limits of a cluster. The embedded mempool reports them but enforces only ancestor and descendant limits.
pub const CLUSTERS: ClusterLimits = ClusterLimits { count: 64, size: 101_000 };

/// The maximum confirmation target, in blocks.
const MAX_TARGET: i32 = 1008;

#[methods]
impl ChainPlugin {
    /// Gives the totals and the limits of the mempool.
    ///
    /// # Result
    /// {"loaded": true, "size": n, "bytes": n, "usage": n, "total_fee": n, "maxmempool": n, "mempoolminfee": n,
    /// "minrelaytxfee": n, "incrementalrelayfee": n, "unbroadcastcount": n, "fullrbf": true}    (json object)
    /// Feerates are in BTC per 1000 virtual bytes.
    #[method(category = "Blockchain", inline)]
    fn getmempoolinfo(call: &Call<'_>) -> Result<Value, RpcError> {
        let info = call.host.mempool.info(call.scope)?;
        let rules = &call.rules;
        let limits = rules.mempool_clusters.then(|| info.clusters.unwrap_or(CLUSTERS));
        Ok(without_nulls(json!({
            "loaded": true,
            "size": info.transactions,
            "bytes": info.virtual_size,
            "usage": info.usage,
            "total_fee": amount::to_json(info.total_fee),
            "maxmempool": info.max_usage,
            "mempoolminfee": amount::to_json(info.min_feerate),
            "minrelaytxfee": amount::to_json(info.relay_feerate),
            "incrementalrelayfee": amount::to_json(info.incremental_feerate),
            // Without peers, no transaction counts as broadcast.
            "unbroadcastcount": info.unbroadcast,
            "fullrbf": rules.full_rbf.then_some(true),
            "permitbaremultisig": rules.relaxed_policy.then_some(true),
            "maxdatacarriersize": rules.relaxed_policy.then_some(MAX_DATA_CARRIER),
            "limitclustercount": limits.as_ref().map(|limits| limits.count),
            "limitclustersize": limits.as_ref().map(|limits| limits.size),
            "optimal": rules.mempool_clusters.then_some(true),
        })))
    }

    /// Lists the transactions of the mempool.
    ///
    /// * `verbose` - Whether to give the entry of each transaction, as in getmempoolentry, by id.
    /// * `mempool_sequence` - Whether to give the sequence of the mempool with the ids.
    ///
    /// # Result
    /// ["txid", ...]    (json array)
    /// {"txid": {...}, ...}    (json object) With verbose=true.
    ///
    /// # Example
    /// true    (boolean)
    #[method(category = "Blockchain")]
    fn getrawmempool(
        call: &Call<'_>,
        #[arg(default = false)] verbose: bool,
        #[arg(default = false)] mempool_sequence: bool,
    ) -> Result<Value, RpcError> {
        if verbose && mempool_sequence {
            return Err(RpcError::invalid_parameter("Verbose results cannot contain mempool sequence values."));
        }
        let mempool = &call.host.mempool;
        let ids = mempool.ids(call.scope)?;
        if mempool_sequence {
            return Ok(json!({"txids": ids, "mempool_sequence": mempool.info(call.scope)?.moves}));
        }
        if !verbose {
            return Ok(json!(ids));
        }
        let entries = mempool.entries(call.scope, ids)?;
        entries_json(call, &entries.iter().flatten().collect::<Vec<_>>())
    }

    /// Describes a transaction of the mempool.
    ///
    /// * `txid` - The transaction's id.
    ///
    /// # Result
    /// {"vsize": n, "weight": n, "time": n, "height": n, ..., "fees": {...}, "depends": [...], "spentby": [...],
    /// "bip125-replaceable": bool, "unbroadcast": bool}    (json object)
    #[method(category = "Blockchain")]
    fn getmempoolentry(call: &Call<'_>, txid: &str) -> Result<Value, RpcError> {
        let txid: Txid = params::hash_text(txid, "parameter 1")?;
        let entry = entry(call, txid)?;
        let mut entries = entries_json(call, &[&entry])?;
        Ok(entries.get_mut(txid.to_string()).map(Value::take).unwrap_or_default())
    }

    /// Lists the ancestors of a transaction in the mempool.
    ///
    /// * `txid` - The transaction's id.
    /// * `verbose` - Whether to give the entry of each transaction, as in getmempoolentry, by id.
    ///
    /// # Result
    /// ["txid", ...]    (json array)
    /// {"txid": {...}, ...}    (json object) With verbose=true.
    #[method(category = "Blockchain")]
    fn getmempoolancestors(
        call: &Call<'_>,
        txid: &str,
        #[arg(default = false)] verbose: bool,
    ) -> Result<Value, RpcError> {
        relatives(call, txid, verbose, |entry| &entry.depends)
    }

    /// Lists the descendants of a transaction in the mempool.
    ///
    /// * `txid` - The transaction's id.
    /// * `verbose` - Whether to give the entry of each transaction, as in getmempoolentry, by id.
    ///
    /// # Result
    /// ["txid", ...]    (json array)
    /// {"txid": {...}, ...}    (json object) With verbose=true.
    #[method(category = "Blockchain")]
    fn getmempooldescendants(
        call: &Call<'_>,
        txid: &str,
        #[arg(default = false)] verbose: bool,
    ) -> Result<Value, RpcError> {
        relatives(call, txid, verbose, |entry| &entry.spent_by)
    }

    /// Gives the transactions of the mempool that spend some outputs.
    ///
    /// * `outputs` - The outputs: objects with txid and vout.
    ///
    /// # Result
    /// [{"txid": "...", "vout": n, "spendingtxid": "..."}, ...]    (json array) spendingtxid is missing if no
    /// transaction of the mempool spends the output.
    ///
    /// # Example
    /// '[{"txid": "1075db55d416d3ca199f55b6084e2115b9345e16c5cf302fc80e9d5fbf5d48d0", "vout": 0}]'
    #[method(category = "Blockchain")]
    fn gettxspendingprevout(call: &Call<'_>, outputs: &[Value]) -> Result<Value, RpcError> {
        if outputs.is_empty() {
            return Err(RpcError::invalid_parameter("Invalid parameter, outputs are missing"));
        }
        let outpoints = outputs.iter().map(|output| outpoint(output, true)).collect::<Result<Vec<_>, _>>()?;
        let spenders = call.host.mempool.spenders(call.scope, outpoints.clone())?;
        let entry = |(outpoint, spender): (&OutPoint, Option<Txid>)| {
            without_nulls(json!({"txid": outpoint.txid, "vout": outpoint.vout, "spendingtxid": spender}))
        };
        Ok(outpoints.iter().zip(spenders).map(entry).collect())
    }

    /// Writes the mempool to mempool.dat in the data directory of the chain. bitcoind can read the file.
    ///
    /// # Result
    /// {"filename": "path"}    (json object)
    #[method(category = "Blockchain")]
    fn savemempool(call: &Call<'_>) -> Result<Value, RpcError> {
        let filename = call.host.mempool.save(call.scope).map_err(|error| match error.kind {
            ErrorKind::Refused => RpcError::misc("Unable to dump mempool to disk"),
            _ => error.into(),
        })?;
        Ok(json!({"filename": filename}))
    }

    /// Estimates the feerate with which a transaction confirms within some blocks.
    ///
    /// * `conf_target` - The number of blocks, from 1 to 1008.
    /// * `estimate_mode` - unset, economical or conservative.
    ///
    /// # Result
    /// {"feerate": n (in BTC per 1000 virtual bytes), "errors": ["text"] (without an estimate), "blocks": n (the
    /// target of the estimate)}    (json object)
    ///
    /// # Example
    /// 6
    #[method(category = "Util", inline)]
    fn estimatesmartfee(
        call: &Call<'_>,
        conf_target: i32,
        #[arg(default = "economical")] estimate_mode: &str,
    ) -> Result<Value, RpcError> {
        if !(1..=MAX_TARGET).contains(&conf_target) {
            let message = format!("Invalid conf_target, must be between 1 and {MAX_TARGET}");
            return Err(RpcError::invalid_parameter(message));
        }
        let unknown = "Invalid estimate_mode parameter, must be one of: \"unset\", \"economical\", \"conservative\"";
        let mode = EstimateMode::named(estimate_mode).ok_or_else(|| RpcError::invalid_parameter(unknown))?;
        // An unset mode means economical.
        let conservative = mode == EstimateMode::Conservative;
        let FeeEstimate { feerate, blocks } =
            call.host.mempool.fee_estimate(call.scope, conf_target.unsigned_abs(), conservative)?;
        Ok(match feerate {
            Some(feerate) => json!({"feerate": amount::to_json(feerate), "blocks": blocks}),
            None => json!({"errors": ["Insufficient data or no feerate found"], "blocks": blocks}),
        })
    }
}

/// The entries, with their ids as keys.
fn entries_json(call: &Call<'_>, entries: &[&MempoolEntry]) -> Result<Value, RpcError> {
    let chunks = if call.rules.mempool_clusters { chunks(call, entries)? } else { HashMap::new() };
    let member = |entry: &&MempoolEntry| (entry.txid.to_string(), entry_json(call, entry, chunks.get(&entry.txid)));
    Ok(entries.iter().map(member).collect())
}

fn entry(call: &Call<'_>, txid: Txid) -> Result<MempoolEntry, RpcError> {
    let entry = call.host.mempool.entries(call.scope, vec![txid])?.pop().flatten();
    entry.ok_or_else(|| RpcError::not_found("Transaction not in mempool"))
}

/// The entries reachable from a transaction through `next`: their ids, or with `verbose` the entries by id.
fn relatives(
    call: &Call<'_>,
    txid: &str,
    verbose: bool,
    next: impl Fn(&MempoolEntry) -> &Vec<Txid>,
) -> Result<Value, RpcError> {
    let txid = params::hash_text(txid, "parameter 1")?;
    let mut found: HashMap<Txid, MempoolEntry> = HashMap::new();
    let mut wanted = next(&entry(call, txid)?).clone();
    // Each generation takes one request.
    while !wanted.is_empty() {
        let generation: Vec<MempoolEntry> =
            call.host.mempool.entries(call.scope, wanted)?.into_iter().flatten().collect();
        let further: BTreeSet<Txid> = generation.iter().flat_map(&next).copied().collect();
        found.extend(generation.into_iter().map(|entry| (entry.txid, entry)));
        wanted = further.into_iter().filter(|txid| !found.contains_key(txid)).collect();
    }
    let mut relatives: Vec<&MempoolEntry> = found.values().collect();
    relatives.sort_by_key(|entry| entry.txid);
    if verbose {
        return entries_json(call, &relatives);
    }
    Ok(relatives.iter().map(|entry| json!(entry.txid)).collect())
}

/// An entry with the keys of the call's release.
fn entry_json(call: &Call<'_>, entry: &MempoolEntry, chunk: Option<&Chunk>) -> Value {
    let rules = &call.rules;
    let fees = json!({
        "base": amount::to_json(entry.fee),
        "modified": amount::to_json(entry.modified_fee),
        "ancestor": amount::to_json(entry.ancestor_fees),
        "descendant": amount::to_json(entry.descendant_fees),
        "chunk": chunk.map(|chunk| amount::to_json(chunk.fee)),
    });
    without_nulls(json!({
        "vsize_adjusted": rules.adjusted_sizes.then_some(entry.virtual_size),
        "vsize": entry.virtual_size,
        "vsize_bip141": rules.adjusted_sizes.then(|| entry.weight.to_vbytes_ceil()),
        "weight": entry.weight,
        "time": entry.time,
        "height": entry.height,
        "descendantcount": entry.descendant_count,
        "descendantsize": entry.descendant_size,
        "ancestorcount": entry.ancestor_count,
        "ancestorsize": entry.ancestor_size,
        "wtxid": entry.wtxid,
        "chunkweight": chunk.map(|chunk| chunk.weight),
        "fees": without_nulls(fees),
        "depends": entry.depends,
        "spentby": entry.spent_by,
        "bip125-replaceable": rules.bip125_key.then_some(entry.replaceable),
        "unbroadcast": entry.unbroadcast,
    }))
}
