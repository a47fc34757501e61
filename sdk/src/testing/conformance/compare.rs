//! Random operations on two subjects at once.

use super::{Outcome, Subject};

/// Placeholder.
pub fn compare(_seed: u64, _steps: u32, _one: &dyn Subject, _other: &dyn Subject) -> Outcome {
    Ok(())
}
