//! Waiting for the other side of a lane: a sleep and a wake-up take more than ten microseconds, most answers less than one. So a
//! side that waits looks for a while first, for as long as that pays.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use rustix::thread::futex;

/// How long is looked at most before a sleep: by a runner for the next call, and by the host for an answer. To wake a runner takes
/// some thirty microseconds on an idle processor, during which the host should not fall asleep itself.
pub const FOR_CALLS: Duration = Duration::from_micros(20);
pub const FOR_ANSWERS: Duration = Duration::from_micros(60);

/// The same, by a side that has asked a service: the other one reads a batch of a wallet's rows in some eighty microseconds.
pub const FOR_SERVICES: Duration = Duration::from_micros(150);

/// The same within a long message: to copy a piece takes some ten microseconds.
pub const FOR_PIECES: Duration = Duration::from_micros(50);

/// How many looks between two of the clock.
const LOOKS: u32 = 32;

/// What looking in vain costs of the credit, and how much there can be of it. A look that pays gains one.
const VAIN: u8 = 2;
const MAX_CREDIT: u8 = 16;

/// Without credit, one wait in so many looks all the same: times change.
const PROBES: u8 = 255;

/// Whether looking pays on one lane.
pub struct Looking {
    limit: Duration,
    credit: u8,
    waits: u8,
}

impl Looking {
    /// Looks for at most so long before each sleep.
    pub fn new(limit: Duration) -> Self {
        Self { limit, credit: if has_several_cores() { MAX_CREDIT } else { 0 }, waits: 0 }
    }

    /// Looks for something for a while, if that has paid lately. Whether it came.
    pub fn look(&mut self, mut is_there: impl FnMut() -> bool) -> bool {
        self.waits = (self.waits + 1) % PROBES;
        if self.credit == 0 && (self.waits != 0 || !has_several_cores()) {
            return false;
        }
        let began = Instant::now();
        loop {
            for _ in 0..LOOKS {
                if is_there() {
                    self.credit = (self.credit + 1).min(MAX_CREDIT);
                    return true;
                }
                std::hint::spin_loop();
            }
            if began.elapsed() > self.limit {
                self.credit = self.credit.saturating_sub(VAIN);
                return false;
            }
        }
    }
}

fn has_several_cores() -> bool {
    static SEVERAL: OnceLock<bool> = OnceLock::new();
    *SEVERAL.get_or_init(|| std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1))
}

/// Sleeps until a counter that both processes see is woken, unless it has changed already, and at most for this long.
pub fn sleep(counter: &AtomicU32, seen: u32, limit: Option<Duration>) {
    let limit = limit.and_then(|limit| limit.try_into().ok());
    // It has changed, was woken, or the time is over: the caller looks.
    let _ = futex::wait(counter, futex::Flags::empty(), seen, limit.as_ref());
}

/// Wakes who sleeps on a counter.
pub fn wake(counter: &AtomicU32) {
    let _ = futex::wake(counter, futex::Flags::empty(), u32::MAX >> 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_stops_where_it_is_in_vain_and_is_tried_again_now_and_then() {
        let mut looking = Looking { limit: FOR_CALLS, credit: 2, waits: 0 };
        let mut looks = 0;
        assert!(!looking.look(|| {
            looks += 1;
            false
        }));
        assert!(looks > 0);
        assert_eq!(looking.credit, 0);
        let mut tried = 0;
        for _ in 0..u32::from(PROBES) * 4 {
            let mut looked = false;
            looking.look(|| {
                looked = true;
                false
            });
            tried += u32::from(looked);
        }
        let expected = if has_several_cores() { 4 } else { 0 };
        assert_eq!(tried, expected, "once in {PROBES} waits");
    }
}
