//! Looking for a connection's next request for a moment before its thread goes to sleep.
//!
//! A client that asks one thing after the other sends its next request some microseconds after it has read an answer. To
//! put a thread to sleep and wake it again costs more than answering most calls, so the thread that has answered looks
//! whether the next request is there. It does so only while that pays: where nothing came in time, the connection's next
//! requests are waited for asleep, twice as many each time; and where more clients ask than there are processors to spare,
//! nobody is given this preference over the others.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::io::ReadBuf;
use tokio::net::TcpStream;

/// After so many misses in a row a connection is not given up on for longer: some 4000 requests.
const MAX_MISSES: u32 = 12;

/// The most bytes that are looked for; what is longer is read on as ever. It bounds the memory that looking touches.
const LOOK_BYTES: usize = 2048;

/// Who looks for requests, among all connections of a server.
pub(super) struct Eager {
    /// How many threads may look at a time.
    places: usize,
    looking: AtomicUsize,
    /// How long one looks.
    patience: Duration,
    /// How many answers there have been on all connections.
    answers: AtomicU64,
}

impl Eager {
    /// Threads may look for so long, as long as half of the processors are left.
    pub fn new(patience: Duration) -> Arc<Self> {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let places = if patience.is_zero() { 0 } else { processors / 2 };
        Arc::new(Self { places, looking: AtomicUsize::new(0), patience, answers: AtomicU64::new(0) })
    }

    fn take_place(&self) -> bool {
        let one_more = |looking: usize| (looking < self.places).then_some(looking + 1);
        self.looking.fetch_update(Ordering::Acquire, Ordering::Relaxed, one_more).is_ok()
    }

    /// What comes within the patience; none when nothing does.
    fn look(&self, stream: &TcpStream, buffer: &mut ReadBuf<'_>) -> Option<io::Result<()>> {
        if !self.take_place() {
            return None;
        }
        let room = buffer.remaining().min(LOOK_BYTES);
        let began = Instant::now();
        let found = loop {
            match recv(stream, buffer.initialize_unfilled_to(room), RecvFlags::DONTWAIT) {
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
        self.looking.fetch_sub(1, Ordering::Release);
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
    /// How many answers there had been on all connections with the last on this one.
    answers: u64,
}

impl Habit {
    /// Of a new connection, on which nothing is known.
    pub fn new(eager: Arc<Eager>) -> Self {
        Self { eager, misses: 0, asleep: 0, answers: 0 }
    }

    /// Looks for the request after an answer, if that is likely to pay; none when there is nothing yet.
    pub fn look(&mut self, stream: &TcpStream, buffer: &mut ReadBuf<'_>) -> Option<io::Result<()>> {
        let answers = self.eager.answers.fetch_add(1, Ordering::Relaxed) + 1;
        let others = answers - std::mem::replace(&mut self.answers, answers) - 1;
        if others >= self.eager.places as u64 {
            return None;
        }
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (std::net::TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let client = std::net::TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
        (client, listener.accept().await.expect("accept").0)
    }

    fn eager(places: usize) -> Arc<Eager> {
        let (looking, answers) = (AtomicUsize::new(0), AtomicU64::new(0));
        Arc::new(Eager { places, looking, patience: Duration::from_millis(1), answers })
    }

    fn look(habit: &mut Habit, stream: &TcpStream) -> Option<usize> {
        let mut bytes = [0; 4096];
        let mut buffer = ReadBuf::new(&mut bytes);
        habit.look(stream, &mut buffer).map(|found| found.map(|()| buffer.filled().len()).expect("read"))
    }

    #[tokio::test]
    async fn what_is_there_is_found_and_misses_are_paid_for() {
        let (mut client, stream) = pair().await;
        let mut habit = Habit::new(eager(1));
        client.write_all(b"request").expect("write");
        stream.readable().await.expect("readable");
        assert_eq!(look(&mut habit, &stream), Some(7));
        assert_eq!((look(&mut habit, &stream), habit.asleep), (None, 1));
        client.write_all(b"request").expect("write");
        assert_eq!((look(&mut habit, &stream), habit.asleep), (None, 0), "asleep");
        assert_eq!(look(&mut habit, &stream), Some(7));
        drop(client);
        assert_eq!(look(&mut habit, &stream), Some(0), "the end");
    }

    #[tokio::test]
    async fn nobody_is_preferred_where_many_ask() {
        let (mut client, stream) = pair().await;
        let shared = eager(1);
        let (mut habit, mut other) = (Habit::new(shared.clone()), Habit::new(shared.clone()));
        client.write_all(b"request").expect("write");
        stream.readable().await.expect("readable");
        assert_eq!(look(&mut other, &stream), Some(7));
        client.write_all(b"request").expect("write");
        assert_eq!(look(&mut habit, &stream), None, "another was answered since");
        assert_eq!(look(&mut habit, &stream), Some(7));
        shared.looking.store(1, Ordering::Relaxed);
        assert_eq!(look(&mut habit, &stream), None, "another looks");
    }
}
