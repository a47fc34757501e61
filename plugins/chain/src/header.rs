//! A block's header as `getblockheader` and `getblock` show it.

use outrigger_kit::blocks::decode_header;
use outrigger_kit::without_nulls;
use outrigger_sdk::RpcError;
use outrigger_sdk::params::encode_hex;
use outrigger_sdk::service::chain::{BlockInfo, Tip};
use outrigger_sdk::standard::work;
use serde_json::{Value, json};

/// The confirmations of a block: 1 for the tip, -1 off the best chain.
pub fn confirmations(info: &BlockInfo, tip: &Tip) -> i64 {
    if info.in_best_chain { i64::from(tip.height) - i64::from(info.height) + 1 } else { -1 }
}

/// A block's header as a JSON object, in bitcoind's order of keys.
pub fn header_json(info: &BlockInfo, tip: &Tip) -> Result<Value, RpcError> {
    let header = decode_header(info)?;
    Ok(without_nulls(json!({
        "hash": info.hash,
        "confirmations": confirmations(info, tip),
        "height": info.height,
        "version": header.version.to_consensus(),
        "versionHex": format!("{:08x}", header.version.to_consensus()),
        "merkleroot": header.merkle_root,
        "time": header.time,
        "mediantime": info.median_time,
        "nonce": header.nonce,
        "bits": format!("{:08x}", header.bits.to_consensus()),
        "target": work::target_hex(header.bits),
        "difficulty": work::float(work::difficulty(header.bits)),
        "chainwork": encode_hex(&info.chain_work),
        "nTx": info.transactions.unwrap_or_default(),
        "previousblockhash": (info.height > 0).then_some(header.prev_blockhash),
        "nextblockhash": info.next,
    })))
}
