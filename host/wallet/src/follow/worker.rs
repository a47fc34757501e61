//! A thread of the wallets that waits for work, and ends when it is told to.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::error::Result;

#[derive(Default)]
struct State<W> {
    work: W,
    stopping: bool,
    thread: Option<JoinHandle<()>>,
}

/// A thread and what it has to do.
#[derive(Default)]
pub struct Worker<W> {
    state: Mutex<State<W>>,
    changed: Condvar,
}

/// Nothing is to be done now, but perhaps after this time; none: until there is more.
pub struct Wait(pub Option<Duration>);

impl<W> Worker<W> {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(&self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
        self.state.lock().thread = Some(thread::Builder::new().name(name.to_owned()).spawn(run)?);
        Ok(())
    }

    /// Changes what there is to do.
    pub fn give(&self, change: impl FnOnce(&mut W)) {
        change(&mut self.state.lock().work);
        self.changed.notify_one();
    }

    /// What there is to do.
    #[cfg(test)]
    pub fn look<R>(&self, look: impl FnOnce(&W) -> R) -> R {
        look(&self.state.lock().work)
    }

    /// Waits until there is something to take; none when the thread is to end.
    pub fn take<R>(&self, mut take: impl FnMut(&mut W) -> std::result::Result<R, Wait>) -> Option<R> {
        let mut state = self.state.lock();
        while !state.stopping {
            match take(&mut state.work) {
                Ok(taken) => return Some(taken),
                Err(Wait(None)) => self.changed.wait(&mut state),
                Err(Wait(Some(time))) => {
                    self.changed.wait_for(&mut state, time);
                }
            }
        }
        None
    }

    /// Ends the thread after what it is doing.
    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.stopping = true;
        let thread = state.thread.take();
        drop(state);
        self.changed.notify_all();
        if let Some(thread) = thread {
            // It contains its panics, so this does not fail.
            let _ = thread.join();
        }
    }
}
