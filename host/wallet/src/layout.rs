//! The version of a wallet's file.

/// The version of the tables' layout that this code reads and writes.
pub const LAYOUT: u32 = 5;
/// The last commit whose build reads the layouts below [`LAYOUT`], which no release had.
pub const LAST_OF_FORMER: &str = "fb151e5407d8";
