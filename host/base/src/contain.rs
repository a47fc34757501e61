//! Catches panics in threads that live as long as the host.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a piece of a thread's work. A panic ends only this piece; it is logged with the name `what`.
pub fn contain(what: &str, work: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        tracing::error!("a panic interrupted {what}; the rest of the work was skipped");
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
