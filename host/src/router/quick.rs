//! Calls of quick methods run on the thread that read them from the network.
//!
//! Handing a call to another thread and its answer back costs more than most calls do. A method whose manifest calls it
//! quick goes without, as long as one network thread stays free for everybody else; one that turns out slow takes the way
//! over the pool for a while, like all others.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A quick call that takes longer is none.
const QUICK: Duration = Duration::from_millis(5);

/// How many calls of a method that was slow go over the pool before it is tried again.
const DETOUR: u32 = 1000;

/// The places for calls on network threads.
pub struct Quick {
    free: AtomicUsize,
}

/// A place, taken for one call.
pub struct Place<'a> {
    quick: &'a Quick,
    detour: &'a AtomicU32,
    began: Instant,
}

impl Quick {
    /// So many calls may run on network threads at a time.
    pub fn new(places: usize) -> Self {
        Self { free: AtomicUsize::new(places) }
    }

    /// A place for a call of a quick method; `detour` counts how many of its calls still go over the pool.
    pub fn take<'a>(&'a self, detour: &'a AtomicU32) -> Option<Place<'a>> {
        let less = |left: u32| left.checked_sub(1);
        if detour.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            return None;
        }
        let one_less = |free: usize| free.checked_sub(1);
        self.free.fetch_update(Ordering::Acquire, Ordering::Relaxed, one_less).ok()?;
        Some(Place { quick: self, detour, began: Instant::now() })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.began.elapsed() > QUICK {
            self.detour.store(DETOUR, Ordering::Relaxed);
        }
        self.quick.free.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_run_out_and_come_back() {
        let (quick, detour) = (Quick::new(1), AtomicU32::new(0));
        let place = quick.take(&detour);
        assert!(place.is_some() && quick.take(&detour).is_none());
        drop(place);
        assert!(quick.take(&detour).is_some());
    }

    #[test]
    fn a_slow_method_takes_the_long_way_for_a_while() {
        let (quick, detour) = (Quick::new(1), AtomicU32::new(0));
        let mut place = quick.take(&detour).unwrap();
        place.began -= 2 * QUICK;
        drop(place);
        let tries = (0..=DETOUR).take_while(|_| quick.take(&detour).is_none()).count();
        assert_eq!(tries, DETOUR as usize);
        let mut place = quick.take(&detour).unwrap();
        place.began = Instant::now();
        drop(place);
        assert!(quick.take(&detour).is_some());
    }
}
