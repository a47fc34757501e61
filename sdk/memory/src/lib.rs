//! Wiping of memory that may have held a secret and has no owner who wipes it: what libraries free, and what calls leave on
//! the stack.
//!
//! A value that is known to be secret is wiped where it is (`Secret` of messages, `zeroize`). A parsed JSON text, a buffer
//! that had to grow, or the working copy of a library are out of reach there: [`WipingAllocator`] overwrites them when they
//! are freed.
//!
//! The program and the plugins that handle keys or long answers use this allocator. The stack is overwritten after the wallet service has
//! computed with keys and after calls of methods marked `private_keys`. A request body that arrived in one piece stays in hyper's read
//! buffer until the connection overwrites it or ends.
//!
//! The crate depends on no other of the project, and any may depend on it.
#![allow(unsafe_code)]
#![warn(missing_docs)]

pub mod parallel;

use std::alloc::{GlobalAlloc, Layout, System};
use std::mem::MaybeUninit;

use zeroize::optimization_barrier;

/// How much of the stack below its caller [`wipe_stack`] overwrites, in bytes.
const WIPED_STACK: usize = 64 << 10;

/// An allocator, the system's unless another is given, which overwrites with zeros what is freed, and has large blocks wiped by the
/// system.
/// [`wipe_freed_memory!`](crate::wipe_freed_memory!) makes it the allocator of a program or a plugin.
#[derive(Clone, Copy, Debug, Default)]
pub struct WipingAllocator<A = System>(A);

impl WipingAllocator {
    /// Over the system's allocator.
    pub const fn new() -> Self {
        Self(System)
    }
}

// SAFETY: memory comes from the allocator below, or from the system where it is large, and goes back to where it came from, which
// its layout tells. A smaller block is grown by the trait's own function: it allocates, copies, and frees through `dealloc`, so
// that what a growing value leaves behind is wiped too.
unsafe impl<A: GlobalAlloc> GlobalAlloc for WipingAllocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if large::is(layout) {
            return large::map(layout.size());
        }
        // SAFETY: what the caller promises is what the allocator below asks for.
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
        // SAFETY: the caller promises that a size is not zero, and that with this alignment it does not overflow.
        let new_layout = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if large::is(layout) && large::is(new_layout) {
            // SAFETY: a large block came from the system, with this size.
            return unsafe { large::resize(old, layout.size(), size) };
        }
        // SAFETY: the caller gives up `old`, which has the size of `layout`; both have room for the lesser of the sizes.
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
            // SAFETY: a large block came from the system, with this size.
            return unsafe { large::unmap(freed, layout.size()) };
        }
        // SAFETY: the caller gives up the allocation, which has this size. The barrier keeps the compiler from leaving the
        // write out, as it may where memory is freed next; bytes that may not be initialised are looked at as such.
        unsafe {
            wipe(freed, layout.size());
            optimization_barrier(std::slice::from_raw_parts(freed.cast::<MaybeUninit<u8>>(), layout.size()));
            self.0.dealloc(freed, layout);
        }
    }
}

/// Overwrites memory with zeros. Most blocks are small: for these a few stores, which may overlap, cost less than a call.
///
/// # Safety
/// So many bytes may be written there.
#[inline]
unsafe fn wipe(memory: *mut u8, size: usize) {
    // SAFETY: each store begins at the block's begin or ends at its end, and is no longer than the block.
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

/// Large blocks are the system's own pages. It gives nobody pages that were another's before it has wiped them, and it grows a
/// block by moving its pages, which leaves no copy behind: such blocks cost no wiping.
#[cfg(all(target_os = "linux", not(miri)))]
mod large {
    use std::alloc::Layout;
    use std::ptr::null_mut;

    /// From which size on, in bytes, a block is large.
    const LEAST: usize = 256 << 10;
    /// What a page is aligned to at least.
    const PAGE: usize = 4096;
    /// From which size on, in bytes, the system is asked for huge pages (of 2 MiB on most machines): each page that is touched first
    /// costs a fault, and a long answer touches thousands of small ones. Less would waste a good part of a huge page.
    const HUGE: usize = 4 << 20;

    #[inline]
    pub fn is(layout: Layout) -> bool {
        layout.size() >= LEAST && layout.align() <= PAGE
    }

    /// The block that the system gave; null if it gave none.
    fn checked(mapped: *mut libc::c_void, size: usize) -> *mut u8 {
        if mapped == libc::MAP_FAILED {
            return null_mut();
        }
        if size >= HUGE {
            // SAFETY: the block was just mapped, with this size. Where the system has no huge pages it gives small ones.
            unsafe { libc::madvise(mapped, size, libc::MADV_HUGEPAGE) };
        }
        mapped.cast()
    }

    /// A block of zeros; null where there is none to be had.
    pub fn map(size: usize) -> *mut u8 {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new pages are asked for, wherever the system has room; nothing that is mapped is touched.
        checked(unsafe { libc::mmap(null_mut(), size, protection, flags, -1, 0) }, size)
    }

    /// A block of another size with what was in the old one; null, and the old one stays, where there is none to be had.
    ///
    /// # Safety
    /// The block came from [`map`] or this function, with this size, and nothing points to it any more.
    pub unsafe fn resize(old: *mut u8, size: usize, new: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        checked(unsafe { libc::mremap(old.cast(), size, new, libc::MREMAP_MAYMOVE) }, new)
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// As of [`resize`].
    pub unsafe fn unmap(freed: *mut u8, size: usize) {
        // SAFETY: as the caller promises. With such a block it cannot fail.
        unsafe { libc::munmap(freed.cast(), size) };
    }
}

/// Elsewhere they are blocks as others.
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
    /// None: it is not called.
    pub unsafe fn resize(_: *mut u8, _: usize, _: usize) -> *mut u8 {
        std::ptr::null_mut()
    }

    /// # Safety
    /// None: it is not called.
    pub unsafe fn unmap(_: *mut u8, _: usize) {}
}

/// Makes [`WipingAllocator`] the allocator of the crate's program or plugin. For those that handle private keys or
/// passphrases; a plugin frees its own memory, so the host's allocator does not see it.
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

    #[test]
    fn blocks_of_every_small_size_are_wiped_and_nothing_beside_them() {
        for size in 0..=300 {
            let mut memory = [0xab_u8; 304];
            // SAFETY: so many bytes are there.
            unsafe { wipe(memory.as_mut_ptr().add(2), size) };
            let wiped = |at: usize| (2..2 + size).contains(&at);
            assert!(memory.iter().enumerate().all(|(at, byte)| (*byte == 0) == wiped(at)), "{size}");
        }
    }

    /// What the system notes of the mapping that holds an address.
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
        // SAFETY: each size is the one that the block was last asked for with.
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
        // SAFETY: each size is the one that the block was last asked for with, and only what was written is read.
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
