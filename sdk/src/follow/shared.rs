//! State that the follower's thread and the plugin's calls share. A *look* is one attempt of the thread to reach the tip.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use outrigger_service::chain::{Cursor, Tip};
use outrigger_values::error::{RpcError, RpcErrorCode};

#[derive(Default)]
struct State {
    cursor: Option<Cursor>,
    /// The number of the last look that a call waits for.
    asked: u64,
    /// The last look that reached the tip, and the last one that failed.
    done: u64,
    failed: u64,
    woken: bool,
    /// The error of the calls that wait for a failed look, or for the follower's end.
    trouble: Option<RpcError>,
    ended: bool,
}

#[derive(Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// The error -1 for clients.
pub(super) fn not_followed(reason: &str) -> RpcError {
    RpcError::misc(format!("The plugin does not follow the chain: {reason}"))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    pub fn wake(&self) {
        self.change(|state| state.woken = true);
    }

    pub fn end(&self, reason: &str) {
        self.change(|state| {
            if !std::mem::replace(&mut state.ended, true) {
                state.trouble = Some(not_followed(reason));
            }
        });
    }

    pub fn has_ended(&self) -> bool {
        self.lock().ended
    }

    pub fn cursor(&self) -> Option<Cursor> {
        self.lock().cursor
    }

    pub fn set_cursor(&self, cursor: Option<Cursor>) {
        self.change(|state| state.cursor = cursor);
    }

    /// Waits until the follower is woken, but at most for `pause`. Returns the number of the next look; none at the end.
    pub fn next_look(&self, pause: Duration) -> Option<u64> {
        let waits = |state: &mut State| !state.woken && !state.ended;
        let waited = self.changed.wait_timeout_while(self.lock(), pause, waits);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.woken = false;
        (!state.ended).then_some(state.asked)
    }

    /// Records that this look reached the tip, or failed with `trouble`.
    pub fn finish_look(&self, look: u64, trouble: Option<RpcError>) {
        self.change(|state| match trouble {
            None => state.done = look,
            Some(trouble) => {
                state.failed = look;
                if !state.ended {
                    state.trouble = Some(trouble);
                }
            }
        });
    }

    pub fn wait_for(&self, tip: &Tip, deadline: Duration) -> Result<(), RpcError> {
        let end = Instant::now().checked_add(deadline);
        let mut state = self.lock();
        if state.cursor.is_some_and(|cursor| cursor.hash == tip.hash) {
            return Ok(());
        }
        // A look that begins from now on sees the tip, or a chain that has replaced it.
        state.asked += 1;
        state.woken = true;
        let look = state.asked;
        self.changed.notify_all();
        loop {
            let at_tip = state.cursor.is_some_and(|cursor| cursor.hash == tip.hash);
            if at_tip || state.done >= look {
                return Ok(());
            }
            if state.ended || state.failed >= look {
                return Err(state.trouble.clone().unwrap_or_else(|| not_followed("")));
            }
            let left = end.map_or(deadline, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                let height =
                    state.cursor.map_or_else(|| "no block".into(), |cursor| format!("block {}", cursor.height));
                let reason = format!("The plugin has followed the chain to {height} of {}", tip.height);
                return Err(RpcError::new(RpcErrorCode::IN_WARMUP, reason));
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
