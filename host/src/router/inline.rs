//! Calls of inline methods, which run on the network thread that read them.
//!
//! Handing a call to another thread and back costs more than most calls. A manifest can mark a method `inline` to avoid
//! this. A slow one runs on the pool for a while.

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
    /// Starts a call on this thread; `None` if this is not a network thread, and no plugin calls from it.
    pub fn begin(latency: &'a Latency) -> Option<Self> {
        let began = Instant::now();
        // A plugin's call within an inline call belongs to the outer call's time.
        let here = if begins_here() { None } else { Some(CallHere::begin(began)?) };
        Some(Self { latency, began, _here: here })
    }
}

impl Drop for InlineCall<'_> {
    fn drop(&mut self) {
        self.latency.add(self.began.elapsed());
    }
}
