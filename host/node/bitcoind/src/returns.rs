//! Tracks returns of the node: the node is reachable again, perhaps without its mempool, or no longer behind. The host
//! notifies observers of each return once, and threads can wait for that.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// Counts the node's returns, and how many of them were reported to observers.
#[derive(Default)]
pub struct Returns {
    noted: AtomicU64,
    told: Mutex<ReturnNotices>,
    changed: Condvar,
    telling: Mutex<()>,
}

#[derive(Default)]
struct ReturnNotices {
    /// The number of noted returns at the last notification.
    noted: u64,
    attempts: u64,
}

impl Returns {
    /// Records a possible restart of the node, which may have lost its mempool, or the end of its being behind.
    pub fn note(&self) {
        self.noted.fetch_add(1, Ordering::SeqCst);
    }

    pub fn is_due(&self) -> bool {
        self.noted.load(Ordering::SeqCst) != self.told.lock().noted
    }

    /// Calls `tell` if a notification is due. If `tell` fails, the notification stays due.
    pub fn tell<E>(&self, tell: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let _telling = self.telling.lock();
        let noted = self.noted.load(Ordering::SeqCst);
        if noted == self.told.lock().noted {
            return Ok(());
        }
        let outcome = tell();
        let mut told = self.told.lock();
        told.attempts += 1;
        if outcome.is_ok() {
            told.noted = noted;
        }
        self.changed.notify_all();
        outcome
    }

    /// Records a failed attempt: the node is away again.
    pub fn fail(&self) {
        self.told.lock().attempts += 1;
        self.changed.notify_all();
    }

    /// Waits until a notification or a failed attempt, at most until this time.
    pub fn wait(&self, until: Instant) {
        let mut told = self.told.lock();
        let attempts = told.attempts;
        while self.noted.load(Ordering::SeqCst) != told.noted && told.attempts == attempts {
            if self.changed.wait_until(&mut told, until).timed_out() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn returns_are_reported_once_and_a_wait_ends_with_an_attempt() {
        let returns = Returns::default();
        let far = Instant::now() + Duration::from_secs(600);
        assert!(!returns.is_due());
        returns.wait(far);
        returns.note();
        assert!(returns.is_due());
        assert_eq!(returns.tell(|| Err("away")), Err("away"));
        assert!(returns.is_due(), "not reported yet");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| returns.wait(far));
            while !waiting.is_finished() {
                returns.fail();
                std::thread::yield_now();
            }
        });
        // A return during a notification is due afterwards.
        let told = returns.tell(|| {
            returns.note();
            Ok::<_, ()>(())
        });
        assert!(told.is_ok() && returns.is_due());
        assert_eq!(returns.tell(|| Ok::<_, ()>(())), Ok(()));
        assert!(!returns.is_due());
        assert_eq!(returns.tell(|| Err("nothing is due")), Ok(()));
        returns.wait(far);
    }
}
