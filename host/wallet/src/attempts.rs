//! Delays attempts to unlock a wallet after wrong passphrases.
//!
//! Only one attempt waits at a time, so guessing does not block the threads of other calls. Further attempts are
//! refused. The right passphrase waits as long as a wrong one: it is checked after the wait.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};
use parking_lot::Mutex;

/// The delay after a wrong passphrase. Each further wrong one in a row doubles it.
const FIRST_DELAY: Duration = Duration::from_millis(250);
const LONGEST_DELAY: Duration = Duration::from_secs(8);

const BUSY: &str = "Error: Attempts to unlock this wallet are slowed after wrong passphrases, and another attempt waits. Try again later.";

/// Attempts by wallet name, kept until the host stops: unloading and loading a wallet does not reset its delay.
#[derive(Default)]
pub struct AllAttempts(Mutex<HashMap<String, Arc<UnlockAttempts>>>);

impl AllAttempts {
    pub fn of(&self, wallet: &str) -> Arc<UnlockAttempts> {
        let mut all = self.0.lock();
        // Drops entries without a loaded wallet and without wrong passphrases.
        all.retain(|_, attempts| Arc::strong_count(attempts) > 1 || attempts.wrong() > 0);
        all.entry(wallet.to_owned()).or_default().clone()
    }
}

#[derive(Default)]
pub struct UnlockAttempts(Mutex<State>);

#[derive(Default)]
struct State {
    wrong_in_a_row: u32,
    wrong: u64,
    /// The earliest start of the next attempt.
    next: Option<Instant>,
    waiting: bool,
}

impl State {
    fn delay(&self) -> Duration {
        match self.wrong_in_a_row.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => FIRST_DELAY.saturating_mul(2_u32.saturating_pow(doublings)).min(LONGEST_DELAY),
        }
    }

    /// How long an attempt at `now` must wait; `None` if it is refused.
    fn admit(&mut self, now: Instant) -> Option<Duration> {
        let begin = self.next.map_or(now, |next| next.max(now));
        if begin > now && self.waiting {
            return None;
        }
        // The outcome of this attempt is still unknown, so concurrent attempts wait as if it failed.
        self.next = Some(begin + self.delay());
        self.waiting = begin > now;
        Some(begin - now)
    }

    fn note(&mut self, right: bool, now: Instant) {
        if right {
            (self.wrong_in_a_row, self.next) = (0, None);
            return;
        }
        self.wrong_in_a_row = self.wrong_in_a_row.saturating_add(1);
        self.wrong += 1;
        let next = now + self.delay();
        self.next = Some(self.next.map_or(next, |planned| planned.max(next)));
    }
}

impl UnlockAttempts {
    /// Runs an attempt after its delay. Fails with `Refused` while another attempt waits. If `attempt` fails with
    /// `PassphraseIncorrect`, the next delay is longer.
    pub fn make<T>(&self, attempt: impl FnOnce() -> ServiceResult<T>) -> ServiceResult<T> {
        let wait = self.0.lock().admit(Instant::now());
        let wait = wait.ok_or_else(|| ServiceError::new(ErrorKind::Refused, BUSY))?;
        if !wait.is_zero() {
            thread::sleep(wait);
            self.0.lock().waiting = false;
        }
        let outcome = attempt();
        match &outcome {
            Ok(_) => self.0.lock().note(true, Instant::now()),
            Err(error) if error.kind == ErrorKind::PassphraseIncorrect => self.0.lock().note(false, Instant::now()),
            Err(_) => {}
        }
        outcome
    }

    pub fn wrong(&self) -> u64 {
        self.0.lock().wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walletpassphrase_waits_twice_as_long_after_each_wrong_one() {
        let (mut state, mut now) = (State::default(), Instant::now());
        assert_eq!(state.admit(now), Some(Duration::ZERO));
        let mut waits = Vec::new();
        for _ in 0..8 {
            state.note(false, now);
            let wait = state.admit(now).unwrap();
            waits.push(wait.as_millis());
            now += wait;
            state.waiting = false;
        }
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 8000, 8000, 8000]);
        state.note(true, now);
        assert_eq!(state.admit(now), Some(Duration::ZERO), "the right passphrase resets the delay");
    }

    #[test]
    fn walletpassphrase_is_refused_while_another_attempt_waits() {
        let (mut state, now) = (State::default(), Instant::now());
        state.note(false, now);
        assert_eq!(state.admit(now), Some(FIRST_DELAY));
        assert_eq!(state.admit(now), None);
        assert_eq!(state.wrong, 1);
    }

    #[test]
    fn loadwallet_does_not_make_up_for_wrong_passphrases() {
        let all = AllAttempts::default();
        let wrong = || Err::<(), _>(ErrorKind::PassphraseIncorrect.into());
        all.of("guessed").make(wrong).unwrap_err();
        drop(all.of("other"));
        assert_eq!((all.of("guessed").wrong(), all.of("other").wrong()), (1, 0));
        assert_eq!(all.of("guessed").0.lock().delay(), FIRST_DELAY);
        let loaded = all.of("loaded");
        drop(all.of("other"));
        drop(all.of("guessed"));
        let mut kept: Vec<_> = all.0.lock().keys().cloned().collect();
        kept.sort();
        assert_eq!(kept, ["guessed", "loaded"], "entries without wrong passphrases are dropped");
        drop(loaded);
    }

    #[test]
    fn walletpassphrase_counts_wrong_passphrases_and_nothing_else() {
        let attempts = UnlockAttempts::default();
        let failed = |kind: ErrorKind| attempts.make(|| Err::<(), _>(kind.into()));
        assert!(failed(ErrorKind::Storage).is_err());
        assert_eq!(attempts.wrong(), 0);
        assert!(failed(ErrorKind::PassphraseIncorrect).is_err());
        attempts.make(|| Ok(())).unwrap();
        assert_eq!((attempts.wrong(), attempts.0.lock().wrong_in_a_row), (1, 0));
    }
}
