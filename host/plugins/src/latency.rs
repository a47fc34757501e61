//! How long calls of inline methods take: a method that turns out slow runs on the pool for a while.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The longest that a call of an inline method may take.
const INLINE_LIMIT: Duration = Duration::from_millis(5);

/// How many calls of a method that was slow go over the pool before it is tried again.
const POOLED_CALLS: u32 = 1000;

/// What a slow call weighs, of which each fast one takes off one; a method that weighs as much as three slow calls is slow.
/// One slow call may be the system's doing, which had no processor for its thread.
const SLOW: u32 = 100;
const TOO_SLOW: u32 = 3 * SLOW;

/// How long the calls of an inline method have taken lately.
#[derive(Default)]
pub struct Latency {
    /// How many of its calls still go over the pool.
    pooled: AtomicU32,
    weight: AtomicU32,
}

impl Latency {
    /// Whether the next call goes over the pool; it counts as gone.
    pub fn takes_pool(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.pooled.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// A call took so long on the thread that read it.
    pub fn add(&self, took: Duration) {
        if took <= INLINE_LIMIT {
            if self.weight.load(Ordering::Relaxed) > 0 {
                let less = |weight: u32| weight.checked_sub(1);
                // Another thread may have taken the last of it.
                let _ = self.weight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            }
        } else if self.weight.fetch_add(SLOW, Ordering::Relaxed) + SLOW >= TOO_SLOW {
            self.pooled.store(POOLED_CALLS, Ordering::Relaxed);
            // Afterwards it is tried with one call.
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
    fn a_slow_method_takes_the_long_way_for_a_while() {
        let latency = Latency::default();
        latency.add(2 * INLINE_LIMIT);
        latency.add(2 * INLINE_LIMIT);
        assert_eq!(pooled(&latency), 0);
        latency.add(2 * INLINE_LIMIT);
        assert_eq!(pooled(&latency), POOLED_CALLS);
        latency.add(2 * INLINE_LIMIT);
        assert_eq!(pooled(&latency), POOLED_CALLS, "once more is enough");
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
