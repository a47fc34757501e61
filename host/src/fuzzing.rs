//! The host's parsers of foreign bytes, for fuzz targets. Not an interface for anybody else.

use bitcoin::consensus::serialize;

use crate::node::decode_block;
use crate::rpc::{self, Limits};

/// The envelope of JSON-RPC: a whole body.
pub fn envelope(bytes: &[u8]) {
    rpc::count_calls(bytes, &Limits::default());
}

/// A block, as `submitblock` takes it: one that is read is written as it was read, and its transactions are named rightly.
pub fn block(bytes: &[u8]) {
    let Ok((block, own)) = decode_block(bytes) else { return };
    assert!(bytes.starts_with(own));
    if block.txdata.iter().any(|tx| tx.input.is_empty()) {
        // The library writes these in a form of its own.
        return;
    }
    assert_eq!(serialize(&*block), own);
    for (tx, ids) in block.transactions() {
        assert_eq!((ids.txid, ids.wtxid), (tx.compute_txid(), tx.compute_wtxid()));
    }
}
