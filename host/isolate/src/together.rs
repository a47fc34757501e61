//! Calls that are handed over to a runner together, as both sides of a lane and the host around them know them.

use std::time::Duration;

use outrigger_abi::RawCall;

/// The most calls that are handed over together: each waits for all of them.
pub const MAX_TOGETHER: usize = 8;

/// How the code of a call has returned.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Returned {
    /// Its status.
    pub status: i32,
    /// How long it took, where its answer could wait.
    pub took: Duration,
}

/// Runs calls together, and says how the code of each has returned, by its place among them.
pub(crate) type CallTogether = Box<dyn Fn(&[&RawCall<'_>], &mut dyn FnMut(usize, Returned)) + Send + Sync>;
