//! Long polls: calls whose code has returned, and whose answer waits for something to happen.
//!
//! They are counted apart from all others: each holds a connection, and were there as many as there may be connections,
//! nobody else would be heard.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The long calls that are waited for.
pub struct LongCalls {
    free: AtomicUsize,
}

/// A place among them.
pub struct Long<'a>(&'a LongCalls);

impl LongCalls {
    /// So many may be waited for at a time.
    pub fn new(places: usize) -> Self {
        Self { free: AtomicUsize::new(places) }
    }

    /// A place, while there is one.
    pub fn enter(&self) -> Option<Long<'_>> {
        let one_less = |free: usize| free.checked_sub(1);
        self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).ok().map(|_| Long(self))
    }
}

impl Drop for Long<'_> {
    fn drop(&mut self) {
        self.0.free.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_run_out_and_come_back() {
        let long = LongCalls::new(1);
        let place = long.enter();
        assert!(place.is_some() && long.enter().is_none());
        drop(place);
        assert!(long.enter().is_some());
    }
}
