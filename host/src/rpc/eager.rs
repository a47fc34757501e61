//! Looking for a connection's next request for a moment before its thread goes to sleep.
//!
//! A client that asks one thing after the other sends its next request some microseconds after it has read an answer. To
//! put a thread to sleep and wake it again costs more than answering most calls, so the thread that has answered looks
//! whether the next request is there. It does so only while that pays: where nothing came in time, the connection's next
//! requests are waited for asleep, twice as many each time; and only some threads do so at a time, so that there are
//! always others, and processors for them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::io::ReadBuf;
use tokio::net::TcpStream;

/// After so many misses in a row a connection is not given up on for longer: some 4000 requests.
const MAX_MISSES: u32 = 12;

/// Who looks for requests, among all connections of a server.
pub(super) struct Eager {
    /// How many more threads may look.
    places: AtomicUsize,
    /// How long one looks.
    patience: Duration,
}

impl Eager {
    /// Threads may look for so long, as long as half of the processors are left.
    pub fn new(patience: Duration) -> Arc<Self> {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let places = if patience.is_zero() { 0 } else { processors / 2 };
        Arc::new(Self { places: AtomicUsize::new(places), patience })
    }

    fn take_place(&self) -> bool {
        let one_less = |places: usize| places.checked_sub(1);
        self.places.fetch_update(Ordering::Acquire, Ordering::Relaxed, one_less).is_ok()
    }

    /// What comes within the patience; none when nothing does.
    fn look(&self, stream: &TcpStream, buffer: &mut ReadBuf<'_>) -> Option<io::Result<()>> {
        if !self.take_place() {
            return None;
        }
        let began = Instant::now();
        let found = loop {
            match recv(stream, buffer.initialize_unfilled(), RecvFlags::DONTWAIT) {
                Ok((_, count)) => {
                    buffer.advance(count);
                    break Some(Ok(()));
                }
                // The processor is not given away in between: where others wait for it, that would take milliseconds.
                Err(Errno::AGAIN | Errno::INTR) if began.elapsed() < self.patience => std::hint::spin_loop(),
                Err(Errno::AGAIN | Errno::INTR) => break None,
                Err(error) => break Some(Err(error.into())),
            }
        };
        self.places.fetch_add(1, Ordering::Release);
        found
    }
}

/// Whether a connection's next request is looked for, as its client has turned out.
pub(super) struct Habit {
    eager: Arc<Eager>,
    /// How often in a row it was looked for in vain.
    misses: u32,
    /// How many requests are still waited for asleep.
    asleep: u32,
}

impl Habit {
    /// Of a new connection, on which nothing is known.
    pub fn new(eager: Arc<Eager>) -> Self {
        Self { eager, misses: 0, asleep: 0 }
    }

    /// Looks for the request after an answer, if that is likely to pay; none when there is nothing yet.
    pub fn look(&mut self, stream: &TcpStream, buffer: &mut ReadBuf<'_>) -> Option<io::Result<()>> {
        if self.asleep > 0 {
            self.asleep -= 1;
            return None;
        }
        let found = self.eager.look(stream, buffer);
        self.misses = if found.is_some() { 0 } else { (self.misses + 1).min(MAX_MISSES) };
        self.asleep = (1 << self.misses) - 1;
        found
    }
}
