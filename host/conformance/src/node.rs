//! The node behind `node-rpc/1`: it answers a few methods as a node on regtest does, and has no others.

use outrigger_service::node_rpc::NodeReply;
use outrigger_service::wire::Blob;
use outrigger_service::{ErrorKind, NodeRpc, Result, Scope, ServiceError};
use outrigger_values::RpcErrorCode;
use serde_json::{Value, json};

/// The message of its error for a method that it does not have, by which a plugin's own is told apart from one that it passes on.
pub const UNKNOWN: &str = "Method not found (by the node of plugin check)";

/// The hash of a block, and that of another.
const BLOCK: &str = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206";
const ROOT: &str = "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b";

/// A node, and the methods that the manifest asks for, which are granted.
pub struct CannedNode {
    /// The methods.
    pub granted: Vec<String>,
}

impl NodeRpc for CannedNode {
    fn call(&self, _: Scope, method: String, _: Blob) -> Result<NodeReply> {
        if !self.granted.contains(&method) {
            return Err(ServiceError::new(ErrorKind::NotGranted, "The plugin may not call this method of the node"));
        }
        Ok(match answer(&method) {
            Some(result) => NodeReply::Result { json: Blob(result.to_string().into_bytes()) },
            None => NodeReply::Error { code: RpcErrorCode::METHOD_NOT_FOUND.0, message: UNKNOWN.to_owned() },
        })
    }
}

/// What it answers, whatever the arguments.
fn answer(method: &str) -> Option<Value> {
    Some(match method {
        "getblockcount" => json!(3),
        "getbestblockhash" | "getblockhash" => json!(BLOCK),
        "getconnectioncount" => json!(8),
        "getrawmempool" => json!([ROOT]),
        "getblockchaininfo" => json!({
            "chain": "regtest", "blocks": 3, "headers": 3, "bestblockhash": BLOCK, "difficulty": 4.6e-10, "time": 1_296_688_602,
            "mediantime": 1_296_688_602, "verificationprogress": 1, "initialblockdownload": false, "pruned": false, "warnings": []
        }),
        "getnetworkinfo" => json!({
            "version": 290_000, "subversion": "/Satoshi:29.0.0/", "protocolversion": 70_016, "connections": 8, "networkactive": true,
            "relayfee": 0.00001, "incrementalfee": 0.00001, "warnings": []
        }),
        "getmempoolinfo" => json!({
            "loaded": true, "size": 1, "bytes": 200, "usage": 1_200, "total_fee": 0.00001, "maxmempool": 300_000_000,
            "mempoolminfee": 0.00001, "minrelaytxfee": 0.00001
        }),
        "getmininginfo" => {
            json!({"blocks": 3, "difficulty": 4.6e-10, "networkhashps": 0, "pooledtx": 1, "chain": "regtest"})
        }
        "estimatesmartfee" => json!({"feerate": 0.0001, "blocks": 6}),
        "getblocktemplate" => json!({
            "capabilities": ["proposal"], "version": 0x2000_0000, "rules": ["csv", "!segwit"], "vbavailable": {}, "vbrequired": 0,
            "previousblockhash": BLOCK, "coinbaseaux": {}, "coinbasevalue": 5_000_001_000_u64, "longpollid": format!("{BLOCK}1"),
            "target": format!("7fffff{}", "0".repeat(58)), "mintime": 1_296_688_603, "mutable": ["time", "transactions"],
            "noncerange": "00000000ffffffff", "sigoplimit": 80_000, "sizelimit": 4_000_000, "weightlimit": 4_000_000,
            "curtime": 1_296_688_700, "bits": "207fffff", "height": 4, "default_witness_commitment": "6a24aa21a9ed",
            "transactions": [{
                "data": "00", "txid": ROOT, "hash": ROOT, "depends": [], "fee": 1_000, "sigops": 4, "weight": 800
            }]
        }),
        _ => return None,
    })
}
