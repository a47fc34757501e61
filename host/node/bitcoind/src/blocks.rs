//! Blocks by their hash, live.

use bitcoin::BlockHash;
use serde_json::json;

use super::answers::Hex;
use super::error::AskError;
use super::rpc::{INVALID_ADDRESS_OR_KEY, Rpc};

/// bitcoind's code for an error without a code of its own.
pub const MISC: i32 = -1;

/// A block's serialisation; `None` where the node has dropped it or never had it.
///
/// # Errors
/// The node's absence.
pub fn block(rpc: &Rpc, hash: BlockHash) -> Result<Option<Vec<u8>>, AskError> {
    if let Some(bytes) = rpc.rest(&format!("/rest/block/{hash}.bin"))? {
        return Ok(Some(bytes.into()));
    }
    match rpc.ask::<Hex>("getblock", &json!([hash, 0])) {
        Ok(Hex(bytes)) => Ok(Some(bytes)),
        // Pruned, or only its header is known.
        Err(error) if matches!(error.code(), Some(INVALID_ADDRESS_OR_KEY | MISC)) => Ok(None),
        Err(error) => Err(error),
    }
}
