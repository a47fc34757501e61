//! Signs of life of a connection, and what they say of how long it may last.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rustix::time::{ClockId, clock_gettime};

use super::limits::Limits;

/// The time since the machine started, as of its last tick. That is some milliseconds old at most, and cheap to ask for.
pub(super) fn now() -> Duration {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    Duration::new(now.tv_sec.try_into().unwrap_or(0), now.tv_nsec.try_into().unwrap_or(0))
}

/// When a connection last showed signs of life.
pub(super) struct Activity(Mutex<Life>);

struct Life {
    /// When it began.
    began: Duration,
    /// When bytes were last moved, or a call last ended.
    last_sign: Duration,
    /// When the first byte of the head that is being read arrived.
    head_since: Option<Duration>,
    /// Whether a request is being answered.
    in_call: bool,
    /// Whether a request said in two ways where its body ends. It is the last of its connection.
    ambiguous: bool,
    /// Bytes of the answer that were not sent.
    unsent: u64,
}

impl Activity {
    /// That of a connection which began then, and shows a sign of life now.
    pub(super) fn since(began: Duration) -> Self {
        let life = Life { began, last_sign: now(), head_since: None, in_call: false, ambiguous: false, unsent: 0 };
        Self(Mutex::new(life))
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.0.lock()
    }

    /// Bytes came; with them a head that says in two ways where its body ends, if it is `ambiguous`.
    pub(super) fn received(&self, ambiguous: bool) {
        let now = now();
        let mut life = self.life();
        life.last_sign = now;
        life.ambiguous |= ambiguous;
        if !life.in_call {
            life.head_since.get_or_insert(now);
        }
    }

    /// So many bytes were sent.
    pub(super) fn sent(&self, bytes: usize) {
        let now = now();
        let mut life = self.life();
        life.last_sign = now;
        life.unsent = life.unsent.saturating_sub(bytes as u64);
    }

    /// A request begins to be answered.
    pub(super) fn begin_call(&self) {
        let mut life = self.life();
        life.in_call = true;
        life.head_since = None;
    }

    /// It does not any more. Its answer is to be sent, with so many bytes.
    pub(super) fn end_call(&self, bytes: u64) {
        let now = now();
        let mut life = self.life();
        life.in_call = false;
        life.last_sign = now;
        life.unsent = bytes;
    }

    /// How many bytes of the answer were not sent.
    pub(super) fn unsent(&self) -> u64 {
        self.life().unsent
    }

    /// Whether a request said in two ways where its body ends.
    pub(super) fn is_ambiguous(&self) -> bool {
        self.life().ambiguous
    }

    /// When the connection times out, as things stand. Never while a request is being answered, unless it comes from one who
    /// has not shown credentials.
    pub(super) fn deadline(&self, limits: &Limits, is_authenticated: bool) -> Option<Duration> {
        let life = self.life();
        let authenticated_by = life.began.checked_add(limits.unauthenticated_timeout);
        let known_until = if life.in_call { None } else { life.idle_until(limits) };
        match authenticated_by {
            Some(by) if !is_authenticated => Some(known_until.map_or(by, |until| until.min(by))),
            _ => known_until,
        }
    }
}

impl Life {
    fn idle_until(&self, limits: &Limits) -> Option<Duration> {
        let idle_until = self.last_sign.checked_add(limits.idle_timeout)?;
        match self.head_since {
            Some(since) => Some(since.checked_add(limits.header_read_timeout)?),
            None => Some(idle_until),
        }
    }
}
