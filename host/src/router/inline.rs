//! Calls of inline methods, which run on the network thread that read them.
//!
//! Handing a call to another thread and back costs more than most calls. A manifest can mark a method `inline` to avoid
//! this. A slow one runs on the pool for a while.

use std::time::Instant;

use outrigger_plugins::latency::Latency;
use outrigger_rpc::CallHere;

pub struct InlineCall<'a> {
    latency: &'a Latency,
    began: Instant,
    _here: CallHere,
}

impl<'a> InlineCall<'a> {
    /// Starts a call on this thread; `None` if this is not a network thread.
    pub fn begin(latency: &'a Latency) -> Option<Self> {
        let began = Instant::now();
        CallHere::begin(began).map(|here| Self { latency, began, _here: here })
    }
}

impl Drop for InlineCall<'_> {
    fn drop(&mut self) {
        self.latency.add(self.began.elapsed());
    }
}
