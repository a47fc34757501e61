//! The heap that the host and its plugins share.

#![allow(unsafe_code)]

/// From which size on, in bytes, each block of memory is the system's own and goes back to it when it is freed.
#[cfg(target_env = "gnu")]
const OWN_BLOCK: i32 = 256 << 10;

/// Has the C library give the memory of large answers back to the system.
///
/// Plugins make answers on many threads, and each of them has a part of the heap to itself. Left alone, the library raises
/// the size from which a block is the system's own to that of the largest that was freed, so that each part keeps as much
/// as the largest answer ever took in it.
pub fn give_back_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the function sets one number under the library's own lock, and any number is allowed.
    let done = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_BLOCK) };
    #[cfg(target_env = "gnu")]
    if done == 0 {
        tracing::debug!("the C library keeps the memory of large answers");
    }
}
