//! Gates that block code: a test that accepts a connection knows that the code waits, and closing the connection lets
//! the code continue. So tests need no sleeps.

use std::io::Read;
use std::net::TcpStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use outrigger_sdk::RpcError;

/// Locks. Ignores poisoning: panics under a lock are intended.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Blocks all calls that have no gate.
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

    /// Lets all blocked calls continue.
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
    // An error ends the wait as well.
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
