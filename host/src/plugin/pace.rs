//! Whether a method that calls itself quick is.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A quick call that takes longer is none.
const QUICK: Duration = Duration::from_millis(5);

/// How many calls of a method that was slow go over the pool before it is tried again.
const DETOUR: u32 = 1000;

/// What a slow call weighs, and what a quick one takes off again; a method that weighs as much as three slow calls is slow.
/// One slow call may be the system's doing, which had no processor for its thread.
const SLOW: u32 = 100;
const TOO_SLOW: u32 = 3 * SLOW;

/// How a quick method has turned out.
#[derive(Default)]
pub struct Pace {
    /// How many of its calls still go over the pool.
    detour: AtomicU32,
    weight: AtomicU32,
}

impl Pace {
    /// Whether the next call goes over the pool; it counts as gone.
    pub fn takes_detour(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.detour.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// A call took so long on the thread that read it.
    pub fn add(&self, took: Duration) {
        if took <= QUICK {
            if self.weight.load(Ordering::Relaxed) > 0 {
                let less = |weight: u32| weight.checked_sub(1);
                // Another thread may have taken the last of it.
                let _ = self.weight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            }
        } else if self.weight.fetch_add(SLOW, Ordering::Relaxed) + SLOW >= TOO_SLOW {
            self.detour.store(DETOUR, Ordering::Relaxed);
            // Afterwards it is tried with one call.
            self.weight.store(TOO_SLOW - SLOW, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detours(pace: &Pace) -> u32 {
        (0..=DETOUR).take_while(|_| pace.takes_detour()).map(|_| 1).sum()
    }

    #[test]
    fn a_slow_method_takes_the_long_way_for_a_while() {
        let pace = Pace::default();
        pace.add(2 * QUICK);
        pace.add(2 * QUICK);
        assert_eq!(detours(&pace), 0);
        pace.add(2 * QUICK);
        assert_eq!(detours(&pace), DETOUR);
        pace.add(2 * QUICK);
        assert_eq!(detours(&pace), DETOUR, "once more is enough");
    }

    #[test]
    fn a_slow_call_among_quick_ones_is_forgiven() {
        let pace = Pace::default();
        for _ in 0..10 {
            pace.add(2 * QUICK);
            (0..SLOW).for_each(|_| pace.add(QUICK));
        }
        assert_eq!(detours(&pace), 0);
    }
}
