//! One connection: HTTP/1 over a socket whose activity is tracked.
//!
//! hyper's timer for reading heads also runs while a kept-alive connection idles. Clients keep idle connections open, so
//! the header and idle timeouts are separate here.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustix::net::{RecvFlags, recv, sockopt};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use outrigger_base::busy_poll::BusyPollState;

use super::activity::now;
use super::client::{Client, Identity};
use super::edge::Edge;
use super::gateway::RpcService;
use super::limits::Limits;
use super::peers::Peer;
use super::proxy_protocol;
use super::refusal::RequestError;
use super::slots::ConnectionSlot;
use super::socket::Socket;
use super::tls::{HANDSHAKE_BYTE, HANDSHAKE_TIMEOUT, Tls, common_name};
use super::unread::UnreadReply;

/// How many times a connection is checked within the shorter of its timeouts.
const LOOKS_PER_TIMEOUT: u32 = 4;

/// How long a refused connection may take to read the refusal.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);

/// The size of the first read, in bytes. It bounds the memory that an idle connection touches.
const FIRST_READ: usize = 2048;

/// Replies up to this many bytes are copied into one buffer: cheaper than a vectored write.
const COPIED_BYTES: usize = 2048;

/// TCP keepalive: idle time, interval and number of probes. A dead peer is noticed within 20 seconds.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(3);
const KEEPALIVE_PROBES: u32 = 3;

/// TCP_USER_TIMEOUT, since keepalive does not probe while data waits to be sent. bitcoind waits 30 seconds.
#[cfg(target_os = "linux")]
const SEND_TIMEOUT: Duration = Duration::from_secs(18);

/// Serves `stream` in this slot, over TLS if there is a certificate. With `is_proxied`, a PROXY protocol header comes
/// first. Ends when either side closes it, it times out, it is closed for a new connection, or
/// `stopping` turns true and the call in flight has ended.
pub(super) async fn serve<S: RpcService>(
    mut stream: Socket,
    slot: ConnectionSlot,
    tls: Option<Arc<Tls>>,
    is_proxied: bool,
    edge: Arc<Edge<S>>,
    mut stopping: watch::Receiver<bool>,
) {
    if let Some(Err(error)) = stream.tcp().map(watch_peer) {
        tracing::debug!(%error, "cannot set TCP keepalive");
    }
    let (limits, began) = (&edge.limits, now());
    let first = tokio::select! {
        first = first_byte(&mut stream, is_proxied, &slot) => first,
        () = sleep(limits.idle_timeout.min(limits.unauthenticated_timeout)) => return,
        () = slot.0.closed() => return,
        _ = stopping.wait_for(|stopping| *stopping) => return,
    };
    // A client that is gone has no first byte.
    let Some(first) = first else { return };
    if !edge.admission.access().allows(slot.0.peer()) {
        tracing::warn!(peer = %slot.0.peer(), "an RPC client of a network that is not allowed");
        // A TLS client gets no answer, as without a proxy.
        if tls.is_none() {
            Box::pin(refuse(stream, limits, RequestError::Network)).await;
        }
        return;
    }
    if tls.is_some() && first != HANDSHAKE_BYTE {
        return Box::pin(refuse(stream, limits, RequestError::Plain)).await;
    }
    // Buffers are allocated on the first byte.
    let client = Client::new(slot.0.clone(), stream, began);
    if let Peer::Unix(user) = client.peer() {
        let _ = client.identity.set(Identity::Process(user));
    }
    let socket = WatchedSocket::new(client.clone(), &edge);
    match tls {
        None => Box::pin(converse(client, socket, edge, stopping)).await,
        Some(tls) => {
            let left = limits.unauthenticated_timeout.saturating_sub(now().saturating_sub(began));
            let greeted = Box::pin(shake_hands(&client, socket, &tls, left, stopping.clone())).await;
            if let Some(socket) = greeted {
                Box::pin(converse(client, socket, edge, stopping)).await;
            }
        }
    }
}

/// Waits for the first byte of the client, after the header of its proxy if there is one.
async fn first_byte(stream: &mut Socket, is_proxied: bool, slot: &ConnectionSlot) -> Option<u8> {
    if is_proxied {
        // Boxed, so that not every connection reserves room for it.
        match Box::pin(proxy_protocol::read(stream)).await {
            // A header without a client is usually the proxy's health check.
            Ok(client) => slot.0.is_of(client.map(Peer::Ip)),
            Err(error) => {
                tracing::warn!(peer = %slot.0.peer(), %error, "no header of the PROXY protocol");
                return None;
            }
        }
    }
    stream.peek().await.ok().flatten()
}

/// The TLS handshake, within `left`. The connection holds its slot meanwhile, and can be closed for a new one.
async fn shake_hands(
    client: &Client,
    socket: WatchedSocket,
    tls: &Tls,
    left: Duration,
    mut stopping: watch::Receiver<bool>,
) -> Option<TlsStream<WatchedSocket>> {
    let current = tls.current();
    let handshake = TlsAcceptor::from(current.config.clone()).accept(socket);
    let ended = tokio::select! {
        ended = timeout(HANDSHAKE_TIMEOUT.min(left), handshake) => ended,
        () = client.link.closed() => return None,
        _ = stopping.wait_for(|stopping| *stopping) => return None,
    };
    match ended.map_err(io::Error::from).and_then(|greeted| greeted) {
        Ok(stream) => {
            if current.clients.are_users {
                let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
                let (name, clients) = (certificate.and_then(common_name), current.clients.clone());
                let _ = client.identity.set(Identity::Certificate { name, clients });
            }
            Some(stream)
        }
        Err(error) => {
            tracing::debug!(peer = %client.peer(), %error, "a TLS handshake failed");
            None
        }
    }
}

/// Serves HTTP, and after an upgrade the WebSocket.
async fn converse<S: RpcService>(
    client: Arc<Client>,
    socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    edge: Arc<Edge<S>>,
    stopping: watch::Receiver<bool>,
) {
    serve_http(&client, socket, &edge, stopping.clone()).await;
    let conversation = client.conversation.lock().take();
    if let Some(conversation) = conversation {
        tokio::select! {
            () = conversation.run(stopping) => {}
            () = reset(&client.stream) => {}
            () = client.link.closed() => {}
            () = edge.admission.lost(&client, true) => {}
        }
    }
}

async fn serve_http<S: RpcService>(
    client: &Arc<Client>,
    socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    edge: &Arc<Edge<S>>,
    mut stopping: watch::Receiver<bool>,
) {
    let io = TokioIo::new(socket);
    let service = service_fn(|request| {
        client.activity.begin_call();
        let (edge, client) = (Arc::clone(edge), Arc::clone(client));
        async move {
            let response = edge.handle(request, &client).await;
            client.activity.end_call(response.body().held_bytes());
            Ok::<_, Infallible>(response)
        }
    });
    let mut connection = pin!(builder(&edge.limits).serve_connection(io, service).with_upgrades());
    let lost = async {
        tokio::select! {
            () = expiry(client, &edge.limits) => {}
            () = reset(&client.stream) => {}
            () = edge.admission.lost(client, false) => {}
            () = client.link.closed() => {
                // Bytes in the send buffer are discarded with the connection.
                if client.activity.unsent() > 0 {
                    // If that fails, the system sends them or times out.
                    let _ = sockopt::set_socket_linger(&client.stream, Some(Duration::ZERO));
                }
            }
        }
    };
    // `FuturesUnordered` polls its futures only when they are woken, not with every request.
    let mut lost = FuturesUnordered::from_iter([lost]);
    let mut stop = FuturesUnordered::from_iter([stopping.wait_for(|stopping| *stopping)]);
    tokio::select! {
        biased;
        ended = connection.as_mut() => return log_end(ended),
        _ = lost.next() => return,
        // An error means that the server has been dropped, which also stops the connection.
        _ = stop.next() => {}
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        ended = connection => log_end(ended),
        _ = lost.next() => {}
    }
}

/// Returns when the client is known to be gone: its machine reset the connection or stopped answering. A half-closed
/// connection does not count: the client may still wait for its answer.
async fn reset(stream: &Socket) {
    if stream.ready(Interest::ERROR).await.is_err() {
        // The runtime is shutting down.
        std::future::pending().await
    }
}

/// Enables keepalive and the send timeout.
pub(super) fn watch_peer(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES)?;
    // Other systems have their own limits.
    #[cfg(target_os = "linux")]
    sockopt::set_tcp_user_timeout(stream, u32::try_from(SEND_TIMEOUT.as_millis()).unwrap_or(0))?;
    Ok(sockopt::set_socket_keepalive(stream, true)?)
}

/// Answers the first request on `stream` with the reason of the refusal, and closes it.
pub(super) async fn refuse(stream: Socket, limits: &Limits, reason: RequestError) {
    let service = service_fn(|_| async { Ok::<_, Infallible>(reason.into_response()) });
    let connection = builder(limits).serve_connection(TokioIo::new(stream), service);
    if let Ok(ended) = timeout(REFUSAL_TIMEOUT, connection).await {
        log_end(ended);
    }
}

/// HTTP/1 as bitcoind's clients expect it. Header names are in title case, as bitcoind's: some clients match their
/// case.
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
        // The error may quote the request, so only its kind is logged.
        tracing::debug!(
            parse = error.is_parse(),
            incomplete = error.is_incomplete_message(),
            timeout = error.is_timeout(),
            "RPC connection ended"
        );
    }
}

/// Returns when the idle, header or authentication timeout has passed.
async fn expiry(client: &Client, limits: &Limits) {
    let interval = limits.idle_timeout.min(limits.header_read_timeout) / LOOKS_PER_TIMEOUT;
    loop {
        let (now, is_authenticated) = (now(), client.link.is_authenticated());
        match client.activity.deadline(limits, is_authenticated) {
            Some(deadline) if deadline <= now => return,
            Some(deadline) => sleep(interval.min(deadline - now)).await,
            None => sleep(interval).await,
        }
    }
}

/// A socket that reports its traffic to [`Activity`](super::activity::Activity) and spins briefly after an answer.
struct WatchedSocket {
    client: Arc<Client>,
    unread: UnreadReply,
    polling: BusyPollState,
    /// Whether the last operation was a write.
    answered: bool,
    /// Whether the last read emptied the socket.
    drained: bool,
}

impl WatchedSocket {
    fn new<S: RpcService>(client: Arc<Client>, edge: &Edge<S>) -> Self {
        let unread = UnreadReply::new(edge.unread.clone(), client.link.clone());
        let polling = BusyPollState::new(edge.busy_poll.clone());
        Self { client, unread, polling, answered: false, drained: true }
    }

    /// Reads once. A short read means that the socket is empty, which saves the next `read` call.
    fn read(&mut self, buf: &mut ReadBuf<'_>) -> io::Result<()> {
        let room = if self.drained { buf.remaining().min(FIRST_READ) } else { buf.remaining() };
        let (mut read, drained) = (None, &mut self.drained);
        let outcome = self.client.stream.try_io(Interest::READABLE, || {
            let (_, count) = recv(&self.client.stream, buf.initialize_unfilled_to(room), RecvFlags::empty())?;
            read = Some(count);
            *drained = count < room;
            // 0 bytes are the end of the stream, which stays readable.
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

    /// Writes without buffering.
    fn write(&mut self, cx: &mut Context<'_>, write: impl Fn(&Socket) -> io::Result<usize>) -> Poll<io::Result<usize>> {
        loop {
            if self.client.stream.poll_write_ready(cx)?.is_pending() {
                self.unread.blocked(self.client.activity.unsent());
                return Poll::Pending;
            }
            match write(&self.client.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => {
                    self.client.activity.sent(*written.as_ref().unwrap_or(&0));
                    self.unread.moved();
                    self.answered = true;
                    return Poll::Ready(written);
                }
            }
        }
    }
}

impl AsyncRead for WatchedSocket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.client.gate.poll_open(cx).is_pending() {
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let mut read = loop {
            if self.client.stream.poll_read_ready(cx)?.is_pending() {
                break Poll::Pending;
            }
            match self.read(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => break Poll::Ready(read),
            }
        };
        // The waker is registered by now, so bytes that arrive during the spin are not missed.
        if read.is_pending() && std::mem::take(&mut self.answered) {
            let Self { client, polling, .. } = &mut *self;
            read = polling.look(&client.stream, buf).map_or(Poll::Pending, Poll::Ready);
        }
        if buf.filled().len() > before {
            self.client.activity.received();
        }
        read
    }
}

impl AsyncWrite for WatchedSocket {
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

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // There is no buffer, so everything was sent.
        self.unread.sent();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(rustix::net::shutdown(&self.client.stream, rustix::net::Shutdown::Write)?))
    }
}
