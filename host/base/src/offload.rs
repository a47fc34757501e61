//! Long work on a network thread.

use tokio::runtime::{Handle, RuntimeFlavor};

/// The length of text, in bytes, from which [`read_offloaded`] offloads the parsing.
pub const LONG_TEXT: usize = 256 << 10;

/// Runs `work` while another thread serves this thread's connections, if it has any.
pub fn offload_blocking<R>(work: impl FnOnce() -> R) -> R {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Parses `length` bytes of text by `read`; long text is offloaded.
pub fn read_offloaded<R>(length: usize, read: impl FnOnce() -> R) -> R {
    if length < LONG_TEXT { read() } else { offload_blocking(read) }
}
