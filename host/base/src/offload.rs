//! Work that takes its time on a thread that serves connections.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Text from which on reading it takes so long, in bytes.
pub const LONG_TEXT: usize = 256 << 10;

/// Does `work` so that the connections that this thread serves, where it serves any, are served by another meanwhile.
pub fn offload_blocking<R>(work: impl FnOnce() -> R) -> R {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Reads `length` bytes of text by `read`: what is long, aside.
pub fn read_offloaded<R>(length: usize, read: impl FnOnce() -> R) -> R {
    if length < LONG_TEXT { read() } else { offload_blocking(read) }
}
