//! Lanes over memory that host and runner share: a message costs no system call while the other side looks for it.
//!
//! Each side writes in a region of its own, which the other one reads; the system refuses a runner to write the host's. A message
//! is published whole: a head and, up to [`INLINE`] bytes, a body, in one of a few slots. A longer body lies in a memory file of
//! its own, which the host makes, which nobody can write once it is sent, and which the receiver reads in place. So the host never
//! waits within a message, and copies what it reads once, before it looks at it.

#[cfg(not(target_os = "linux"))]
#[allow(dead_code, reason = "nothing is of memory there")]
mod absent;
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "nothing is of memory there"))]
mod budget;
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

#[cfg(not(target_os = "linux"))]
pub use absent::{End, MemoryLane, Region, Sealed, Side};
pub use budget::{Budget, Share};
#[cfg(target_os = "linux")]
pub use end::End;
#[cfg(target_os = "linux")]
pub use lane::{MemoryLane, Side};
#[cfg(target_os = "linux")]
pub use mapping::{Region, Sealed};

/// How many lanes a runner has room for.
pub const LANES: usize = 64;

/// The longest body that lies in a slot.
#[cfg(target_os = "linux")]
const INLINE: usize = mapping::SLOT_BYTES - crate::frame::HEAD_LEN;
