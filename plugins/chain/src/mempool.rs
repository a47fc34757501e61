//! The mempool, and the network of peers that there is none of.

use bitcoin::Txid;
use bitcoin::hashes::Hash;
use outrigger_sdk::amount;
use outrigger_sdk::params;
use outrigger_sdk::service::mempool::MempoolEntry;
use serde_json::{Map, Value, json};

use crate::error::ChainError;
use crate::{Context, Outcome};

/// The release of bitcoind whose interface is served, as its `getnetworkinfo` counts.
const VERSION: u32 = 290_000;
/// The version of the peer-to-peer protocol that this release speaks.
const PROTOCOL_VERSION: u32 = 70_016;
/// The kinds of network that bitcoind lists.
const NETWORKS: [&str; 5] = ["ipv4", "ipv6", "onion", "i2p", "cjdns"];

/// Satoshi as an amount in a result.
fn money(satoshi: u64) -> Value {
    amount::to_json(i64::try_from(satoshi).unwrap_or(i64::MAX))
}

pub fn get_mempool_info(context: &Context<'_>) -> Outcome {
    let info = context.host.mempool.info(context.scope)?;
    Ok(json!({
        "loaded": true,
        "size": info.transactions,
        "bytes": info.virtual_size,
        "usage": info.usage,
        "total_fee": money(info.total_fee),
        "maxmempool": info.max_usage,
        "mempoolminfee": money(info.min_feerate),
        "minrelaytxfee": money(info.relay_feerate),
        "incrementalrelayfee": money(info.incremental_feerate),
        // Nothing waits to be sent to peers where there are none.
        "unbroadcastcount": 0,
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
        return Ok(json!({"txids": ids, "mempool_sequence": mempool.info(context.scope)?.sequence}));
    }
    if !verbose {
        return Ok(json!(ids));
    }
    let entries = mempool.entries(context.scope, ids)?;
    let shown = entries.iter().flatten().map(|entry| (entry.txid.to_string(), entry_json(entry)));
    Ok(Value::Object(shown.collect()))
}

pub fn get_mempool_entry(context: &Context<'_>) -> Outcome {
    let txid = Txid::from_byte_array(params::hash(context.params.get(0), "parameter 1")?);
    let entry = context.host.mempool.entries(context.scope, vec![txid])?.pop().flatten();
    entry.as_ref().map(entry_json).ok_or(ChainError::NotInMempool)
}

/// An entry in release 29's shape, then the fees as release 0.21 had them beside `fees`.
fn entry_json(entry: &MempoolEntry) -> Value {
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
            "base": money(entry.fee),
            "modified": amount::to_json(entry.modified_fee),
            "ancestor": amount::to_json(entry.ancestor_fees),
            "descendant": amount::to_json(entry.descendant_fees),
        },
        "depends": entry.depends,
        "spentby": entry.spent_by,
        "bip125-replaceable": entry.replaceable,
        "unbroadcast": false,
        "fee": money(entry.fee),
        "modifiedfee": amount::to_json(entry.modified_fee),
        "descendantfees": entry.descendant_fees,
        "ancestorfees": entry.ancestor_fees,
    })
}

pub fn get_network_info(context: &Context<'_>) -> Outcome {
    let mempool = context.host.mempool.info(context.scope)?;
    let network = |name: &&str| json!({"name": name, "limited": true, "reachable": false, "proxy": "", "proxy_randomize_credentials": false});
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("version", json!(VERSION));
    put("subversion", json!(concat!("/Outrigger:", env!("CARGO_PKG_VERSION"), "/")));
    put("protocolversion", json!(PROTOCOL_VERSION));
    put("localservices", json!("0000000000000000"));
    put("localservicesnames", json!([]));
    put("localrelay", json!(false));
    put("timeoffset", json!(0));
    put("networkactive", json!(false));
    put("connections", json!(0));
    put("connections_in", json!(0));
    put("connections_out", json!(0));
    put("networks", NETWORKS.iter().map(network).collect());
    put("relayfee", money(mempool.relay_feerate));
    put("incrementalfee", money(mempool.incremental_feerate));
    put("localaddresses", json!([]));
    put("warnings", json!([]));
    Ok(Value::Object(object))
}
