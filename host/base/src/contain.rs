//! Panics in threads that live as long as the host.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs work of such a thread. A panic ends only this work and is logged.
pub fn contain(what: &str, work: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        tracing::error!("{what} failed by a panic; what it was about is left undone");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contain_lets_a_panic_cost_one_piece_of_work() {
        let mut done = 0;
        contain("the first", || panic!("at once"));
        contain("the second", || done += 1);
        assert_eq!(done, 1);
    }
}
