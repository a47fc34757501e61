//! The version of a wallet's file.

/// The version of the tables' layout that this code reads and writes.
pub const LAYOUT: u32 = 3;
