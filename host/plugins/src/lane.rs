//! Where a method's code runs; chosen once for each call.

use outrigger_sdk::manifest::MethodSpec;

use crate::latency::Latency;

/// The longest parameters, in bytes, of an inline call: parsing takes time as well.
const INLINE_PARAMS: usize = 2048;

/// Where the code of a call runs, and for how long it may occupy its thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// On the thread that read the request. It blocks that thread's connections, so it must return at once.
    Inline,
    /// On a thread of the pool, within the deadline.
    Pool,
    /// On a thread of the pool, without limit. After the deadline another thread is added to the pool in its place.
    Long,
}

impl Lane {
    /// The lane of a call with parameters of this length, in bytes. A slow inline method blocks its thread's connections, so
    /// only a plugin with `may_run_inline` gets [`Self::Inline`].
    pub fn of(method: &MethodSpec, may_run_inline: bool, latency: &Latency, params: usize) -> Self {
        let may_run_inline = may_run_inline && method.inline && params <= INLINE_PARAMS;
        if may_run_inline && !latency.takes_pool() { Self::Inline } else { Self::pooled(method) }
    }

    /// The lane of a call that cannot run inline.
    pub fn pooled(method: &MethodSpec) -> Self {
        if method.long_running { Self::Long } else { Self::Pool }
    }
}
