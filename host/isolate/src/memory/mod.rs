//! Lanes over memory that host and runner share: a message costs no system call while the other side looks for it.
//!
//! Each side writes in a region of its own, which the other one reads; the system refuses a runner to write the host's. A message is
//! a head and a body, published in one of a few slots, or piece by piece in several, one after the other, where it is longer than a
//! slot. The reader copies each piece once, before it looks at it, and has the memory of a long message to itself: that of a lane is
//! always the same.

#[cfg(not(target_os = "linux"))]
#[allow(dead_code, reason = "nothing is of memory there")]
mod absent;
#[cfg(target_os = "linux")]
mod end;
#[cfg(target_os = "linux")]
mod lane;
#[cfg(target_os = "linux")]
mod mapping;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
#[cfg(target_os = "linux")]
mod waiting;
#[cfg(target_os = "linux")]
mod words;

use crate::together::MAX_TOGETHER;

#[cfg(not(target_os = "linux"))]
pub use absent::{End, MemoryLane, Region, Side};
#[cfg(target_os = "linux")]
pub use end::End;
#[cfg(target_os = "linux")]
pub use lane::{MemoryLane, Side};
#[cfg(target_os = "linux")]
pub use mapping::Region;

/// How many lanes a runner has room for.
pub const LANES: usize = 64;

/// How many messages can lie in one direction of a lane: the calls that are handed over together, or their answers and the ends of
/// the functions that gave them. The counters wrap, so it is a power of two.
pub const SLOTS: u32 = 8;
const _: () = assert!(MAX_TOGETHER <= SLOTS as usize);
