//! Returns of the node: it is there again, perhaps without its mempool, or has the blocks again that it lacked. What watches the node
//! is told of each once, and whoever answers by what it knows can wait for that.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// The returns that were noted, and those that were told of.
#[derive(Default)]
pub struct Returns {
    noted: AtomicU64,
    told: Mutex<Told>,
    changed: Condvar,
    /// Held while they are told of.
    telling: Mutex<()>,
}

#[derive(Default)]
struct Told {
    /// How many had been noted when they were told of.
    noted: u64,
    /// How often it was tried to tell of them.
    attempts: u64,
}

impl Returns {
    /// Notes one.
    pub fn note(&self) {
        self.noted.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether there is one that was not told of.
    pub fn is_due(&self) -> bool {
        self.noted.load(Ordering::SeqCst) != self.told.lock().noted
    }

    /// Tells of them, where there are any.
    ///
    /// # Errors
    /// Those of `tell`: then they are still due.
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

    /// An attempt to tell of them has failed before it began, since the node is away again.
    pub fn fail(&self) {
        self.told.lock().attempts += 1;
        self.changed.notify_all();
    }

    /// Waits until they were told of, an attempt has failed, or this time has come.
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
    fn returns_are_told_of_once_and_waited_for_until_an_attempt_has_ended() {
        let returns = Returns::default();
        let far = Instant::now() + Duration::from_secs(600);
        assert!(!returns.is_due());
        returns.wait(far);
        returns.note();
        assert!(returns.is_due());
        assert_eq!(returns.tell(|| Err("away")), Err("away"));
        assert!(returns.is_due(), "it was not told of");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| returns.wait(far));
            while !waiting.is_finished() {
                returns.fail();
                std::thread::yield_now();
            }
        });
        // One that is noted meanwhile is due afterwards.
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
