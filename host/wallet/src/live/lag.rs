use std::time::{Duration, Instant};

/// Why a wallet could not follow the chain to its tip, and when the follower retries.
pub struct Lag {
    pub text: String,
    /// Whether the only problem is that the node is unreachable. The wallet then still answers reads.
    pub unavailable: bool,
    /// Whether the wallet would have to rewind further than `max_rewind`. It then answers reads and refuses writes.
    pub read_only: bool,
    pub wait: Duration,
    /// The alarm of the retry, once it is set.
    pub planned: Option<Instant>,
}
