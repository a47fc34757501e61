//! The RPCs about peers. The answers are those of a node without peers.

use std::time::{SystemTime, UNIX_EPOCH};

use outrigger_sdk::service::chain::Publication;
use outrigger_sdk::standard::release;
use outrigger_sdk::{RpcError, amount};
use serde_json::{Value, json};

use crate::{Context, args};

/// The release of Bitcoin Core whose interface the host serves, in the notation of its `getnetworkinfo`.
const VERSION: u32 = release::PRESENT * 10_000;
/// The user agent (BIP 14) of the same release, because clients parse it. The comment names the host.
const USER_AGENT: &str = concat!("/Satoshi:29.0.0(Outrigger:", env!("CARGO_PKG_VERSION"), ")/");
/// The peer-to-peer protocol of this release.
const PROTOCOL_VERSION: u32 = 70_016;
/// The networks in bitcoind's list, and whether it reaches them by default.
const NETWORKS: [(&str, bool); 5] =
    [("ipv4", true), ("ipv6", true), ("onion", false), ("i2p", false), ("cjdns", false)];
/// The services of a full node of this release, each with its bit and name.
const SERVICES: [(u32, &str); 4] = [(0, "NETWORK"), (3, "WITNESS"), (10, "NETWORK_LIMITED"), (11, "P2P_V2")];
/// The period of bitcoind's upload target, in seconds.
const UPLOAD_TIMEFRAME: u32 = 24 * 60 * 60;

pub fn get_network_info(context: &Context<'_>) -> Result<Value, RpcError> {
    let mempool = context.host.mempool.info(context.scope)?;
    let network = |(name, reached): &(&str, bool)| json!({"name": name, "limited": !reached, "reachable": reached, "proxy": "", "proxy_randomize_credentials": false});
    let services = SERVICES.iter().fold(0_u64, |all, (bit, _)| all | 1 << bit);
    // Clients insist on a node with full services, transaction relay and an active network.
    Ok(json!({
        "version": VERSION,
        "subversion": USER_AGENT,
        "protocolversion": PROTOCOL_VERSION,
        "localservices": format!("{services:016x}"),
        "localservicesnames": SERVICES.map(|(_, name)| name),
        "localrelay": true,
        "timeoffset": 0,
        "networkactive": true,
        "connections": 0,
        "connections_in": 0,
        "connections_out": 0,
        "networks": NETWORKS.iter().map(network).collect::<Value>(),
        "relayfee": amount::to_json(mempool.relay_feerate),
        "incrementalfee": amount::to_json(mempool.incremental_feerate),
        "localaddresses": [],
        "warnings": context.host.chain.info(context.scope)?.warnings,
    }))
}

pub fn get_zmq_notifications(context: &Context<'_>) -> Result<Value, RpcError> {
    let published = context.host.chain.publications(context.scope)?;
    let describe = |publication: &Publication| json!({"type": publication.topic, "address": publication.address, "hwm": publication.high_water_mark});
    Ok(published.iter().map(describe).collect())
}

pub fn get_node_addresses(context: &Context<'_>) -> Result<Value, RpcError> {
    let count: i32 = context.params.given(0).map_or(Ok(1), args::integer)?;
    if count < 0 {
        return Err(RpcError::invalid_parameter("Address count out of range"));
    }
    let network = context.params.given(1).map(args::text).transpose()?;
    match network.filter(|network| !NETWORKS.iter().any(|(known, _)| known.eq_ignore_ascii_case(network))) {
        Some(unknown) => Err(RpcError::invalid_parameter(format!("Network not recognized: {unknown}"))),
        None => Ok(json!([])),
    }
}

pub fn get_net_totals() -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    json!({
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
    })
}
