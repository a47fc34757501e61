//! When a connection last moved bytes or ended a call, and when it times out.

use std::time::Duration;

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

use super::limits::Limits;

/// Coarse: a few milliseconds stale at most, and cheap to read.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::MonotonicCoarse;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// Time since boot.
pub(super) fn now() -> Duration {
    let now = clock_gettime(CLOCK);
    Duration::new(now.tv_sec.try_into().unwrap_or(0), now.tv_nsec.try_into().unwrap_or(0))
}

pub(super) struct Activity(Mutex<ActivityState>);

struct ActivityState {
    began: Duration,
    needs_credentials: bool,
    /// When bytes were last received or sent, or a call last ended.
    last_activity: Duration,
    /// When the first byte of the request head that is being read arrived.
    head_since: Option<Duration>,
    in_call: bool,
    /// Bytes of the answer that were not sent yet.
    unsent: u64,
}

impl Activity {
    /// The activity of a connection that began at `began` and is active now.
    pub(super) fn since(began: Duration) -> Self {
        let state = ActivityState {
            began,
            needs_credentials: true,
            last_activity: now(),
            head_since: None,
            in_call: false,
            unsent: 0,
        };
        Self(Mutex::new(state))
    }

    pub(super) fn received(&self) {
        let now = now();
        let mut state = self.0.lock();
        state.last_activity = now;
        if !state.in_call {
            state.head_since.get_or_insert(now);
        }
    }

    pub(super) fn sent(&self, bytes: usize) {
        let now = now();
        let mut state = self.0.lock();
        state.last_activity = now;
        state.unsent = state.unsent.saturating_sub(bytes as u64);
    }

    /// Ends the time limit for credentials. The connection may still be closed to make room for others.
    pub(super) fn needs_no_credentials(&self) {
        self.0.lock().needs_credentials = false;
    }

    /// A call begins. No timeout but the one for credentials applies until [`Activity::end_call`].
    pub(super) fn begin_call(&self) {
        let mut state = self.0.lock();
        state.in_call = true;
        state.head_since = None;
    }

    /// The call has ended; its answer of `bytes` bytes is to be sent.
    pub(super) fn end_call(&self, bytes: u64) {
        let now = now();
        let mut state = self.0.lock();
        state.in_call = false;
        state.last_activity = now;
        state.unsent = bytes;
    }

    /// Counts another answer of a WebSocket that waits to be sent. Returns how many bytes wait in total.
    pub(super) fn queued(&self, bytes: u64) -> u64 {
        let mut state = self.0.lock();
        state.unsent = state.unsent.saturating_add(bytes);
        state.unsent
    }

    pub(super) fn unsent(&self) -> u64 {
        self.0.lock().unsent
    }

    /// When the connection times out if nothing else happens. A call in flight suspends all timeouts but the one for
    /// credentials.
    pub(super) fn deadline(&self, limits: &Limits, is_authenticated: bool) -> Option<Duration> {
        let state = self.0.lock();
        let credentials_due = state.began.checked_add(limits.unauthenticated_timeout);
        let inactive_at = if state.in_call { None } else { state.inactive_at(limits) };
        match credentials_due {
            Some(due) if !is_authenticated && state.needs_credentials => {
                Some(inactive_at.map_or(due, |at| at.min(due)))
            }
            _ => inactive_at,
        }
    }
}

impl ActivityState {
    /// When the idle timeout passes, or the header timeout while a head is being read.
    fn inactive_at(&self, limits: &Limits) -> Option<Duration> {
        match self.head_since {
            Some(since) => since.checked_add(limits.header_read_timeout),
            None => self.last_activity.checked_add(limits.idle_timeout),
        }
    }
}
