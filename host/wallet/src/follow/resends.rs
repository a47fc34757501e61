//! Transactions on their way to the node: those that are being sent, and the thread that offers unconfirmed ones again. It may
//! wait for the node, which the thread of the alarms never does.

use std::collections::BTreeSet;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use bitcoin::Txid;
use parking_lot::{Condvar, Mutex};

use super::index::WalletNumber;
use crate::error::Result;

/// What of a wallet is on its way.
#[derive(Default)]
pub struct Outgoing {
    /// The transactions that are being sent, and may be taken back. They are not offered beside.
    pub sending: BTreeSet<Txid>,
    /// When the unconfirmed ones are offered again.
    pub planned: Option<Instant>,
}

#[derive(Default)]
struct State {
    due: BTreeSet<WalletNumber>,
    stopping: bool,
    thread: Option<JoinHandle<()>>,
}

/// The wallets whose unconfirmed transactions are to be offered again.
#[derive(Default)]
pub struct Resends {
    state: Mutex<State>,
    changed: Condvar,
}

impl Resends {
    /// Starts the thread that offers them.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(&self, run: impl FnOnce() + Send + 'static) -> Result<()> {
        self.state.lock().thread = Some(thread::Builder::new().name("wallet resends".into()).spawn(run)?);
        Ok(())
    }

    /// Has a wallet's transactions offered soon.
    pub fn queue(&self, slot: WalletNumber) {
        self.state.lock().due.insert(slot);
        self.changed.notify_one();
    }

    /// Waits for the next wallet; none when the thread is to end.
    pub fn next(&self) -> Option<WalletNumber> {
        let mut state = self.state.lock();
        loop {
            if state.stopping {
                return None;
            }
            if let Some(slot) = state.due.pop_first() {
                return Some(slot);
            }
            self.changed.wait(&mut state);
        }
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
