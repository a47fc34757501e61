//! What the arguments are bounded by.

/// The most transactions that are tried at once.
pub const MAX_TRIED: usize = 25;

/// The greatest confirmation target, in blocks.
pub const MAX_TARGET: i32 = 1008;

/// The largest mock time, in seconds: what a clock that counts nanoseconds can show.
pub const MAX_MOCK_TIME: i64 = 9_223_372_036;
