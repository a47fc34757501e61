//! The RPCs about peers. The answers are those of a node without peers.

use std::time::{SystemTime, UNIX_EPOCH};

use outrigger_sdk::service::chain::Publication;
use outrigger_sdk::{RpcError, amount};
use serde_json::{Value, json};

use crate::{Context, args};

/// A release in the notation of `getnetworkinfo`: 290000 is 29.0.0.
const MAJOR: u32 = 10_000;
/// How many transactions a node announces to a peer, per second. Its idle buckets hold 30 seconds of them.
const TX_SEND_RATE: u32 = 14;
/// The networks in bitcoind's list, and whether it reaches them by default.
const NETWORKS: [(&str, bool); 5] =
    [("ipv4", true), ("ipv6", true), ("onion", false), ("i2p", false), ("cjdns", false)];
/// The services of a full node, each with its bit and name.
const SERVICES: [(u32, &str); 4] = [(0, "NETWORK"), (3, "WITNESS"), (10, "NETWORK_LIMITED"), (11, "P2P_V2")];
/// The period of bitcoind's upload target, in seconds.
const UPLOAD_TIMEFRAME: u32 = 24 * 60 * 60;

pub fn get_network_info(context: &Context<'_>) -> Result<Value, RpcError> {
    let mempool = context.host.mempool.info(context.scope)?;
    let network = |(name, reached): &(&str, bool)| json!({"name": name, "limited": !reached, "reachable": reached, "proxy": "", "proxy_randomize_credentials": false});
    let services = SERVICES.iter().fold(0_u64, |all, (bit, _)| all | 1 << bit);
    let rules = &context.rules;
    let bucket = json!({"backlog": 0, "count_tok": TX_SEND_RATE * 30, "size_tok": 12_000_000});
    // Clients parse the user agent (BIP 14). The comment names the host.
    let agent = format!("/Satoshi:{}.0.0(Outrigger:{})/", rules.release, env!("CARGO_PKG_VERSION"));
    // Clients insist on a node with full services, transaction relay and an active network.
    let mut info = json!({
        "version": rules.release * MAJOR,
        "subversion": agent,
        "protocolversion": if rules.send_rates { 70_017 } else { 70_016 },
        "localservices": format!("{services:016x}"),
        "localservicesnames": SERVICES.map(|(_, name)| name),
        "localrelay": true,
        "timeoffset": 0,
        "tx_send_rate": TX_SEND_RATE,
        "inv_buckets": {"inbound": bucket, "outbound": bucket},
        "networkactive": true,
        "connections": 0,
        "connections_in": 0,
        "connections_out": 0,
        "networks": NETWORKS.iter().map(network).collect::<Value>(),
        "relayfee": amount::to_json(mempool.relay_feerate),
        "incrementalfee": amount::to_json(mempool.incremental_feerate),
        "localaddresses": [],
        "warnings": context.host.chain.info(context.scope)?.warnings,
    });
    if let (false, Some(members)) = (rules.send_rates, info.as_object_mut()) {
        members.shift_remove("tx_send_rate");
        members.shift_remove("inv_buckets");
    }
    Ok(info)
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
