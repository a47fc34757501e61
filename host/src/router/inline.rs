//! Calls of inline methods, which run on the network thread that read them.
//!
//! Handing a call to another thread and back costs more than most calls. A manifest can mark a method `inline` to avoid
//! this. If an inline method is slow, its next calls run on the pool for a while.

use std::time::Instant;

use outrigger_plugins::latency::Latency;
use outrigger_rpc::CallHere;

use super::onward::begins_here;

pub struct InlineCall<'a> {
    latency: &'a Latency,
    began: Instant,
    _here: Option<CallHere>,
}

impl<'a> InlineCall<'a> {
    /// Starts a call on this thread; `None` if it is not a network thread and no plugin is making a call on it.
    pub fn begin(latency: &'a Latency) -> Option<Self> {
        let began = Instant::now();
        // The time of a call that a plugin makes within an inline call counts as the outer call's.
        let here = if begins_here() { None } else { Some(CallHere::begin(began)?) };
        Some(Self { latency, began, _here: here })
    }
}

impl Drop for InlineCall<'_> {
    fn drop(&mut self) {
        self.latency.add(self.began.elapsed());
    }
}
