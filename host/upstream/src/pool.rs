//! The connections to a node.
//!
//! A connection's I/O runs on the runtime of the thread that opened it. A request from another thread must first wake
//! that thread. So a request takes an idle connection of its own thread, else opens one if the limit allows, else takes
//! one of another thread, else waits.

use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use outrigger_base::busy_poll::{BusyPoll, BusyPollState};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::endpoint::Endpoint;

/// How long an idle connection is kept. bitcoind closes it after 30 seconds (`-rpcservertimeout`).
const IDLE_LIMIT: Duration = Duration::from_secs(20);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// TCP keepalive: idle time, interval and number of probes.
const PROBE_AFTER: Duration = Duration::from_secs(15);
const PROBE_EVERY: Duration = Duration::from_secs(5);
const PROBES: u32 = 3;

pub(crate) type Sender = SendRequest<Full<Bytes>>;

pub(crate) struct Connection {
    pub sender: Sender,
    thread: ThreadId,
    /// Whether it is reserved for the host's own requests.
    is_own: bool,
}

/// The permit for one connection, held until the connection is closed.
pub(crate) struct Place {
    permit: OwnedSemaphorePermit,
    is_own: bool,
}

pub(crate) enum Way {
    Waiting(Connection),
    New(Place),
}

pub(crate) struct Pool {
    shared: Arc<Semaphore>,
    /// Additional permits for the host's own requests.
    own: Arc<Semaphore>,
    /// Idle connections, each with the time of its last use, the most recent last.
    idle: Mutex<Vec<(Connection, Instant)>>,
    given_back: Notify,
}

impl Pool {
    /// At most `most` connections.
    pub fn new(most: usize) -> Self {
        let (shared, own) = (Arc::new(Semaphore::new(most)), Arc::new(Semaphore::new(0)));
        Self { shared, own, idle: Mutex::default(), given_back: Notify::new() }
    }

    pub fn add_own(&self, count: usize) {
        self.own.add_permits(count);
    }

    /// Waits for a connection or a permit. `is_own`: for the host's own requests.
    pub async fn way(&self, is_own: bool) -> Way {
        loop {
            let mut given_back = pin!(self.given_back.notified());
            given_back.as_mut().enable();
            let thread = thread::current().id();
            if let Some(way) = self.idle(is_own, |idle| idle.thread == thread).or_else(|| self.new_place(is_own)) {
                return way;
            }
            if let Some(way) = self.idle(is_own, |_| true) {
                return way;
            }
            let permit = tokio::select! {
                permit = self.own.clone().acquire_owned(), if is_own => permit.map(|permit| Place { permit, is_own: true }),
                permit = self.shared.clone().acquire_owned() => permit.map(|permit| Place { permit, is_own: false }),
                () = given_back => continue,
            };
            // The semaphore is never closed.
            if let Ok(place) = permit {
                return Way::New(place);
            }
        }
    }

    pub async fn place(&self, is_own: bool) -> Place {
        loop {
            match self.way(is_own).await {
                Way::New(place) => return place,
                // Closing it releases its permit.
                Way::Waiting(connection) => drop(connection),
            }
        }
    }

    fn new_place(&self, is_own: bool) -> Option<Way> {
        let own = || self.own.clone().try_acquire_owned().ok().map(|permit| Place { permit, is_own: true });
        let shared = || self.shared.clone().try_acquire_owned().ok().map(|permit| Place { permit, is_own: false });
        is_own.then(own).flatten().or_else(shared).map(Way::New)
    }

    /// The most recently used idle connection, so that surplus ones time out.
    fn idle(&self, for_own: bool, is_meant: impl Fn(&Connection) -> bool) -> Option<Way> {
        let mut idle = self.idle.lock();
        idle.retain(|(connection, since)| since.elapsed() < IDLE_LIMIT && !connection.sender.is_closed());
        let found = idle.iter().rposition(|(one, _)| (for_own || !one.is_own) && is_meant(one))?;
        Some(Way::Waiting(idle.remove(found).0))
    }

    pub fn give_back(&self, connection: Connection) {
        if !connection.sender.is_closed() {
            self.idle.lock().push((connection, Instant::now()));
            self.given_back.notify_waiters();
        }
    }

    pub fn clear(&self) {
        self.idle.lock().clear();
    }
}

/// Enables TCP keepalive, so that the host detects a dead peer.
fn enable_keepalive(stream: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, PROBE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, PROBE_EVERY)?;
    sockopt::set_tcp_keepcnt(stream, PROBES)?;
    Ok(())
}

/// A socket that busy-polls for the reply before the thread sleeps.
struct PolledStream {
    stream: TcpStream,
    polling: BusyPollState,
    /// Whether bytes were sent since the last poll.
    sent: bool,
    _permit: OwnedSemaphorePermit,
}

impl AsyncRead for PolledStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buf)
    }
}

impl AsyncWrite for PolledStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.sent = true;
        Pin::new(&mut self.stream).poll_write(context, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.sent = true;
        Pin::new(&mut self.stream).poll_write_vectored(context, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper polls for the reply before it sends the request, and again only when something arrives.
        let Self { stream, polling, sent, .. } = &mut *self;
        if std::mem::take(sent) {
            polling.wait(stream);
        }
        Pin::new(stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

pub(crate) async fn connect(endpoint: &Endpoint, busy_poll: &Arc<BusyPoll>, place: Place) -> io::Result<Connection> {
    let Place { permit, is_own } = place;
    let connecting = async {
        let stream = TcpStream::connect(endpoint.authority()).await?;
        stream.set_nodelay(true)?;
        enable_keepalive(&stream)?;
        Ok::<_, io::Error>(stream)
    };
    let stream = tokio::time::timeout(CONNECT_TIMEOUT, connecting)
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no connection in time"))??;
    let polled = PolledStream { stream, polling: BusyPollState::new(busy_poll.clone()), sent: false, _permit: permit };
    let (sender, connection) = handshake(TokioIo::new(polled)).await.map_err(io::Error::other)?;
    // The waiting request gets the connection's errors.
    tokio::spawn(async move { connection.await.unwrap_or_default() });
    Ok(Connection { sender, thread: thread::current().id(), is_own })
}
