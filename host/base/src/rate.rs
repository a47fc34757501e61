//! Rate limits for log lines that clients, plugins or peers can trigger.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

#[derive(Debug, Default)]
struct Period {
    began: Option<Instant>,
    count: u32,
    left_out: u64,
}

/// A rate limit. Suppressed events are counted.
#[derive(Debug)]
pub struct Rate {
    most: u32,
    length: Duration,
    period: Mutex<Period>,
}

impl Rate {
    #[must_use]
    pub fn per_second(most: u32) -> Self {
        Self { most, length: Duration::from_secs(1), period: Mutex::default() }
    }

    #[must_use]
    pub fn once_a_minute() -> Self {
        Self { most: 1, length: Duration::from_secs(60), period: Mutex::default() }
    }

    /// Whether the event is allowed now. Calls `tell` with the number of events suppressed in an earlier period, if any.
    pub fn allows(&self, tell: impl FnOnce(u64)) -> bool {
        let mut period = self.period.lock();
        let mut left_out = 0;
        if period.began.is_none_or(|began| began.elapsed() >= self.length) {
            left_out = period.left_out;
            *period = Period { began: Some(Instant::now()), ..Period::default() };
        }
        period.count = period.count.saturating_add(1);
        let allows = period.count <= self.most;
        period.left_out += u64::from(!allows);
        drop(period);
        if left_out > 0 {
            tell(left_out);
        }
        allows
    }

    /// Returns and resets the number of suppressed events that `tell` has not received.
    pub fn left_out(&self) -> u64 {
        std::mem::take(&mut self.period.lock().left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suppressed_events_are_counted() {
        let rate = Rate::per_second(100);
        let mut told = 0;
        let allowed = (0..150).filter(|_| rate.allows(|count| told += count)).count() as u64;
        assert!(allowed >= 100);
        assert_eq!(allowed + told + rate.left_out(), 150);
        assert_eq!(rate.left_out(), 0);
    }

    #[test]
    fn a_second_event_within_a_minute_is_suppressed() {
        let rate = Rate::once_a_minute();
        assert!(rate.allows(|_| unreachable!()));
        assert!(!rate.allows(|_| unreachable!()) && !rate.allows(|_| unreachable!()));
        assert_eq!(rate.left_out(), 2);
    }
}
