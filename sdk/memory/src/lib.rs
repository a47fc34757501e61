//! Wipes memory that may contain secrets and has no owner to wipe it: memory freed by libraries, and stacks after calls.
//!
//! Owners wipe known secrets (`Secret` of messages, `zeroize`). They cannot reach parsed JSON, reallocated buffers and
//! the working copies of libraries; [`WipingAllocator`] overwrites those when they are freed.
//!
//! The host and the plugins that handle keys or long answers use this allocator. They overwrite the stack after the
//! wallet service has used keys, and after calls of methods marked `private_keys`. A request body that arrives
//! in one piece stays in hyper's read buffer until the connection overwrites it or ends.
//!
//! The crate depends on no other crate of the project.
#![allow(unsafe_code)]
#![warn(missing_docs)]

pub mod parallel;

use std::alloc::{GlobalAlloc, Layout, System};
use std::mem::MaybeUninit;

use zeroize::optimization_barrier;

const WIPED_STACK: usize = 64 << 10;

/// An allocator that zeroes freed memory, on top of another one. It maps large blocks directly, so the kernel wipes them.
/// [`wipe_freed_memory!`](crate::wipe_freed_memory!) makes it the allocator of a program or plugin.
#[derive(Clone, Copy, Debug, Default)]
pub struct WipingAllocator<A = System>(A);

impl WipingAllocator {
    /// On top of the system's allocator.
    pub const fn new() -> Self {
        Self(System)
    }
}

// SAFETY: large blocks are mapped, all others are from the inner allocator. The layout identifies the source, so each
// block is returned there. `realloc` of other blocks allocates, copies, and frees with `dealloc`, which wipes the old
// block.
unsafe impl<A: GlobalAlloc> GlobalAlloc for WipingAllocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if large::is(layout) {
            return large::map(layout.size());
        }
        // SAFETY: the inner allocator requires what the caller promises.
        unsafe { self.0.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if large::is(layout) {
            return large::map(layout.size());
        }
        // SAFETY: as above.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the size is not zero and does not overflow with this alignment.
        let new_layout = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if large::is(layout) && large::is(new_layout) {
            // SAFETY: a large block is mapped, with this size.
            return unsafe { large::resize(old, layout.size(), size) };
        }
        // SAFETY: the caller gives up `old`, which has the size of `layout`; both blocks have room for the lesser size.
        unsafe {
            let new = self.alloc(new_layout);
            if !new.is_null() {
                new.copy_from_nonoverlapping(old, layout.size().min(size));
                self.dealloc(old, layout);
            }
            new
        }
    }

    #[inline]
    unsafe fn dealloc(&self, freed: *mut u8, layout: Layout) {
        if large::is(layout) {
            // SAFETY: a large block is mapped, with this size.
            return unsafe { large::unmap(freed, layout.size()) };
        }
        // SAFETY: the caller gives up the block, which has this size. The barrier keeps the compiler from removing the
        // writes before the free. Bytes that may be uninitialised are only viewed as `MaybeUninit`.
        unsafe {
            wipe(freed, layout.size());
            optimization_barrier(std::slice::from_raw_parts(freed.cast::<MaybeUninit<u8>>(), layout.size()));
            self.0.dealloc(freed, layout);
        }
    }
}

/// Zeroes memory. Most blocks are small; for those, a few overlapping stores cost less than a call.
///
/// # Safety
/// `size` bytes at `memory` are writable.
#[inline]
unsafe fn wipe(memory: *mut u8, size: usize) {
    // SAFETY: each store begins at the start of the block or ends at its end, and is no longer than the block.
    unsafe {
        match size {
            0..8 => memory.write_bytes(0, size),
            8..16 => {
                memory.cast::<u64>().write_unaligned(0);
                memory.add(size - 8).cast::<u64>().write_unaligned(0);
            }
            16..=32 => {
                memory.cast::<u128>().write_unaligned(0);
                memory.add(size - 16).cast::<u128>().write_unaligned(0);
            }
            33..=64 => {
                memory.cast::<[u128; 2]>().write_unaligned([0; 2]);
                memory.add(size - 32).cast::<[u128; 2]>().write_unaligned([0; 2]);
            }
            _ => memory.write_bytes(0, size),
        }
    }
}

/// Maps large blocks. They need no wiping: the kernel zeroes pages before it gives them to another process, and grows a
/// mapping by moving its pages without a copy.
#[cfg(all(target_os = "linux", not(miri)))]
mod large {
    use std::alloc::Layout;
    use std::ptr::null_mut;

    /// The least size of a large block, in bytes.
    const LEAST: usize = 256 << 10;
    /// The smallest page size, and so the alignment of every mapping, in bytes.
    const PAGE: usize = 4096;
    /// The least size of a block with huge pages (2 MiB on most machines), in bytes. The first access to each page faults,
    /// and a long answer touches thousands of small pages. A smaller block would waste much of a huge page.
    const HUGE: usize = 4 << 20;

    #[inline]
    pub fn is(layout: Layout) -> bool {
        layout.size() >= LEAST && layout.align() <= PAGE
    }

    /// The mapped block; null if the mapping failed.
    fn checked(mapped: *mut libc::c_void, size: usize) -> *mut u8 {
        if mapped == libc::MAP_FAILED {
            return null_mut();
        }
        if size >= HUGE {
            // SAFETY: the block was just mapped, with this size. A kernel without huge pages ignores the advice.
            unsafe { libc::madvise(mapped, size, libc::MADV_HUGEPAGE) };
        }
        mapped.cast()
    }

    /// A zeroed block; null if there is no memory.
    pub fn map(size: usize) -> *mut u8 {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: maps new pages at any free address.
        checked(unsafe { libc::mmap(null_mut(), size, protection, flags, -1, 0) }, size)
    }

    /// Resizes a block and keeps its contents. Null, with the old block unchanged, if there is no memory.
    ///
    /// # Safety
    /// The block is from [`map`] or this function, with this size, and no pointer to it is used any more.
    pub unsafe fn resize(old: *mut u8, size: usize, new: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        checked(unsafe { libc::mremap(old.cast(), size, new, libc::MREMAP_MAYMOVE) }, new)
    }

    /// Unmaps a block.
    ///
    /// # Safety
    /// As for [`resize`].
    pub unsafe fn unmap(freed: *mut u8, size: usize) {
        // SAFETY: the caller's promise. Unmapping a mapped block cannot fail.
        unsafe { libc::munmap(freed.cast(), size) };
    }
}

/// On other systems no block is large.
#[cfg(not(all(target_os = "linux", not(miri))))]
mod large {
    use std::alloc::Layout;

    pub fn is(_: Layout) -> bool {
        false
    }

    pub fn map(_: usize) -> *mut u8 {
        std::ptr::null_mut()
    }

    /// # Safety
    /// None: no block is large, so nothing calls it.
    pub unsafe fn resize(_: *mut u8, _: usize, _: usize) -> *mut u8 {
        std::ptr::null_mut()
    }

    /// # Safety
    /// None: no block is large, so nothing calls it.
    pub unsafe fn unmap(_: *mut u8, _: usize) {}
}

/// Makes [`WipingAllocator`] the global allocator of a program or plugin that handles private keys or passphrases.
/// A plugin needs its own, since the host's allocator does not free the plugin's memory.
///
/// ```
/// outrigger_memory::wipe_freed_memory!();
/// # fn main() { assert_eq!("text".to_owned(), "text"); }
/// ```
#[macro_export]
macro_rules! wipe_freed_memory {
    () => {
        #[global_allocator]
        static WIPING_ALLOCATOR: $crate::WipingAllocator = $crate::WipingAllocator::new();
    };
}

/// Overwrites 64 KiB of the calling thread's stack below the caller, where computations with private keys leave copies.
#[inline(never)]
pub fn wipe_stack() {
    let below = [0_u8; WIPED_STACK];
    optimization_barrier(&below);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does not free, so that tests can read freed memory.
    struct Keeping;

    // SAFETY: memory is the system's, and never returned twice.
    unsafe impl GlobalAlloc for Keeping {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: the system's allocator requires what the caller promises.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
    }

    #[test]
    fn freed_and_outgrown_memory_is_wiped() {
        let (wiping, layout) = (WipingAllocator(Keeping), Layout::from_size_align(4096, 8).unwrap());
        let is_all = |memory: *mut u8, byte: u8| {
            // SAFETY: each block here has at least this many bytes, all written, and is never freed.
            unsafe { std::slice::from_raw_parts(memory, layout.size()) }.iter().all(|found| *found == byte)
        };
        // SAFETY: sizes and alignments are those of the allocations.
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

    #[test]
    fn blocks_of_every_small_size_are_wiped_and_nothing_beside_them() {
        for size in 0..=300 {
            let mut memory = [0xab_u8; 304];
            // SAFETY: the buffer has this many bytes.
            unsafe { wipe(memory.as_mut_ptr().add(2), size) };
            let wiped = |at: usize| (2..2 + size).contains(&at);
            assert!(memory.iter().enumerate().all(|(at, byte)| (*byte == 0) == wiped(at)), "{size}");
        }
    }

    /// The kernel's flags of the mapping at an address.
    #[cfg(all(target_os = "linux", not(miri)))]
    fn flags_of(address: usize) -> String {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let holds = |line: &str| {
            let (begin, end) = line.split_once(' ')?.0.split_once('-')?;
            let number = |text| usize::from_str_radix(text, 16).ok();
            Some((number(begin)?..number(end)?).contains(&address))
        };
        let mut behind = maps.lines().skip_while(|line| holds(line) != Some(true));
        behind.find_map(|line| line.strip_prefix("VmFlags:")).unwrap_or_default().to_owned()
    }

    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn blocks_as_long_as_long_answers_are_asked_for_in_huge_pages() {
        if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            eprintln!("skipped: this system has no huge pages");
            return;
        }
        let wiping = WipingAllocator::new();
        let of = |size| Layout::from_size_align(size, 16).unwrap();
        let is_huge = |block: *mut u8| flags_of(block.addr()).split_whitespace().any(|flag| flag == "hg");
        // SAFETY: each size is that of the last allocation of the block.
        unsafe {
            let long = wiping.alloc(of(16 << 20));
            assert!(is_huge(long));
            wiping.dealloc(long, of(16 << 20));
            let growing = wiping.alloc(of(1 << 20));
            assert!(!is_huge(growing), "a shorter one would waste memory");
            let grown = wiping.realloc(growing, of(1 << 20), 16 << 20);
            assert!(is_huge(grown));
            wiping.dealloc(grown, of(16 << 20));
        }
    }

    #[test]
    fn large_blocks_keep_what_is_in_them_as_they_grow_and_shrink() {
        let wiping = WipingAllocator::new();
        let of = |size| Layout::from_size_align(size, 16).unwrap();
        let sizes = [100, 300_000, 5_000_000, 262_144, 262_143, 900_000, 7];
        // SAFETY: each size is that of the last allocation of the block, and only written bytes are read.
        unsafe {
            let mut block = wiping.alloc(of(sizes[0]));
            (0..sizes[0]).for_each(|at| block.add(at).write(at as u8));
            for (size, next) in sizes.iter().zip(&sizes[1..]) {
                block = wiping.realloc(block, of(*size), *next);
                assert!((0..sizes[0].min(*next)).all(|at| *block.add(at) == at as u8), "{size} to {next}");
                block.add(next - 1).write((next - 1) as u8);
            }
            wiping.dealloc(block, of(7));
            let zeros = wiping.alloc_zeroed(of(400_000));
            assert!(std::slice::from_raw_parts(zeros, 400_000).iter().all(|byte| *byte == 0));
            wiping.dealloc(zeros, of(400_000));
        }
    }
}
