//! Calls of quick methods run on the thread that read them from the network.
//!
//! Handing a call to another thread and its answer back costs more than most calls do. A method whose manifest calls it
//! quick goes without, as long as one network thread stays free for everybody else; one that turns out slow takes the way
//! over the pool for a while, like all others.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::plugin::pace::Pace;

/// The places for calls on network threads.
pub struct Quick {
    free: AtomicUsize,
}

/// A place, taken for one call.
pub struct Place<'a> {
    quick: &'a Quick,
    pace: &'a Pace,
    began: Instant,
}

impl Quick {
    /// So many calls may run on network threads at a time.
    pub fn new(places: usize) -> Self {
        Self { free: AtomicUsize::new(places) }
    }

    /// A place for a call of a quick method with this pace.
    pub fn take<'a>(&'a self, pace: &'a Pace) -> Option<Place<'a>> {
        if pace.takes_detour() {
            return None;
        }
        let one_less = |free: usize| free.checked_sub(1);
        self.free.fetch_update(Ordering::Acquire, Ordering::Relaxed, one_less).ok()?;
        Some(Place { quick: self, pace, began: Instant::now() })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.pace.add(self.began.elapsed());
        self.quick.free.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_run_out_and_come_back() {
        let (quick, pace) = (Quick::new(1), Pace::default());
        let place = quick.take(&pace);
        assert!(place.is_some() && quick.take(&pace).is_none());
        drop(place);
        assert!(quick.take(&pace).is_some());
    }
}
