//! The RPCs about peers. They answer like a node without peers.

use std::time::{SystemTime, UNIX_EPOCH};

use outrigger_kit::without_nulls;
use outrigger_sdk::service::chain::Publication;
use outrigger_sdk::{Call, RpcError, amount, methods};
use serde_json::{Value, json};

use crate::ChainPlugin;

/// A release in the notation of `getnetworkinfo`: 290000 is 29.0.0.
const MAJOR: u32 = 10_000;
/// How many transactions per second a node announces to a peer. A full token bucket holds 30 seconds' worth.
const TX_SEND_RATE: u32 = 14;
/// The networks in bitcoind's list, and whether bitcoind can reach each by default.
const NETWORKS: [(&str, bool); 5] =
    [("ipv4", true), ("ipv6", true), ("onion", false), ("i2p", false), ("cjdns", false)];
/// The services of a full node, each with its bit and name.
const SERVICES: [(u32, &str); 4] = [(0, "NETWORK"), (3, "WITNESS"), (10, "NETWORK_LIMITED"), (11, "P2P_V2")];
/// The period of bitcoind's upload target, in seconds.
const UPLOAD_TIMEFRAME: u32 = 24 * 60 * 60;

#[methods(inline)]
impl ChainPlugin {
    /// Describes the network of a node without peers.
    ///
    /// # Result
    /// {"version": n, "subversion": "text", "protocolversion": n, ..., "connections": 0, ..., "relayfee": n,
    /// "incrementalfee": n, ...}    (json object)
    #[method(category = "Network")]
    fn getnetworkinfo(call: &Call<'_>) -> Result<Value, RpcError> {
        let mempool = call.host.mempool.info(call.scope)?;
        let network = |(name, reached): &(&str, bool)| json!({"name": name, "limited": !reached, "reachable": reached, "proxy": "", "proxy_randomize_credentials": false});
        let services = SERVICES.iter().fold(0_u64, |all, (bit, _)| all | 1 << bit);
        let rules = &call.rules;
        let bucket = json!({"backlog": 0, "count_tok": TX_SEND_RATE * 30, "size_tok": 12_000_000});
        // Clients parse the user agent (BIP 14). The comment names the host.
        let agent = format!("/Satoshi:{}.0.0(Outrigger:{})/", rules.release, env!("CARGO_PKG_VERSION"));
        // Clients require a node with full services, transaction relay and an active network.
        Ok(without_nulls(json!({
            "version": rules.release * MAJOR,
            "subversion": agent,
            "protocolversion": if rules.send_rates { 70_017 } else { 70_016 },
            "localservices": format!("{services:016x}"),
            "localservicesnames": SERVICES.map(|(_, name)| name),
            "localrelay": true,
            "timeoffset": 0,
            "tx_send_rate": rules.send_rates.then_some(TX_SEND_RATE),
            "inv_buckets": rules.send_rates.then(|| json!({"inbound": bucket, "outbound": bucket})),
            "networkactive": true,
            "connections": 0,
            "connections_in": 0,
            "connections_out": 0,
            "networks": NETWORKS.iter().map(network).collect::<Value>(),
            "relayfee": amount::to_json(mempool.relay_feerate),
            "incrementalfee": amount::to_json(mempool.incremental_feerate),
            "localaddresses": [],
            "warnings": call.host.chain.info(call.scope)?.warnings,
        })))
    }

    /// Gives the number of peers. It is always 0.
    ///
    /// # Result
    /// 0    (numeric)
    #[method(category = "Network")]
    fn getconnectioncount() -> Result<u32, RpcError> {
        Ok(0)
    }

    /// Lists the peers. The list is always empty.
    ///
    /// # Result
    /// []    (json array)
    #[method(category = "Network")]
    fn getpeerinfo() -> Result<Value, RpcError> {
        Ok(json!([]))
    }

    /// Lists the bans. The list is always empty.
    ///
    /// # Result
    /// []    (json array)
    #[method(category = "Network")]
    fn listbanned() -> Result<Value, RpcError> {
        Ok(json!([]))
    }

    /// Has no effect, because there are no peers.
    #[method(category = "Network")]
    fn ping() -> Result<(), RpcError> {
        Ok(())
    }

    /// Lists the ZMQ notifications and their addresses.
    ///
    /// # Result
    /// [{"type": "pubhashblock", "address": "tcp://...", "hwm": n}, ...]    (json array)
    #[method(category = "Zmq")]
    fn getzmqnotifications(call: &Call<'_>) -> Result<Value, RpcError> {
        let published = call.host.chain.publications(call.scope)?;
        let describe = |publication: &Publication| json!({"type": publication.topic, "address": publication.address, "hwm": publication.high_water_mark});
        Ok(published.iter().map(describe).collect())
    }

    /// Lists the addresses of other nodes. The list is always empty.
    ///
    /// * `count` - The greatest number of addresses; 0 for all.
    /// * `network` (default: all networks) - ipv4, ipv6, onion, i2p or cjdns.
    ///
    /// # Result
    /// []    (json array)
    ///
    /// # Example
    /// 8
    #[method(category = "Network")]
    fn getnodeaddresses(#[arg(default = 1)] count: i32, network: Option<&str>) -> Result<Value, RpcError> {
        if count < 0 {
            return Err(RpcError::invalid_parameter("Address count out of range"));
        }
        match network.filter(|network| !NETWORKS.iter().any(|(known, _)| known.eq_ignore_ascii_case(network))) {
            Some(unknown) => Err(RpcError::invalid_parameter(format!("Network not recognized: {unknown}"))),
            None => Ok(json!([])),
        }
    }

    /// Gives the traffic with peers. It is always 0.
    ///
    /// # Result
    /// {"totalbytesrecv": 0, "totalbytessent": 0, "timemillis": n, "uploadtarget": {...}}    (json object)
    #[method(category = "Network")]
    fn getnettotals() -> Result<Value, RpcError> {
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
}
