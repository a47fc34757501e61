//! The mempool, and the node's fee estimates.

use std::collections::{BTreeSet, HashMap};

use bitcoin::{OutPoint, Txid};
use outrigger_kit::spend::EstimateMode;
use outrigger_sdk::params::{self, Type};
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::service::mempool::{ClusterLimits, FeeEstimate, MempoolEntry};
use outrigger_sdk::standard::policy::MAX_DATA_CARRIER;
use outrigger_sdk::standard::release::Rules;
use outrigger_sdk::{Call, RpcError, amount, methods, typed};
use serde_json::{Map, Value, json};

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
        let mut totals = json!({
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
        });
        let rules = &call.rules;
        let Some(object) = totals.as_object_mut() else { return Ok(totals) };
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        if rules.full_rbf {
            put("fullrbf", json!(true));
        }
        if rules.relaxed_policy {
            put("permitbaremultisig", json!(true));
            put("maxdatacarriersize", json!(MAX_DATA_CARRIER));
        }
        if rules.mempool_clusters {
            let limits = info.clusters.unwrap_or(CLUSTERS);
            put("limitclustercount", json!(limits.count));
            put("limitclustersize", json!(limits.size));
            put("optimal", json!(true));
        }
        Ok(totals)
    }

    /// Lists the transactions of the mempool.
    ///
    /// * `verbose` - Whether to give the entry of each transaction, as in getmempoolentry, by id.
    /// * `mempool_sequence` - Whether to give the sequence of the mempool with the ids.
    ///
    /// # Result
    /// ["txid", ...]    (json array)
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
    ///
    /// # Example
    /// 1075db55d416d3ca199f55b6084e2115b9345e16c5cf302fc80e9d5fbf5d48d0
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
    ///
    /// # Example
    /// 1075db55d416d3ca199f55b6084e2115b9345e16c5cf302fc80e9d5fbf5d48d0
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
    ///
    /// # Example
    /// 1075db55d416d3ca199f55b6084e2115b9345e16c5cf302fc80e9d5fbf5d48d0
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
        let outpoints = outpoints(outputs)?;
        let spenders = call.host.mempool.spenders(call.scope, outpoints.clone())?;
        let entry = |(outpoint, spender): (&OutPoint, Option<Txid>)| {
            let mut entry = json!({"txid": outpoint.txid, "vout": outpoint.vout});
            if let (Some(spender), Some(entry)) = (spender, entry.as_object_mut()) {
                entry.insert("spendingtxid".into(), json!(spender));
            }
            entry
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
    Ok(Value::Object(entries.iter().map(member).collect()))
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

/// Adds the virtual sizes of a transaction: adjusted for signature operations, and in newer releases as in BIP 141.
pub fn put_sizes<T>(rules: &Rules, adjusted: u64, bip141: u64, mut put: impl FnMut(&str, Value) -> T) {
    if rules.adjusted_sizes {
        put("vsize_adjusted", json!(adjusted));
    }
    put("vsize", json!(adjusted));
    if rules.adjusted_sizes {
        put("vsize_bip141", json!(bip141));
    }
}

/// An entry with the keys of the call's release.
fn entry_json(call: &Call<'_>, entry: &MempoolEntry, chunk: Option<&Chunk>) -> Value {
    let (rules, mut object) = (&call.rules, Map::new());
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put_sizes(rules, entry.virtual_size, entry.weight.to_vbytes_ceil(), &mut put);
    put("weight", json!(entry.weight));
    put("time", json!(entry.time));
    put("height", json!(entry.height));
    put("descendantcount", json!(entry.descendant_count));
    put("descendantsize", json!(entry.descendant_size));
    put("ancestorcount", json!(entry.ancestor_count));
    put("ancestorsize", json!(entry.ancestor_size));
    put("wtxid", json!(entry.wtxid));
    let mut fees = json!({
        "base": amount::to_json(entry.fee),
        "modified": amount::to_json(entry.modified_fee),
        "ancestor": amount::to_json(entry.ancestor_fees),
        "descendant": amount::to_json(entry.descendant_fees),
    });
    if let Some((chunk, fees)) = chunk.zip(fees.as_object_mut()) {
        put("chunkweight", json!(chunk.weight));
        fees.insert("chunk".to_owned(), amount::to_json(chunk.fee));
    }
    put("fees", fees);
    put("depends", json!(entry.depends));
    put("spentby", json!(entry.spent_by));
    if rules.bip125_key {
        put("bip125-replaceable", json!(entry.replaceable));
    }
    put("unbroadcast", json!(entry.unbroadcast));
    Value::Object(object)
}

/// Parses an array of outpoints: objects with exactly the members `txid` and `vout`.
fn outpoints(values: &[Value]) -> Result<Vec<OutPoint>, RpcError> {
    if values.is_empty() {
        return Err(RpcError::invalid_parameter("Invalid parameter, outputs are missing"));
    }
    let outpoint = |value: &Value| {
        let object = typed::object(value)?;
        let txid = typed::member(object, "txid", Type::String)?;
        let vout = typed::member(object, "vout", Type::Number)?;
        typed::check_options(object, &[("txid", None), ("vout", None)])?;
        let txid = params::hash(txid, "txid")?;
        let vout: i32 = typed::integer(vout)?;
        let negative = |_| RpcError::invalid_parameter("Invalid parameter, vout cannot be negative");
        Ok(OutPoint { txid, vout: u32::try_from(vout).map_err(negative)? })
    };
    values.iter().map(outpoint).collect()
}
