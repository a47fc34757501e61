//! Threads with a queue, and the queues for timed work, for resends and for the removal of former secrets.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::error::Result;
use crate::live::index::WalletNumber;
use crate::live::outgoing::OfferScope;

/// The first and the longest pause before another removal of a former secret.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(600);

#[derive(Default)]
struct State<W> {
    work: W,
    stopping: bool,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
pub struct Worker<W> {
    state: Mutex<State<W>>,
    changed: Condvar,
}

impl<W: Default> Worker<W> {
    /// Starts a thread. `run` takes work until there is none, and catches panics.
    pub fn start(&self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
        self.state.lock().threads.push(thread::Builder::new().name(name.to_owned()).spawn(run)?);
        Ok(())
    }

    /// Changes the work. Once the threads must end, it stays empty: it may hold wallets, which hold the worker.
    pub fn give<R>(&self, change: impl FnOnce(&mut W) -> R) -> R {
        let mut state = self.state.lock();
        let changed = change(&mut state.work);
        if state.stopping {
            state.work = W::default();
        }
        drop(state);
        self.changed.notify_one();
        changed
    }

    /// Waits until `take` succeeds. Without work, `take` fails with the time at which to try again, or with `None` to wait
    /// for more work. Returns `None` once the thread must end.
    pub fn take<R>(&self, mut take: impl FnMut(&mut W) -> std::result::Result<R, Option<Instant>>) -> Option<R> {
        let mut state = self.state.lock();
        while !state.stopping {
            match take(&mut state.work) {
                Ok(taken) => return Some(taken),
                Err(None) => self.changed.wait(&mut state),
                Err(Some(time)) => {
                    self.changed.wait_until(&mut state, time);
                }
            }
        }
        None
    }

    pub fn stop(&self) {
        let mut state = self.state.lock();
        (state.stopping, state.work) = (true, W::default());
        let threads = std::mem::take(&mut state.threads);
        drop(state);
        self.changed.notify_all();
        for thread in threads {
            let _ = thread.join();
        }
    }
}

/// Timed work of wallets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Due {
    Lock(WalletNumber),
    /// The wallet tries again to follow the chain.
    Retry(WalletNumber),
    Resend(WalletNumber),
    Maintenance,
}

pub type Alarm = (Instant, Due);

pub type Alarms = Worker<BinaryHeap<Reverse<Alarm>>>;

impl Alarms {
    pub fn set(&self, at: Instant, due: Due) {
        self.give(|alarms| alarms.push(Reverse((at, due))));
    }

    #[cfg(test)]
    pub fn retries(&self) -> usize {
        self.give(|alarms| alarms.iter().filter(|Reverse((_, due))| matches!(due, Due::Retry(_))).count())
    }

    /// Waits for the next alarm. `None` ends the thread.
    pub fn next(&self) -> Option<Alarm> {
        self.take(|alarms| {
            let Some(Reverse((at, _))) = alarms.peek() else { return Err(None) };
            if *at > Instant::now() {
                return Err(Some(*at));
            }
            alarms.pop().map(|Reverse(alarm)| alarm).ok_or(None)
        })
    }
}

/// Wallets that offer unconfirmed transactions to the node again. The thread may wait for the node; the alarm thread never does.
pub type Resends = Worker<BTreeMap<WalletNumber, OfferScope>>;

impl Resends {
    pub fn queue(&self, slot: WalletNumber, offered: OfferScope) {
        self.give(|due| {
            let planned = due.entry(slot).or_insert(offered);
            *planned = offered.max(*planned);
        });
    }

    /// Waits for the next wallet. `None` ends the thread.
    pub fn next(&self) -> Option<(WalletNumber, OfferScope)> {
        self.take(|due| due.pop_first().ok_or(None))
    }
}

/// Wallets whose files still contain a former secret: when the removal is tried again, and the pause before that.
pub type Scrubs = Worker<BTreeMap<WalletNumber, (Instant, Duration)>>;

impl Scrubs {
    /// Schedules a retry. Returns false if the wallet has one already.
    pub fn plan(&self, slot: WalletNumber) -> bool {
        self.give(|due| {
            let is_new = !due.contains_key(&slot);
            due.entry(slot).or_insert((Instant::now() + FIRST_PAUSE, FIRST_PAUSE));
            is_new
        })
    }

    pub fn forget(&self, slot: WalletNumber) {
        self.give(|due| due.remove(&slot));
    }

    /// Waits for the next wallet, and schedules a further retry after a longer pause. So the thread tries again even if
    /// the attempt panics. `None` ends the thread.
    pub fn next(&self) -> Option<WalletNumber> {
        self.take(|due| {
            let Some((slot, (at, pause))) = due.iter_mut().min_by_key(|(_, retry)| retry.0) else { return Err(None) };
            if *at > Instant::now() {
                return Err(Some(*at));
            }
            *pause = LAST_PAUSE.min(2 * *pause);
            *at = Instant::now() + *pause;
            Ok(*slot)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wallet_that_cannot_be_freed_of_a_secret_is_tried_less_and_less_often() {
        let scrubs = Scrubs::default();
        assert!(scrubs.plan(7) && !scrubs.plan(7));
        let pauses = [(); 15].map(|()| {
            // The pause is over.
            scrubs.give(|due| due.values_mut().for_each(|(at, _)| *at = Instant::now()));
            assert_eq!(scrubs.next(), Some(7));
            scrubs.give(|due| due[&7].1)
        });
        assert_eq!(pauses[..3], [2, 4, 8].map(|times| FIRST_PAUSE * times));
        assert_eq!(pauses[14], LAST_PAUSE);
    }
}
