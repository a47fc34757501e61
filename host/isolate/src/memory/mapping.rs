//! Memory files and their mappings: the one place where memory that another process may write is turned into references, to atomics
//! only.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use super::{LANES, SLOTS};

/// The bytes of a slot: the longest message, with its head, that lies in one.
pub const SLOT_BYTES: usize = 64 << 10;

/// The counters of a lane have a page of their own.
const COUNTERS: usize = 4096;

/// What the two sides write stands in different cache lines.
const CACHE_LINE: usize = 64;

const LANE_BYTES: usize = COUNTERS + SLOTS as usize * SLOT_BYTES;
const REGION_BYTES: usize = LANES * LANE_BYTES;

/// The seals of memory that keeps its length.
const FIXED: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

/// A mapping of a memory file.
struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is memory of the process, not of a thread; what is given out of it is atomics.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a file of at least `len` bytes that nobody can shorten.
    fn new(file: impl AsFd, len: usize, protection: ProtFlags) -> std::io::Result<Self> {
        if !fcntl_get_seals(&file)?.contains(SealFlags::SHRINK) || rustix::fs::fstat(&file)?.st_size < len as i64 {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        // SAFETY: the system chooses a place where nothing is.
        let base = unsafe { mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, &file, 0) }?;
        let base = NonNull::new(base.cast::<u8>()).ok_or(Errno::NOMEM)?;
        // SAFETY: the range is the mapping's. Messages hold secrets, which belong in no core file.
        unsafe { madvise(base.as_ptr().cast::<c_void>(), len, Advice::LinuxDontDump) }?;
        Ok(Self { base, len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is the mapping's, and what was given out of it borrowed it.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// What one side writes of all lanes: its slots, and how many it has taken of the other side's.
pub struct Region(Mapping);

impl Region {
    /// A fresh region, which this process and, where `theirs`, the holder of the descriptor may write.
    ///
    /// # Errors
    /// The system has no such memory.
    pub fn create(theirs: bool) -> std::io::Result<(Arc<Self>, OwnedFd)> {
        let file = memory_file(REGION_BYTES)?;
        fcntl_add_seals(&file, FIXED)?;
        let mapping = Mapping::new(&file, REGION_BYTES, ProtFlags::READ | ProtFlags::WRITE)?;
        if !theirs {
            fcntl_add_seals(&file, SealFlags::FUTURE_WRITE)?;
        }
        fcntl_add_seals(&file, SealFlags::SEAL)?;
        Ok((Arc::new(Self(mapping)), file))
    }

    /// A region that the other side has made, to write or to read only.
    ///
    /// # Errors
    /// It is no region, or may not be written.
    pub fn open(file: impl AsFd, is_ours: bool) -> std::io::Result<Arc<Self>> {
        let protection = if is_ours { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        Ok(Arc::new(Self(Mapping::new(file, REGION_BYTES, protection)?)))
    }
}

/// One lane's part of a region.
#[derive(Clone)]
pub struct Area {
    region: Arc<Region>,
    at: usize,
}

impl Area {
    /// The part of one lane; none beyond [`LANES`].
    pub fn new(region: &Arc<Region>, lane: usize) -> Option<Self> {
        (lane < LANES).then(|| Self { region: region.clone(), at: lane * LANE_BYTES })
    }

    fn counter(&self, line: usize, place: usize) -> &AtomicU32 {
        let at = self.at + line * CACHE_LINE + place * size_of::<AtomicU32>();
        // SAFETY: it lies in the first page of the lane, aligned to four bytes, and is only ever used as an atomic. Of a mapping
        // that is read only, only loads are done, by this module's users.
        unsafe { self.region.0.base.add(at).cast().as_ref() }
    }

    /// How many slots the writer has published, ever. The reader sleeps on it.
    pub fn published(&self) -> &AtomicU32 {
        self.counter(0, 0)
    }

    /// Whether the writer sleeps until one of them is taken.
    pub fn wants_room(&self) -> &AtomicU32 {
        self.counter(0, 1)
    }

    /// Whether the writer has ended the lane.
    pub fn closed(&self) -> &AtomicU32 {
        self.counter(0, 2)
    }

    /// How many of the other side's slots it has taken, ever. The other side sleeps on it.
    pub fn taken(&self) -> &AtomicU32 {
        self.counter(1, 0)
    }

    /// Whether it sleeps until the other side publishes something.
    pub fn sleeps(&self) -> &AtomicU32 {
        self.counter(1, 1)
    }

    /// The words of the slot of this number.
    pub fn slot(&self, number: u32) -> &[AtomicU64] {
        let at = self.at + COUNTERS + (number % SLOTS) as usize * SLOT_BYTES;
        // SAFETY: it lies within the lane, at a multiple of a page; the words are only ever used as atomics, as above.
        unsafe { std::slice::from_raw_parts(self.region.0.base.add(at).as_ptr().cast(), SLOT_BYTES / 8) }
    }
}

fn memory_file(len: usize) -> std::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Systems before 6.3 do not know that a memory file needs not be executable.
    let file = match memfd_create("outrigger", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create("outrigger", flags)?,
        made => made?,
    };
    ftruncate(&file, len as u64)?;
    Ok(file)
}
