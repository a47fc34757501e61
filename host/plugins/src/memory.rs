//! The heap that the host and its plugins share.

#![allow(unsafe_code)]

/// The size in bytes from which each block is its own mapping and is unmapped when it is freed.
#[cfg(target_env = "gnu")]
const OWN_BLOCK: i32 = 256 << 10;

/// Makes the C library return the memory of large answers to the system.
///
/// Plugins make answers on many threads, and each has its own arena. By default the library raises the mmap threshold
/// to the largest freed block, so each arena keeps as much memory as its largest answer took.
pub fn give_back_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the function sets one number under the library's own lock, and any number is allowed.
    let done = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_BLOCK) };
    #[cfg(target_env = "gnu")]
    if done == 0 {
        tracing::debug!("the C library keeps the memory of large answers");
    }
}
