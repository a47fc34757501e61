//! One connection: HTTP/1 over a socket that is watched for signs of life.
//!
//! hyper's only timer for reading heads runs while a kept connection idles as well. Clients hold
//! connections open between calls, and open some they never use, so the two are told apart here.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustix::net::{RecvFlags, recv, sockopt};
use rustix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::eager::Habit;
use super::edge::{Edge, Refused};
use super::gateway::RpcService;
use super::limits::Limits;

/// How often within the shorter of the timeouts a connection is looked at.
const LOOKS_PER_TIMEOUT: u32 = 4;

/// How long a connection beyond the limit may take to hear so.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);

/// The most bytes that are read at first; more are read at a time while more come. It bounds the memory that reading touches.
const FIRST_READ: usize = 2048;

/// Replies up to so many bytes are put together before they are sent: that costs less than sending pieces.
const COPIED_BYTES: usize = 2048;

/// How long a connection is silent before its client's machine is asked for it, how long for an answer is waited, and how
/// often it is asked.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 6;

/// Serves `stream`, which came from `peer`, until either side closes it, it times out, or `stopping` turns true and the call
/// in flight has ended.
pub(super) async fn serve<S: RpcService>(
    stream: TcpStream,
    peer: SocketAddr,
    edge: Arc<Edge<S>>,
    mut stopping: watch::Receiver<bool>,
) {
    if let Err(error) = keep_alive(&stream) {
        tracing::debug!(%error, "cannot set the keepalive of a connection");
    }
    let mut first = [0];
    tokio::select! {
        // An error means that there is no client any more, which is found out below.
        _ = stream.peek(&mut first) => {}
        () = sleep(edge.limits().idle_timeout) => return,
        _ = stopping.wait_for(|stopping| *stopping) => return,
    }
    // Only who says something gets buffers.
    Box::pin(converse(stream, peer, edge, stopping)).await;
}

async fn converse<S: RpcService>(
    stream: TcpStream,
    peer: SocketAddr,
    edge: Arc<Edge<S>>,
    mut stopping: watch::Receiver<bool>,
) {
    let activity = Arc::new(Activity::default());
    let stream = Arc::new(stream);
    let habit = Habit::new(edge.eager().clone());
    let watched =
        Watched { stream: Arc::clone(&stream), activity: Arc::clone(&activity), habit, answered: false, drained: true };
    let io = TokioIo::new(watched);
    let service = service_fn(|request| {
        let in_call = InCall::begin(&activity);
        let edge = Arc::clone(&edge);
        async move {
            let response = edge.handle(request, peer).await;
            drop(in_call);
            Ok::<_, Infallible>(response)
        }
    });
    let mut connection = pin!(builder(edge.limits()).serve_connection(io, service));
    let lost = async {
        tokio::select! {
            () = expiry(&activity, edge.limits()) => {}
            () = reset(&stream) => {}
        }
    };
    // In a set, they are asked only when they have something to say, and not with every request.
    let mut lost = FuturesUnordered::from_iter([lost]);
    let mut stop = FuturesUnordered::from_iter([stopping.wait_for(|stopping| *stopping)]);
    tokio::select! {
        biased;
        ended = connection.as_mut() => return log_end(ended),
        _ = lost.next() => return,
        // An error means that the server itself is gone: the same.
        _ = stop.next() => {}
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        ended = connection => log_end(ended),
        _ = lost.next() => {}
    }
}

/// Returns when the client is known to be gone: its machine says so, or says nothing for long. That it sends no more is no
/// sign of it: it may have closed that side alone and wait for its answer.
async fn reset(stream: &TcpStream) {
    if stream.ready(Interest::ERROR).await.is_err() {
        // The runtime ends.
        std::future::pending().await
    }
}

/// Has the system ask the client's machine now and then whether the connection is still there.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES)?;
    Ok(sockopt::set_socket_keepalive(stream, true)?)
}

/// Answers the first request on `stream` with the reason why it is not heard, and closes it.
pub(super) async fn refuse(stream: TcpStream, limits: &Limits, reason: Refused) {
    let service = service_fn(|_| async { Ok::<_, Infallible>(reason.into_response()) });
    let connection = builder(limits).serve_connection(TokioIo::new(stream), service);
    if let Ok(ended) = timeout(REFUSAL_TIMEOUT, connection).await {
        log_end(ended);
    }
}

/// HTTP/1 as the clients of bitcoind expect it. Header names are written in title case, as bitcoind
/// does: some clients match them by hand.
fn builder(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .half_close(true)
        .keep_alive(true)
        .title_case_headers(true)
        .max_header_size(limits.max_header_bytes)
        .header_read_timeout(None);
    builder
}

fn log_end(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        // The error may quote what the client sent, so only its kind is told.
        tracing::debug!(
            parse = error.is_parse(),
            incomplete = error.is_incomplete_message(),
            timeout = error.is_timeout(),
            "RPC connection ended"
        );
    }
}

/// Returns when the connection has outlived its welcome.
async fn expiry(activity: &Activity, limits: &Limits) {
    let look = limits.idle_timeout.min(limits.header_read_timeout) / LOOKS_PER_TIMEOUT;
    loop {
        let now = now();
        match activity.deadline(limits) {
            Some(deadline) if deadline <= now => return,
            Some(deadline) => sleep(look.min(deadline - now)).await,
            None => sleep(look).await,
        }
    }
}

/// The time since the machine started, as of its last tick. That is some milliseconds old at most, and cheap to ask for.
fn now() -> Duration {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    Duration::new(now.tv_sec.try_into().unwrap_or(0), now.tv_nsec.try_into().unwrap_or(0))
}

/// When a connection last showed signs of life.
#[derive(Default)]
struct Activity(Mutex<Life>);

struct Life {
    /// When bytes were last moved, or a call last ended.
    last_sign: Duration,
    /// When the first byte of the head that is being read arrived.
    head_since: Option<Duration>,
    /// Whether a request is being answered.
    in_call: bool,
}

impl Default for Life {
    fn default() -> Self {
        Self { last_sign: now(), head_since: None, in_call: false }
    }
}

impl Activity {
    fn life(&self) -> MutexGuard<'_, Life> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn received(&self) {
        let now = now();
        let mut life = self.life();
        life.last_sign = now;
        if !life.in_call {
            life.head_since.get_or_insert(now);
        }
    }

    fn sent(&self) {
        self.life().last_sign = now();
    }

    /// When the connection times out, as things stand. Never while a request is being answered.
    fn deadline(&self, limits: &Limits) -> Option<Duration> {
        let life = self.life();
        if life.in_call {
            return None;
        }
        let idle_until = life.last_sign.checked_add(limits.idle_timeout)?;
        match life.head_since {
            Some(since) => Some(since.checked_add(limits.header_read_timeout)?),
            None => Some(idle_until),
        }
    }
}

/// Marks a request as being answered, for as long as it lives.
struct InCall(Arc<Activity>);

impl InCall {
    fn begin(activity: &Arc<Activity>) -> Self {
        let mut life = activity.life();
        life.in_call = true;
        life.head_since = None;
        drop(life);
        Self(Arc::clone(activity))
    }
}

impl Drop for InCall {
    fn drop(&mut self) {
        let mut life = self.0.life();
        life.in_call = false;
        life.last_sign = now();
    }
}

/// A socket that tells its [`Activity`] of the bytes it moves, and that looks for what comes after an answer.
struct Watched {
    stream: Arc<TcpStream>,
    activity: Arc<Activity>,
    habit: Habit,
    /// Whether what was moved last was sent.
    answered: bool,
    /// Whether the last read left nothing behind.
    drained: bool,
}

impl Watched {
    /// Reads once. A socket that gave less than was asked for is empty, and counts as that: the next look at it is saved.
    fn read(&mut self, buf: &mut ReadBuf<'_>) -> io::Result<()> {
        let room = if self.drained { buf.remaining().min(FIRST_READ) } else { buf.remaining() };
        let (mut read, drained) = (None, &mut self.drained);
        let outcome = self.stream.try_io(Interest::READABLE, || {
            let (_, count) = recv(&self.stream, buf.initialize_unfilled_to(room), RecvFlags::empty())?;
            read = Some(count);
            *drained = count < room;
            // None are the end, which stays.
            if *drained && count > 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        match read {
            Some(count) => {
                buf.advance(count);
                Ok(())
            }
            None => outcome,
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let mut read = loop {
            if self.stream.poll_read_ready(cx)?.is_pending() {
                break Poll::Pending;
            }
            match self.read(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => break Poll::Ready(read),
            }
        };
        // The waker is set by now: what comes while nobody looks wakes the connection.
        if read.is_pending() && std::mem::take(&mut self.answered) {
            let Self { stream, habit, .. } = &mut *self;
            read = habit.look(stream, buf).map_or(Poll::Pending, Poll::Ready);
        }
        if buf.filled().len() > before {
            self.activity.received();
        }
        read
    }
}

impl Watched {
    /// Writes as soon as the socket takes something.
    fn write(
        &mut self,
        cx: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_write_ready(cx))?;
            match write(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => {
                    self.activity.sent();
                    self.answered = true;
                    return Poll::Ready(written);
                }
            }
        }
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.write(cx, |stream| stream.try_write(buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length: usize = bufs.iter().map(|buf| buf.len()).sum();
        if length <= COPIED_BYTES {
            let mut whole = [0; COPIED_BYTES];
            let mut end = 0;
            for buf in bufs {
                whole[end..end + buf.len()].copy_from_slice(buf);
                end += buf.len();
            }
            return self.write(cx, |stream| stream.try_write(&whole[..end]));
        }
        self.write(cx, |stream| stream.try_write_vectored(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Nothing is kept back.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(rustix::net::shutdown(&self.stream, rustix::net::Shutdown::Write)?))
    }
}
