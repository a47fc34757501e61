//! Why a wallet lags behind the chain.

use std::time::{Duration, Instant};

/// Why a wallet could not follow the chain to its tip, and after how long it is tried again.
pub struct Lag {
    /// What failed.
    pub text: String,
    /// Whether it is only that the node cannot be reached: what the wallet knows is told all the same.
    pub unavailable: bool,
    /// Whether the wallet does not go back to the node's chain by itself: it is told as well, and nothing is written to it.
    pub read_only: bool,
    /// How long it waits.
    pub wait: Duration,
    /// For when the alarm is set that has it tried again.
    pub planned: Option<Instant>,
}
