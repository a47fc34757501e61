//! A thread with a queue.

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

#[derive(Default)]
pub struct Worker<W> {
    state: Mutex<State<W>>,
    changed: Condvar,
}

impl<W> Worker<W> {
    pub fn start(&self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
        self.state.lock().thread = Some(thread::Builder::new().name(name.to_owned()).spawn(run)?);
        Ok(())
    }

    pub fn give<R>(&self, change: impl FnOnce(&mut W) -> R) -> R {
        let changed = change(&mut self.state.lock().work);
        self.changed.notify_one();
        changed
    }

    /// Waits until `take` succeeds. Without work, `take` fails with the time after which to try again, or with `None` to
    /// wait for more work. Returns `None` once the thread must end.
    pub fn take<R>(&self, mut take: impl FnMut(&mut W) -> std::result::Result<R, Option<Duration>>) -> Option<R> {
        let mut state = self.state.lock();
        while !state.stopping {
            match take(&mut state.work) {
                Ok(taken) => return Some(taken),
                Err(None) => self.changed.wait(&mut state),
                Err(Some(time)) => {
                    self.changed.wait_for(&mut state, time);
                }
            }
        }
        None
    }

    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.stopping = true;
        let thread = state.thread.take();
        drop(state);
        self.changed.notify_all();
        if let Some(thread) = thread {
            // The thread catches panics.
            let _ = thread.join();
        }
    }
}
