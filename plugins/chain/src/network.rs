//! The network of peers that there is none of, in the shape that clients expect of one.

use std::time::{SystemTime, UNIX_EPOCH};

use outrigger_sdk::service::chain::Publication;
use outrigger_sdk::standard::release;
use outrigger_sdk::{RpcError, amount};
use serde_json::{Map, Value, json};

use crate::{Context, Outcome, args};

/// The release of bitcoind whose interface is served, as its `getnetworkinfo` counts.
const VERSION: u32 = release::PRESENT * 10_000;
/// The same as a user agent (BIP 14), with what serves it as a comment: clients read the release out of it.
const USER_AGENT: &str = concat!("/Satoshi:29.0.0(Outrigger:", env!("CARGO_PKG_VERSION"), ")/");
/// The version of the peer-to-peer protocol that this release speaks.
const PROTOCOL_VERSION: u32 = 70_016;
/// The kinds of network that bitcoind lists, and whether it reaches them where nothing else is set.
const NETWORKS: [(&str, bool); 5] =
    [("ipv4", true), ("ipv6", true), ("onion", false), ("i2p", false), ("cjdns", false)];
/// The services of a full node of this release: bit and name.
const SERVICES: [(u32, &str); 4] = [(0, "NETWORK"), (3, "WITNESS"), (10, "NETWORK_LIMITED"), (11, "P2P_V2")];
/// The period of bitcoind's upload target, in seconds.
const UPLOAD_TIMEFRAME: u32 = 24 * 60 * 60;

pub fn get_network_info(context: &Context<'_>) -> Outcome {
    let mempool = context.host.mempool.info(context.scope)?;
    let network = |(name, reached): &(&str, bool)| json!({"name": name, "limited": !reached, "reachable": reached, "proxy": "", "proxy_randomize_credentials": false});
    let services = SERVICES.iter().fold(0_u64, |all, (bit, _)| all | 1 << bit);
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("version", json!(VERSION));
    put("subversion", json!(USER_AGENT));
    put("protocolversion", json!(PROTOCOL_VERSION));
    // As of a node that has met no peers yet: its whole chain is there to be had, transactions are taken, and nothing keeps
    // peers away. Clients insist on all of that.
    put("localservices", json!(format!("{services:016x}")));
    put("localservicesnames", SERVICES.iter().map(|(_, name)| json!(name)).collect());
    put("localrelay", json!(true));
    put("timeoffset", json!(0));
    put("networkactive", json!(true));
    put("connections", json!(0));
    put("connections_in", json!(0));
    put("connections_out", json!(0));
    put("networks", NETWORKS.iter().map(network).collect());
    put("relayfee", amount::to_json(mempool.relay_feerate));
    put("incrementalfee", amount::to_json(mempool.incremental_feerate));
    put("localaddresses", json!([]));
    put("warnings", json!(context.host.chain.info(context.scope)?.warnings));
    Ok(Value::Object(object))
}

pub fn get_zmq_notifications(context: &Context<'_>) -> Outcome {
    let published = context.host.chain.publications(context.scope)?;
    let describe = |one: &Publication| json!({"type": one.topic, "address": one.address, "hwm": one.high_water_mark});
    Ok(published.iter().map(describe).collect())
}

pub fn get_node_addresses(context: &Context<'_>) -> Outcome {
    let count: i32 = context.params.given(0).map_or(Ok(1), args::integer)?;
    if count < 0 {
        return Err(RpcError::invalid_parameter("Address count out of range").into());
    }
    let network = context.params.given(1).map(args::text).transpose()?;
    match network.filter(|network| !NETWORKS.iter().any(|(known, _)| known.eq_ignore_ascii_case(network))) {
        Some(unknown) => Err(RpcError::invalid_parameter(format!("Network not recognized: {unknown}")).into()),
        None => Ok(json!([])),
    }
}

pub fn get_net_totals() -> Outcome {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(json!({
        "totalbytesrecv": 0,
        "totalbytessent": 0,
        "timemillis": u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        "uploadtarget": {
            "timeframe": UPLOAD_TIMEFRAME,
            "target": 0,
            "target_reached": false,
            "serve_historical_blocks": true,
            "bytes_left_in_cycle": 0,
            "time_left_in_cycle": 0,
        },
    }))
}
