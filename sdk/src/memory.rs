//! Wiping of memory that may have held a secret and has no owner who wipes it: what libraries free, and what calls leave on
//! the stack.
//!
//! A value that is known to be secret is wiped where it is ([`crate::wire::Secret`], `zeroize`). A parsed JSON text, a buffer
//! that had to grow, or the working copy of a library are out of reach there: [`WipingAllocator`] overwrites them when they
//! are freed.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::mem::MaybeUninit;

use zeroize::optimization_barrier;

/// How much of the stack below its caller [`wipe_stack`] overwrites, in bytes.
const WIPED_STACK: usize = 64 << 10;

/// An allocator, the system's unless another is given, which overwrites with zeros what is freed.
/// [`wipe_freed_memory!`](crate::wipe_freed_memory!) makes it the allocator of a program or a plugin.
#[derive(Clone, Copy, Debug, Default)]
pub struct WipingAllocator<A = System>(A);

impl WipingAllocator {
    /// Over the system's allocator.
    pub const fn new() -> Self {
        Self(System)
    }
}

// SAFETY: memory comes from the allocator below and goes back to it with the layout it was asked for. `realloc` is the
// trait's own: it allocates, copies, and frees through `dealloc`, so that what a growing value leaves behind is wiped too.
unsafe impl<A: GlobalAlloc> GlobalAlloc for WipingAllocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: what the caller promises is what the allocator below asks for.
        unsafe { self.0.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, freed: *mut u8, layout: Layout) {
        // SAFETY: the caller gives up the allocation, which has this size. The barrier keeps the compiler from leaving the
        // write out, as it may where memory is freed next; bytes that may not be initialised are looked at as such.
        unsafe {
            freed.write_bytes(0, layout.size());
            optimization_barrier(std::slice::from_raw_parts(freed.cast::<MaybeUninit<u8>>(), layout.size()));
            self.0.dealloc(freed, layout);
        }
    }
}

/// Makes [`WipingAllocator`] the allocator of the crate's program or plugin. For those that handle private keys or
/// passphrases; a plugin frees its own memory, so the host's allocator does not see it.
///
/// ```
/// outrigger_sdk::wipe_freed_memory!();
/// # fn main() { assert_eq!("text".to_owned(), "text"); }
/// ```
#[macro_export]
macro_rules! wipe_freed_memory {
    () => {
        #[global_allocator]
        static WIPING_ALLOCATOR: $crate::memory::WipingAllocator = $crate::memory::WipingAllocator::new();
    };
}

/// Overwrites what calls that have returned left on the calling thread's stack, down to 64 KiB below the caller. Libraries
/// that compute with private keys leave copies there, which nobody else overwrites.
#[inline(never)]
pub fn wipe_stack() {
    let below = [0_u8; WIPED_STACK];
    optimization_barrier(&below);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is freed stays, so that it can be looked at.
    struct Keeping;

    // SAFETY: what it gives is the system's, and is never given twice.
    unsafe impl GlobalAlloc for Keeping {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: what the caller promises is what the system's allocator asks for.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
    }

    #[test]
    fn freed_and_outgrown_memory_is_wiped() {
        let (wiping, layout) = (WipingAllocator(Keeping), Layout::from_size_align(4096, 8).unwrap());
        let is_all = |memory: *mut u8, byte: u8| {
            // SAFETY: each allocation here has at least so many bytes, all of them written, and stays for good.
            unsafe { std::slice::from_raw_parts(memory, layout.size()) }.iter().all(|found| *found == byte)
        };
        // SAFETY: sizes and alignments are those that the memory was asked for with.
        unsafe {
            let (memory, kept) = (wiping.alloc(layout), wiping.alloc(layout));
            memory.write_bytes(0xab, layout.size());
            kept.write_bytes(0xcd, layout.size());
            let grown = wiping.realloc(memory, layout, 2 * layout.size());
            assert!(is_all(memory, 0) && is_all(grown, 0xab));
            wiping.dealloc(grown, Layout::from_size_align(2 * layout.size(), 8).unwrap());
            assert!(is_all(grown, 0) && is_all(kept, 0xcd), "only what is freed is wiped");
        }
    }
}
