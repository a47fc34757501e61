//! Calls of quick methods run on the thread that read them from the network.
//!
//! Handing a call to another thread and its answer back costs more than most calls do. A method whose manifest calls it
//! quick goes without; one that turns out slow takes the way over the pool for a while, like all others.

use std::time::Instant;

use crate::plugin::pace::Pace;
use crate::rpc::CallHere;

/// A quick call on this thread.
pub struct Quick<'a> {
    pace: &'a Pace,
    began: Instant,
    _here: CallHere,
}

impl<'a> Quick<'a> {
    /// Begins a call of a quick method with this pace. None where it has to go over the pool.
    pub fn begin(pace: &'a Pace) -> Option<Self> {
        if pace.takes_detour() {
            return None;
        }
        let began = Instant::now();
        CallHere::begin(began).map(|here| Self { pace, began, _here: here })
    }
}

impl Drop for Quick<'_> {
    fn drop(&mut self) {
        self.pace.add(self.began.elapsed());
    }
}
