//! What blocks, and what lets it go on: a test that waits for a connection knows that the code is there, and closing the
//! connection lets it go on. So tests need no sleeps.

use std::io::Read;
use std::net::TcpStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use outrigger_sdk::RpcError;

/// Locks. What panicked under a lock did so on purpose.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What all blocks on that has no gate of its own.
#[derive(Default)]
pub struct Release {
    releases: Mutex<u64>,
    changed: Condvar,
}

impl Release {
    /// Blocks until the next [`Release::release`].
    pub fn wait(&self) {
        let mut releases = lock(&self.releases);
        let before = *releases;
        while *releases == before {
            releases = self.changed.wait(releases).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets everything go on that blocks.
    pub fn release(&self) {
        *lock(&self.releases) += 1;
        self.changed.notify_all();
    }
}

/// Connects to a gate.
pub fn connect(gate: &str) -> Result<TcpStream, RpcError> {
    TcpStream::connect(gate).map_err(|error| RpcError::invalid_parameter(format!("no gate at '{gate}': {error}")))
}

/// Blocks until the other end of a gate closes.
pub fn wait(mut gate: TcpStream) {
    let mut rest = Vec::new();
    // An error is an end as well.
    let _ = gate.read_to_end(&mut rest);
}

pub fn pass(gate: &str) {
    let _ = connect(gate).map(wait);
}

pub fn block_for_ever() -> ! {
    loop {
        std::thread::park();
    }
}
