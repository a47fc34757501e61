//! A block's header as `getblockheader` and `getblock` show it.

use outrigger_kit::blocks::decode_header;
use outrigger_sdk::RpcError;
use outrigger_sdk::params::encode_hex;
use outrigger_sdk::service::chain::{BlockInfo, Tip};
use outrigger_sdk::standard::work;
use serde_json::{Map, Value, json};

/// The confirmations of a block: 1 for the tip, -1 off the best chain.
pub fn confirmations(info: &BlockInfo, tip: &Tip) -> i64 {
    if info.in_best_chain { i64::from(tip.height) - i64::from(info.height) + 1 } else { -1 }
}

/// A block's header as a JSON object, in bitcoind's order of keys.
pub fn header_json(info: &BlockInfo, tip: &Tip) -> Result<Map<String, Value>, RpcError> {
    let header = decode_header(info)?;
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("hash", json!(info.hash));
    put("confirmations", json!(confirmations(info, tip)));
    put("height", json!(info.height));
    put("version", json!(header.version.to_consensus()));
    put("versionHex", json!(format!("{:08x}", header.version.to_consensus())));
    put("merkleroot", json!(header.merkle_root));
    put("time", json!(header.time));
    put("mediantime", json!(info.median_time));
    put("nonce", json!(header.nonce));
    put("bits", json!(format!("{:08x}", header.bits.to_consensus())));
    put("target", json!(work::target_hex(header.bits)));
    put("difficulty", work::float(work::difficulty(header.bits)));
    put("chainwork", json!(encode_hex(&info.chain_work)));
    put("nTx", json!(info.transactions.unwrap_or_default()));
    if info.height > 0 {
        put("previousblockhash", json!(header.prev_blockhash));
    }
    if let Some(next) = info.next {
        put("nextblockhash", json!(next));
    }
    Ok(object)
}
