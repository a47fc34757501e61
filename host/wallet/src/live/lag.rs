use std::time::{Duration, Instant};

use crate::error::WalletError;

/// Why a wallet could not follow the chain to its tip, and when the follower retries.
pub struct Lag {
    pub error: WalletError,
    pub wait: Duration,
    /// The alarm of the retry, once it is set.
    pub planned: Option<Instant>,
}

impl Lag {
    /// Whether the wallet would have to rewind further than `max_rewind`. It then answers reads and refuses writes.
    pub fn is_read_only(&self) -> bool {
        matches!(self.error, WalletError::Rewind { .. })
    }
}
