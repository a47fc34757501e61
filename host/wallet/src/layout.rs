//! The version of a wallet's file.

/// The version of the tables' layout that this code reads and writes.
pub const LAYOUT: u32 = 4;
/// The first layout whose rows have checksums. Up to this one rows of transactions and coins had labels.
pub const CHECKSUMMED: u32 = 3;
