//! The mempool, and the node's fee estimates.

use std::collections::{BTreeSet, HashMap};

use bitcoin::hashes::Hash;
use bitcoin::{OutPoint, Txid};
use outrigger_sdk::params::{self, Type};
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::service::mempool::{ClusterLimits, FeeEstimate, MempoolEntry};
use outrigger_sdk::spend::EstimateMode;
use outrigger_sdk::standard::policy::MAX_DATA_CARRIER;
use outrigger_sdk::standard::release::Rules;
use outrigger_sdk::{RpcError, amount, typed};
use serde_json::{Map, Value, json};

use crate::chunks::{Chunk, chunks};
use crate::{Context, args};

/// Bitcoin Core's default limits of a cluster. The embedded mempool reports them but enforces only ancestor and descendant limits.
pub const CLUSTERS: ClusterLimits = ClusterLimits { count: 64, size: 101_000 };

/// The greatest confirmation target, in blocks.
const MAX_TARGET: i32 = 1008;

pub fn get_mempool_info(context: &Context<'_>) -> Result<Value, RpcError> {
    let info = context.host.mempool.info(context.scope)?;
    let mut told = json!({
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
    let rules = &context.rules;
    let Some(object) = told.as_object_mut() else { return Ok(told) };
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
    Ok(told)
}

pub fn get_raw_mempool(context: &Context<'_>) -> Result<Value, RpcError> {
    let (verbose, with_sequence) = (context.params.flag_or(0, false)?, context.params.flag_or(1, false)?);
    if verbose && with_sequence {
        return Err(RpcError::invalid_parameter("Verbose results cannot contain mempool sequence values."));
    }
    let mempool = &context.host.mempool;
    let ids = mempool.ids(context.scope)?;
    if with_sequence {
        return Ok(json!({"txids": ids, "mempool_sequence": mempool.info(context.scope)?.moves}));
    }
    if !verbose {
        return Ok(json!(ids));
    }
    let entries = mempool.entries(context.scope, ids)?;
    entries_json(context, &entries.iter().flatten().collect::<Vec<_>>())
}

/// The entries, with their ids as keys.
fn entries_json(context: &Context<'_>, entries: &[&MempoolEntry]) -> Result<Value, RpcError> {
    let txids = entries.iter().map(|entry| entry.txid).collect();
    let unbroadcast = context.host.mempool.unbroadcast(context.scope, txids)?;
    let chunks = if context.rules.mempool_clusters { chunks(context, entries)? } else { HashMap::new() };
    let entries = entries.iter().zip(unbroadcast);
    let member = |(entry, unbroadcast): (&&MempoolEntry, bool)| {
        (entry.txid.to_string(), entry_json(context, entry, unbroadcast, chunks.get(&entry.txid)))
    };
    Ok(Value::Object(entries.map(member).collect()))
}

pub fn get_mempool_entry(context: &Context<'_>) -> Result<Value, RpcError> {
    let txid = Txid::from_byte_array(params::hash(context.params.get(0), "parameter 1")?);
    let entry = entry(context, txid)?;
    let mut told = entries_json(context, &[&entry])?;
    Ok(told.get_mut(txid.to_string()).map(Value::take).unwrap_or_default())
}

fn entry(context: &Context<'_>, txid: Txid) -> Result<MempoolEntry, RpcError> {
    let entry = context.host.mempool.entries(context.scope, vec![txid])?.pop().flatten();
    entry.ok_or_else(|| RpcError::not_found("Transaction not in mempool"))
}

#[derive(Clone, Copy)]
pub enum Relatives {
    Ancestors,
    Descendants,
}

pub fn get_relatives(context: &Context<'_>, which: Relatives) -> Result<Value, RpcError> {
    let txid = Txid::from_byte_array(params::hash(context.params.get(0), "parameter 1")?);
    let verbose = context.params.flag_or(1, false)?;
    let next = |entry: &MempoolEntry| match which {
        Relatives::Ancestors => entry.depends.clone(),
        Relatives::Descendants => entry.spent_by.clone(),
    };
    let mut found: HashMap<Txid, MempoolEntry> = HashMap::new();
    let mut wanted = next(&entry(context, txid)?);
    // Each generation takes one request.
    while !wanted.is_empty() {
        let generation: Vec<MempoolEntry> =
            context.host.mempool.entries(context.scope, wanted)?.into_iter().flatten().collect();
        let further: BTreeSet<Txid> = generation.iter().flat_map(next).collect();
        found.extend(generation.into_iter().map(|entry| (entry.txid, entry)));
        wanted = further.into_iter().filter(|txid| !found.contains_key(txid)).collect();
    }
    let mut relatives: Vec<&MempoolEntry> = found.values().collect();
    relatives.sort_by_key(|entry| entry.txid);
    if verbose {
        return entries_json(context, &relatives);
    }
    Ok(relatives.iter().map(|entry| json!(entry.txid)).collect())
}

pub fn save_mempool(context: &Context<'_>) -> Result<Value, RpcError> {
    let filename = context.host.mempool.save(context.scope).map_err(|error| match error.kind {
        ErrorKind::Refused => RpcError::misc("Unable to dump mempool to disk"),
        _ => error.into(),
    })?;
    Ok(json!({"filename": filename}))
}

pub fn estimate_smart_fee(context: &Context<'_>) -> Result<Value, RpcError> {
    let target: i32 = args::integer(context.params.get(0))?;
    if !(1..=MAX_TARGET).contains(&target) {
        let message = format!("Invalid conf_target, must be between 1 and {MAX_TARGET}");
        return Err(RpcError::invalid_parameter(message));
    }
    let mode = context.params.given(1).map_or(Ok("unset"), args::text)?;
    let unknown = "Invalid estimate_mode parameter, must be one of: \"unset\", \"economical\", \"conservative\"";
    let mode = EstimateMode::named(mode).ok_or_else(|| RpcError::invalid_parameter(unknown))?;
    // An unset mode means economical.
    let conservative = mode == EstimateMode::Conservative;
    let FeeEstimate { feerate, blocks } =
        context.host.mempool.fee_estimate(context.scope, target.unsigned_abs(), conservative)?;
    Ok(match feerate {
        Some(feerate) => json!({"feerate": amount::to_json(feerate), "blocks": blocks}),
        None => json!({"errors": ["Insufficient data or no feerate found"], "blocks": blocks}),
    })
}

/// An entry in the shape of the release.
/// Adds the virtual sizes of a transaction: adjusted by its signature operations, and by BIP 141.
pub fn put_sizes<T>(rules: &Rules, adjusted: u64, bip141: u64, mut put: impl FnMut(&str, Value) -> T) {
    if rules.adjusted_sizes {
        put("vsize_adjusted", json!(adjusted));
    }
    put("vsize", json!(adjusted));
    if rules.adjusted_sizes {
        put("vsize_bip141", json!(bip141));
    }
}

fn entry_json(context: &Context<'_>, entry: &MempoolEntry, unbroadcast: bool, chunk: Option<&Chunk>) -> Value {
    let (rules, mut object) = (&context.rules, Map::new());
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
    put("unbroadcast", json!(unbroadcast));
    Value::Object(object)
}

/// The outpoints of an array. Each is an object with the members `txid` and `vout` alone.
fn outpoints(values: &[Value]) -> Result<Vec<OutPoint>, RpcError> {
    if values.is_empty() {
        return Err(RpcError::invalid_parameter("Invalid parameter, outputs are missing"));
    }
    let outpoint = |value: &Value| {
        let object = args::object(value)?;
        let txid = typed::member(object, "txid", Type::String)?;
        let vout = typed::member(object, "vout", Type::Number)?;
        typed::check_options(object, &[("txid", None), ("vout", None)])?;
        let txid = Txid::from_byte_array(params::hash(txid, "txid")?);
        let vout: i32 = args::integer(vout)?;
        let negative = |_| RpcError::invalid_parameter("Invalid parameter, vout cannot be negative");
        Ok(OutPoint { txid, vout: u32::try_from(vout).map_err(negative)? })
    };
    values.iter().map(outpoint).collect()
}

pub fn get_tx_spending_prevout(context: &Context<'_>) -> Result<Value, RpcError> {
    let outpoints = outpoints(args::array(context.params.get(0))?)?;
    let spenders = context.host.mempool.spenders(context.scope, outpoints.clone())?;
    let entry = |(outpoint, spender): (&OutPoint, Option<Txid>)| {
        let mut entry = json!({"txid": outpoint.txid, "vout": outpoint.vout});
        if let (Some(spender), Some(entry)) = (spender, entry.as_object_mut()) {
            entry.insert("spendingtxid".into(), json!(spender));
        }
        entry
    };
    Ok(outpoints.iter().zip(spenders).map(entry).collect())
}
