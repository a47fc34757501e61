//! Blocks of the chain, and bitcoind's errors about them.

use outrigger_sdk::bitcoin::block::Header;
use outrigger_sdk::bitcoin::consensus::deserialize;
use outrigger_sdk::service::chain::{BlockInfo, BlockRef};
use outrigger_sdk::{Call, RpcError};

/// A known block. Error -5 for another.
pub fn find_block(call: &Call<'_>, block: BlockRef) -> Result<BlockInfo, RpcError> {
    call.host.chain.block_info(call.scope, block)?.ok_or_else(block_not_found)
}

/// The error for an unknown block.
pub fn block_not_found() -> RpcError {
    RpcError::not_found("Block not found")
}

/// The header of a block.
pub fn decode_header(info: &BlockInfo) -> Result<Header, RpcError> {
    deserialize(&info.header).map_err(|_| damaged(&format!("the header of block {}", info.hash)))
}

/// The error for bytes of the chain that cannot be decoded.
pub fn damaged(object: &str) -> RpcError {
    RpcError::internal(format!("{object} cannot be read from the chain"))
}
