//! Lines of the log that another one can cause are bounded.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

#[derive(Debug, Default)]
struct Second {
    began: Option<Instant>,
    count: u32,
    left_out: u64,
}

/// How often something may happen in a second. What would happen more often is counted.
#[derive(Debug)]
pub struct Rate {
    per_second: u32,
    second: Mutex<Second>,
}

impl Rate {
    /// So often.
    #[must_use]
    pub fn new(per_second: u32) -> Self {
        Self { per_second, second: Mutex::default() }
    }

    /// Whether it may happen now. `tell` hears how often it did not in an earlier second.
    pub fn allows(&self, tell: impl FnOnce(u64)) -> bool {
        let mut second = self.second.lock();
        let mut left_out = 0;
        if second.began.is_none_or(|began| began.elapsed() >= Duration::from_secs(1)) {
            left_out = second.left_out;
            *second = Second { began: Some(Instant::now()), ..Second::default() };
        }
        second.count = second.count.saturating_add(1);
        let allows = second.count <= self.per_second;
        second.left_out += u64::from(!allows);
        drop(second);
        if left_out > 0 {
            tell(left_out);
        }
        allows
    }

    /// How often it did not happen and was not told.
    pub fn left_out(&self) -> u64 {
        std::mem::take(&mut self.second.lock().left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_rate_is_counted() {
        let rate = Rate::new(100);
        let mut told = 0;
        let allowed = (0..150).filter(|_| rate.allows(|count| told += count)).count() as u64;
        assert!(allowed >= 100);
        assert_eq!(allowed + told + rate.left_out(), 150);
        assert_eq!(rate.left_out(), 0);
    }
}
