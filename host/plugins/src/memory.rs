//! The heap that the host and its plugins share.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU8, Ordering};

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

/// The size in bytes from which an answer is large. Many methods build their answers as trees of small blocks, which take several times its
/// size and stay in the arenas of their threads.
const LARGE_ANSWER: usize = 1 << 20;

/// A large answer is recent for this many calls of [`give_back_after_large_answers`].
const RECENT: u8 = 10;

/// For how many more calls the last large answer is recent.
static RECENTLY: AtomicU8 = AtomicU8::new(0);

/// Notes the length of an answer in bytes.
pub fn note_answer(length: usize) {
    if length >= LARGE_ANSWER {
        RECENTLY.store(RECENT, Ordering::Relaxed);
    }
}

/// Makes the C library return the freed memory of this process's arenas, once no large answer is recent. Called at intervals: while large
/// answers keep coming, the next one uses the memory again.
pub fn give_back_after_large_answers() {
    let less = |left: u8| left.checked_sub(1);
    if RECENTLY.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) == Ok(1) {
        #[cfg(target_env = "gnu")]
        // SAFETY: the function has no requirements, and takes the library's own locks.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}
