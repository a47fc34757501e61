//! Calls of inline methods, which run on the network thread that read them.
//!
//! Handing a call to another thread and its answer back costs more than most calls do. A method that its manifest marks
//! `inline` avoids this. One that turns out slow runs on the pool for a while.

use std::time::Instant;

use outrigger_plugins::latency::Latency;
use outrigger_rpc::CallHere;

/// A call that runs inline on this thread.
pub struct InlineCall<'a> {
    latency: &'a Latency,
    began: Instant,
    _here: CallHere,
}

impl<'a> InlineCall<'a> {
    /// Begins a call on this thread; `None` if this thread does not serve connections.
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
