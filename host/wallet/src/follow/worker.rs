//! Threads with a queue.

use std::thread::{self, JoinHandle};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::error::Result;

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
