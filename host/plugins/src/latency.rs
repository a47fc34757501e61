//! How long inline methods take: a slow method runs on the pool for a while.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub const INLINE_LIMIT: Duration = Duration::from_millis(5);

/// How many calls of a slow method run on the pool before it is tried inline again.
const POOLED_CALLS: u32 = 1000;

/// The weight of a slow call; each fast one subtracts 1. A method with the weight of three slow calls is slow: a single
/// slow call may be due to the scheduler.
const SLOW: u32 = 100;
const TOO_SLOW: u32 = 3 * SLOW;

/// The recent latency of an inline method.
#[derive(Default)]
pub struct Latency {
    /// How many more calls run on the pool.
    pooled: AtomicU32,
    weight: AtomicU32,
}

impl Latency {
    /// Counts the next call. Returns whether it runs on the pool.
    pub fn takes_pool(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.pooled.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    pub fn add(&self, took: Duration) {
        if took <= INLINE_LIMIT {
            let less = |weight: u32| weight.checked_sub(1);
            // Fails if the weight is 0, as usual.
            let _ = self.weight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        } else if self.weight.fetch_add(SLOW, Ordering::Relaxed) + SLOW >= TOO_SLOW {
            self.pooled.store(POOLED_CALLS, Ordering::Relaxed);
            // After that, a single slow inline call sends the method to the pool again.
            self.weight.store(TOO_SLOW - SLOW, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pooled(latency: &Latency) -> u32 {
        (0..=POOLED_CALLS).take_while(|_| latency.takes_pool()).map(|_| 1).sum()
    }

    #[test]
    fn a_slow_method_runs_on_the_pool_for_a_while() {
        let latency = Latency::default();
        latency.add(2 * INLINE_LIMIT);
        latency.add(2 * INLINE_LIMIT);
        assert_eq!(pooled(&latency), 0);
        latency.add(2 * INLINE_LIMIT);
        assert_eq!(pooled(&latency), POOLED_CALLS);
        latency.add(2 * INLINE_LIMIT);
        assert_eq!(pooled(&latency), POOLED_CALLS, "one more slow call is enough");
    }

    #[test]
    fn a_slow_call_among_quick_ones_is_forgiven() {
        let latency = Latency::default();
        for _ in 0..10 {
            latency.add(2 * INLINE_LIMIT);
            (0..SLOW).for_each(|_| latency.add(INLINE_LIMIT));
        }
        assert_eq!(pooled(&latency), 0);
    }
}
