//! How much memory a runner's long messages may take at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory that is left, in bytes.
#[derive(Debug)]
pub struct Budget(AtomicUsize);

impl Budget {
    /// So much memory.
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self(AtomicUsize::new(bytes)))
    }

    /// Takes a part of it; none where not so much is left.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Option<Share> {
        let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        left.ok().map(|_| Share { budget: self.clone(), bytes })
    }
}

/// A part of a budget, which goes back when it is dropped.
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_not_there_until_it_comes_back() {
        let budget = Budget::new(10);
        let (one, other) = (budget.take(6).unwrap(), budget.take(4).unwrap());
        assert!(budget.take(1).is_none());
        drop(one);
        assert!(budget.take(7).is_none());
        drop((budget.take(6).unwrap(), other));
        assert!(budget.take(10).is_some());
    }
}
