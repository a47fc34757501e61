//! Lanes over memory that host and runner share: a message costs no system call while the other side looks for it.
//!
//! Each side writes in a region of its own, which the other one reads; the system refuses a runner to write the host's. A message
//! is published whole: a head and, up to [`INLINE`] bytes, a body, in one of a few slots. A longer body lies in a memory file of
//! its own, which the host makes, which nobody can write once it is sent, and which the receiver reads in place. So the host never
//! waits within a message, and copies what it reads once, before it looks at it.

mod budget;
mod end;
mod lane;
mod mapping;
mod waiting;

pub use budget::{Budget, Share};
pub use end::End;
pub use lane::{MemoryLane, Side};
pub use mapping::{LANES, Region, Sealed};

use crate::frame::HEAD_LEN;

/// The longest body that lies in a slot.
pub const INLINE: usize = mapping::SLOT_BYTES - HEAD_LEN;

#[cfg(test)]
mod tests;
