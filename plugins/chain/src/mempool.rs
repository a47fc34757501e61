//! The mempool, and the node's fee estimates.

use std::collections::{BTreeSet, HashMap};

use bitcoin::hashes::Hash;
use bitcoin::{OutPoint, Txid};
use outrigger_sdk::RpcError;
use outrigger_sdk::amount;
use outrigger_sdk::params::{self, Type};
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::service::mempool::{FeeEstimate, MempoolEntry};
use outrigger_sdk::spend::EstimateMode;
use serde_json::{Value, json};

use crate::error::ChainError;
use crate::limits::MAX_TARGET;
use crate::{Context, Outcome, args};

pub fn get_mempool_info(context: &Context<'_>) -> Outcome {
    let info = context.host.mempool.info(context.scope)?;
    Ok(json!({
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
        "fullrbf": true,
    }))
}

pub fn get_raw_mempool(context: &Context<'_>) -> Outcome {
    let (verbose, with_sequence) = (context.params.flag_or(0, false)?, context.params.flag_or(1, false)?);
    if verbose && with_sequence {
        return Err(ChainError::VerboseSequence);
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

/// Entries by their ids.
fn entries_json(context: &Context<'_>, entries: &[&MempoolEntry]) -> Outcome {
    let txids = entries.iter().map(|entry| entry.txid).collect();
    let unbroadcast = context.host.mempool.unbroadcast(context.scope, txids)?;
    let both = entries.iter().zip(unbroadcast);
    Ok(Value::Object(
        both.map(|(entry, unbroadcast)| (entry.txid.to_string(), entry_json(entry, unbroadcast))).collect(),
    ))
}

pub fn get_mempool_entry(context: &Context<'_>) -> Outcome {
    let txid = Txid::from_byte_array(params::hash(context.params.get(0), "parameter 1")?);
    let entry = entry(context, txid)?;
    let unbroadcast = context.host.mempool.unbroadcast(context.scope, vec![txid])?.contains(&true);
    Ok(entry_json(&entry, unbroadcast))
}

fn entry(context: &Context<'_>, txid: Txid) -> Result<MempoolEntry, ChainError> {
    context.host.mempool.entries(context.scope, vec![txid])?.pop().flatten().ok_or(ChainError::NotInMempool)
}

/// Which way to follow transactions that spend each other's outputs.
#[derive(Clone, Copy)]
pub enum Relatives {
    /// To those that a transaction builds on.
    Ancestors,
    /// To those that build on it.
    Descendants,
}

pub fn get_relatives(context: &Context<'_>, which: Relatives) -> Outcome {
    let txid = Txid::from_byte_array(params::hash(context.params.get(0), "parameter 1")?);
    let verbose = context.params.flag_or(1, false)?;
    let next = |entry: &MempoolEntry| match which {
        Relatives::Ancestors => entry.depends.clone(),
        Relatives::Descendants => entry.spent_by.clone(),
    };
    let mut found: HashMap<Txid, MempoolEntry> = HashMap::new();
    let mut wanted = next(&entry(context, txid)?);
    // One request for each generation.
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

pub fn save_mempool(context: &Context<'_>) -> Outcome {
    let filename = context.host.mempool.save(context.scope).map_err(|error| match error.kind {
        ErrorKind::Refused => ChainError::MempoolNotSaved,
        _ => error.into(),
    })?;
    Ok(json!({"filename": filename}))
}

pub fn estimate_smart_fee(context: &Context<'_>) -> Outcome {
    let target: i32 = args::integer(context.params.get(0))?;
    if !(1..=MAX_TARGET).contains(&target) {
        return Err(ChainError::ConfirmationTarget);
    }
    let mode = context.params.given(1).map_or(Ok("unset"), args::text)?;
    let mode = EstimateMode::named(mode).ok_or(ChainError::EstimateMode)?;
    // Unset is economical here.
    let conservative = mode == EstimateMode::Conservative;
    let FeeEstimate { feerate, blocks } =
        context.host.mempool.fee_estimate(context.scope, target.unsigned_abs(), conservative)?;
    Ok(match feerate {
        Some(feerate) => json!({"feerate": amount::to_json(feerate), "blocks": blocks}),
        None => json!({"errors": ["Insufficient data or no feerate found"], "blocks": blocks}),
    })
}

/// An entry in Bitcoin Core 29's shape.
fn entry_json(entry: &MempoolEntry, unbroadcast: bool) -> Value {
    json!({
        "vsize": entry.virtual_size,
        "weight": entry.weight,
        "time": entry.time,
        "height": entry.height,
        "descendantcount": entry.descendant_count,
        "descendantsize": entry.descendant_size,
        "ancestorcount": entry.ancestor_count,
        "ancestorsize": entry.ancestor_size,
        "wtxid": entry.wtxid,
        "fees": {
            "base": amount::to_json(entry.fee),
            "modified": amount::to_json(entry.modified_fee),
            "ancestor": amount::to_json(entry.ancestor_fees),
            "descendant": amount::to_json(entry.descendant_fees),
        },
        "depends": entry.depends,
        "spentby": entry.spent_by,
        "bip125-replaceable": entry.replaceable,
        "unbroadcast": unbroadcast,
    })
}

/// The outpoints that a call lists, each an object of nothing but `txid` and `vout`.
fn outpoints(values: &[Value]) -> Result<Vec<OutPoint>, ChainError> {
    const FIELDS: [(&str, Type); 2] = [("txid", Type::String), ("vout", Type::Number)];
    if values.is_empty() {
        return Err(ChainError::Create(", outputs are missing"));
    }
    let outpoint = |value: &Value| {
        let object = args::object(value)?;
        let field = |name: &str| object.get(name).unwrap_or(&Value::Null);
        for (name, wanted) in FIELDS {
            match Type::of(field(name)) {
                Type::Null => return Err(RpcError::type_error(format!("Missing {name}")).into()),
                got if got != wanted => {
                    let (got, wanted) = (got.name(), wanted.name());
                    let message = format!("JSON value of type {got} for field {name} is not of expected type {wanted}");
                    return Err(RpcError::type_error(message).into());
                }
                _ => {}
            }
        }
        if let Some(key) = object.keys().find(|key| !FIELDS.iter().any(|(name, _)| name == key)) {
            return Err(RpcError::type_error(format!("Unexpected key {key}")).into());
        }
        let txid = Txid::from_byte_array(params::hash_text(args::text(field("txid"))?, "txid")?);
        let vout: i32 = args::integer(field("vout"))?;
        let vout = u32::try_from(vout).map_err(|_| ChainError::Create(", vout cannot be negative"))?;
        Ok(OutPoint { txid, vout })
    };
    values.iter().map(outpoint).collect()
}

pub fn get_tx_spending_prevout(context: &Context<'_>) -> Outcome {
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
