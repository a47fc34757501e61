//! Connections that wait for the next request, each on the thread that made it.
//!
//! A connection's input and output run on the runtime of the thread that made it, so another thread would have to wake that one
//! for each request.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use outrigger_base::busy_poll::{BusyPoll, BusyPollState};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::endpoint::Endpoint;

/// How long a connection waits: bitcoind closes those that were idle for 30 seconds (`-rpcservertimeout`).
const IDLE_LIMIT: Duration = Duration::from_secs(20);

/// How long making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// After how long of silence the node's machine is asked whether it is there, how often, and how many times.
const PROBE_AFTER: Duration = Duration::from_secs(15);
const PROBE_EVERY: Duration = Duration::from_secs(5);
const PROBES: u32 = 3;

/// A connection: what sends the next request on it.
pub(crate) type Sender = SendRequest<Full<Bytes>>;

thread_local! {
    /// The idle connections of this thread by node, each with the moment since when it has been idle; the last used last.
    static IDLE: RefCell<HashMap<u64, Vec<(Sender, Instant)>>> = RefCell::default();
}

/// An idle connection of this thread to a node; the last used first, so that those in excess time out.
pub(crate) fn take(node: u64) -> Option<Sender> {
    IDLE.with_borrow_mut(|idle| {
        let idle = idle.get_mut(&node)?;
        idle.retain(|(sender, since)| since.elapsed() < IDLE_LIMIT && !sender.is_closed());
        idle.pop().map(|(sender, _)| sender)
    })
}

/// Keeps a connection for this thread's next request.
pub(crate) fn give_back(node: u64, sender: Sender) {
    if !sender.is_closed() {
        IDLE.with_borrow_mut(|idle| idle.entry(node).or_default().push((sender, Instant::now())));
    }
}

/// Closes this thread's idle connections to a node.
pub(crate) fn clear(node: u64) {
    IDLE.with_borrow_mut(|idle| idle.remove(&node));
}

/// Has the system notice that the node's machine is gone, which sends nothing any more.
fn notice_death(stream: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, PROBE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, PROBE_EVERY)?;
    sockopt::set_tcp_keepcnt(stream, PROBES)?;
    Ok(())
}

/// A socket on which the reply to a request is looked for before the thread sleeps.
struct Polled {
    stream: TcpStream,
    polling: BusyPollState,
    /// Whether something was sent since the last look.
    sent: bool,
}

impl AsyncRead for Polled {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buf)
    }
}

impl AsyncWrite for Polled {
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
        // hyper has asked for the reply before it sends the request, and does not ask again until something comes.
        let Self { stream, polling, sent } = &mut *self;
        if std::mem::take(sent) {
            polling.wait(stream);
        }
        Pin::new(stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A new connection.
pub(crate) async fn connect(endpoint: &Endpoint, busy_poll: &Arc<BusyPoll>) -> io::Result<Sender> {
    let connecting = async {
        let stream = TcpStream::connect(endpoint.authority()).await?;
        stream.set_nodelay(true)?;
        notice_death(&stream)?;
        Ok::<_, io::Error>(stream)
    };
    let stream = tokio::time::timeout(CONNECT_TIMEOUT, connecting)
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no connection in time"))??;
    let polled = Polled { stream, polling: BusyPollState::new(busy_poll.clone()), sent: false };
    let (sender, connection) = handshake(TokioIo::new(polled)).await.map_err(io::Error::other)?;
    // Its errors reach whoever waits for the reply.
    tokio::spawn(async move { connection.await.unwrap_or_default() });
    Ok(sender)
}
