//! Busy polling: after a thread has sent something, it spins for some microseconds for the response before it sleeps.
//!
//! A client that calls sequentially sends its next request some microseconds after it has read a response, and a node
//! answers a short call as quickly. Putting a thread to sleep and waking it costs more than most calls. After several
//! consecutive misses, a connection skips polling for a number of reads, and the number doubles if the misses continue.
//! If more connections are active than half of the CPUs, none is polled.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::io::ReadBuf;

/// The number of consecutive misses that count as a failure. One miss is weak evidence: the client's CPU often goes idle
/// while this thread sleeps, and an idle CPU wakes slowly.
const TRIES: u32 = 4;

/// Limits the doubling: after this many failures, a connection skips polling for 2^12 - 1 reads.
const MAX_FAILURES: u32 = 12;

/// The most bytes that a poll reads; the caller reads the rest. Limits the memory that each poll initialises.
const LOOK_BYTES: usize = 2048;

/// The limits and counters that all connections of a server, or to a node, share.
pub struct BusyPoll {
    /// How many threads may poll at a time.
    places: usize,
    looking: AtomicUsize,
    patience: Duration,
    /// The number of sends on all connections.
    sent: AtomicU64,
}

impl BusyPoll {
    /// Each poll lasts at most `patience`, and at most half of the CPUs poll at a time. Zero disables polling.
    pub fn new(patience: Duration) -> Arc<Self> {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let places = if patience.is_zero() { 0 } else { processors / 2 };
        Arc::new(Self { places, looking: AtomicUsize::new(0), patience, sent: AtomicU64::new(0) })
    }

    fn take_place(&self) -> bool {
        let one_more = |looking: usize| (looking < self.places).then_some(looking + 1);
        self.looking.fetch_update(Ordering::Acquire, Ordering::Relaxed, one_more).is_ok()
    }

    /// Polls for bytes or, with `PEEK`, for their arrival; `None` after the patience, or if too many threads poll.
    fn look(&self, stream: &impl AsFd, buffer: &mut ReadBuf<'_>, flags: RecvFlags) -> Option<io::Result<()>> {
        if !self.take_place() {
            return None;
        }
        let room = buffer.remaining().min(LOOK_BYTES);
        let began = Instant::now();
        let found = loop {
            match recv(stream, buffer.initialize_unfilled_to(room), flags | RecvFlags::DONTWAIT) {
                Ok((_, count)) => {
                    buffer.advance(count);
                    break Some(Ok(()));
                }
                // A yield instead of the spin would take milliseconds if other threads wait for the CPU.
                Err(Errno::AGAIN | Errno::INTR) if began.elapsed() < self.patience => std::hint::spin_loop(),
                Err(Errno::AGAIN | Errno::INTR) => break None,
                Err(error) => break Some(Err(error.into())),
            }
        };
        self.looking.fetch_sub(1, Ordering::Release);
        found
    }
}

/// Decides whether to poll a connection after its next send.
pub struct BusyPollState {
    busy_poll: Arc<BusyPoll>,
    /// Misses in a row since the last failure.
    misses: u32,
    /// Failures since the last hit.
    failures: u32,
    /// How many more reads skip polling.
    asleep: u32,
    /// The value of [`BusyPoll::sent`] after this connection's last send.
    sent: u64,
}

impl BusyPollState {
    pub fn new(busy_poll: Arc<BusyPoll>) -> Self {
        Self { busy_poll, misses: 0, failures: 0, asleep: 0, sent: 0 }
    }

    /// After a send, polls for the response if it is likely to come soon; `None` if it did not poll or nothing came.
    pub fn look(&mut self, stream: &impl AsFd, buffer: &mut ReadBuf<'_>) -> Option<io::Result<()>> {
        self.look_with(stream, buffer, RecvFlags::empty())
    }

    /// As [`Self::look`], but leaves the bytes in the socket.
    pub fn wait(&mut self, stream: &impl AsFd) {
        // The next read returns the same error.
        let _ = self.look_with(stream, &mut ReadBuf::new(&mut [0]), RecvFlags::PEEK);
    }

    fn look_with(&mut self, stream: &impl AsFd, buffer: &mut ReadBuf<'_>, flags: RecvFlags) -> Option<io::Result<()>> {
        let sent = self.busy_poll.sent.fetch_add(1, Ordering::Relaxed) + 1;
        let others = sent - std::mem::replace(&mut self.sent, sent) - 1;
        if others >= self.busy_poll.places as u64 {
            return None;
        }
        if self.asleep > 0 {
            self.asleep -= 1;
            return None;
        }
        let found = self.busy_poll.look(stream, buffer, flags);
        if found.is_some() {
            (self.misses, self.failures) = (0, 0);
        } else {
            self.misses += 1;
            if self.misses == TRIES {
                self.misses = 0;
                self.failures = (self.failures + 1).min(MAX_FAILURES);
                self.asleep = (1 << self.failures) - 1;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    async fn pair() -> (std::net::TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let client = std::net::TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
        (client, listener.accept().await.expect("accept").0)
    }

    fn busy_poll(places: usize) -> Arc<BusyPoll> {
        let (looking, sent) = (AtomicUsize::new(0), AtomicU64::new(0));
        Arc::new(BusyPoll { places, looking, patience: Duration::from_millis(1), sent })
    }

    fn look(polling: &mut BusyPollState, stream: &TcpStream) -> Option<usize> {
        let mut bytes = [0; 4096];
        let mut buffer = ReadBuf::new(&mut bytes);
        polling.look(stream, &mut buffer).map(|found| found.map(|()| buffer.filled().len()).expect("read"))
    }

    #[tokio::test]
    async fn busy_poll_reads_available_bytes_and_pauses_after_misses() {
        let (mut client, stream) = pair().await;
        let mut polling = BusyPollState::new(busy_poll(1));
        client.write_all(b"request").expect("write");
        stream.readable().await.expect("readable");
        assert_eq!(look(&mut polling, &stream), Some(7));
        let fail = |polling: &mut BusyPollState| {
            for _ in 0..TRIES {
                assert_eq!(look(polling, &stream), None);
            }
            polling.asleep
        };
        assert_eq!(fail(&mut polling), 1);
        client.write_all(b"request").expect("write");
        assert_eq!((look(&mut polling, &stream), polling.asleep), (None, 0), "asleep");
        assert_eq!(look(&mut polling, &stream), Some(7));
        assert_eq!(fail(&mut polling), 1, "a hit resets the failures");
        assert_eq!(look(&mut polling, &stream), None);
        assert_eq!(fail(&mut polling), 3);
        (0..3).for_each(|_| assert_eq!(look(&mut polling, &stream), None));
        drop(client);
        assert_eq!(look(&mut polling, &stream), Some(0), "the end");
    }

    #[tokio::test]
    async fn busy_poll_wait_leaves_the_bytes_in_the_socket() {
        let (mut client, stream) = pair().await;
        let mut polling = BusyPollState::new(busy_poll(1));
        polling.wait(&stream);
        assert_eq!((polling.misses, polling.asleep), (1, 0), "nothing came");
        client.write_all(b"reply").expect("write");
        stream.readable().await.expect("readable");
        polling.wait(&stream);
        polling.wait(&stream);
        assert_eq!((polling.misses, look(&mut polling, &stream)), (0, Some(5)));
    }

    #[tokio::test]
    async fn busy_poll_is_skipped_if_many_connections_are_active() {
        let (mut client, stream) = pair().await;
        let shared = busy_poll(1);
        let (mut polling, mut other) = (BusyPollState::new(shared.clone()), BusyPollState::new(shared.clone()));
        client.write_all(b"request").expect("write");
        stream.readable().await.expect("readable");
        assert_eq!(look(&mut other, &stream), Some(7));
        client.write_all(b"request").expect("write");
        assert_eq!(look(&mut polling, &stream), None, "another connection has sent since");
        assert_eq!(look(&mut polling, &stream), Some(7));
        shared.looking.store(1, Ordering::Relaxed);
        assert_eq!(look(&mut polling, &stream), None, "another thread polls");
    }
}
