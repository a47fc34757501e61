//! One connection: HTTP/1 over a socket that is watched for signs of life.
//!
//! hyper's only timer for reading heads runs while a kept connection idles as well. Clients hold
//! connections open between calls, and open some they never use, so the two are told apart here.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
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

/// Serves `stream` until either side closes it, it times out, or `stopping` turns true and the call
/// in flight has ended.
pub(super) async fn serve<S: RpcService>(stream: TcpStream, edge: Arc<Edge<S>>, mut stopping: watch::Receiver<bool>) {
    let activity = Arc::new(Activity::default());
    let habit = Habit::new(edge.eager().clone());
    let io = TokioIo::new(Watched { stream, activity: Arc::clone(&activity), habit, answered: false });
    let service = service_fn(|request| {
        let in_call = InCall::begin(&activity);
        let edge = Arc::clone(&edge);
        async move {
            let response = edge.handle(request).await;
            drop(in_call);
            Ok::<_, Infallible>(response)
        }
    });
    let mut connection = pin!(builder(edge.limits()).serve_connection(io, service));
    tokio::select! {
        ended = connection.as_mut() => return log_end(ended),
        () = expiry(&activity, edge.limits()) => return,
        // An error means that the server itself is gone: the same.
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        ended = connection => log_end(ended),
        () = expiry(&activity, edge.limits()) => {}
    }
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
        .half_close(false)
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
        let now = Instant::now();
        match activity.deadline(limits) {
            Some(deadline) if deadline <= now => return,
            Some(deadline) => sleep(look.min(deadline - now)).await,
            None => sleep(look).await,
        }
    }
}

/// When a connection last showed signs of life.
#[derive(Default)]
struct Activity(Mutex<Life>);

struct Life {
    /// When bytes were last moved, or a call last ended.
    last_sign: Instant,
    /// When the first byte of the head that is being read arrived.
    head_since: Option<Instant>,
    /// Whether a request is being answered.
    in_call: bool,
}

impl Default for Life {
    fn default() -> Self {
        Self { last_sign: Instant::now(), head_since: None, in_call: false }
    }
}

impl Activity {
    fn life(&self) -> MutexGuard<'_, Life> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn received(&self) {
        let now = Instant::now();
        let mut life = self.life();
        life.last_sign = now;
        if !life.in_call {
            life.head_since.get_or_insert(now);
        }
    }

    fn sent(&self) {
        self.life().last_sign = Instant::now();
    }

    /// When the connection times out, as things stand. Never while a request is being answered.
    fn deadline(&self, limits: &Limits) -> Option<Instant> {
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
        life.last_sign = Instant::now();
    }
}

/// A socket that tells its [`Activity`] of the bytes it moves, and that looks for what comes after an answer.
struct Watched {
    stream: TcpStream,
    activity: Arc<Activity>,
    habit: Habit,
    /// Whether what was moved last was sent.
    answered: bool,
}

impl Watched {
    fn told(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(_)) = written {
            self.activity.sent();
            self.answered = true;
        }
        written
    }
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let mut read = Pin::new(&mut self.stream).poll_read(cx, buf);
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

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.told(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.told(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
