//! Accepting connections, and graceful shutdown.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use outrigger_base::rate::Rate;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::auth::Authenticator;
use super::connection;
use super::edge::{ConnectionRefusal, Edge};
use super::figures::EdgeFigures;
use super::gateway::RpcService;
use super::limits::Limits;
use super::peers::Peers;
use super::rest::Rest;
use super::slots::{ConnectionSlot, ConnectionSlots};
use super::subscriptions::Tips;
use super::threads::Workers;

/// How many connections are refused with an HTTP answer at a time. Further ones are closed without an answer.
const MAX_REFUSALS: usize = 64;

/// Pause after a failed `accept`, for example without free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, Error)]
pub enum ServerError {
    #[error("cannot listen for RPC on {address}: {source}")]
    Bind { address: SocketAddr, source: io::Error },
    #[error("no address to listen for RPC on")]
    Nowhere,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainReport {
    /// Connections closed because [`Limits::shutdown_grace`] passed, nearly all with a call in flight.
    pub dropped: usize,
}

pub struct Server<S> {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    edge: Arc<Edge<S>>,
    peers: Peers,
    workers: Workers,
}

impl<S> std::fmt::Debug for Server<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl<S: RpcService> Server<S> {
    /// Listens on these addresses; port 0 takes a free port. `may_lack_ipv6`: an IPv6 address that this machine does
    /// not have is skipped, unless no other is left. Connections wait until [`Server::serve`].
    pub async fn bind(
        wanted: &[SocketAddr],
        may_lack_ipv6: bool,
        service: S,
        auth: Arc<Authenticator>,
        limits: Limits,
    ) -> Result<Self, ServerError> {
        let (listeners, addresses) = listen(wanted, may_lack_ipv6).await?.into_iter().unzip();
        let edge = Arc::new(Edge::new(service, auth, limits));
        Ok(Self { listeners, addresses, edge, peers: Peers::default(), workers: Workers::default() })
    }

    #[must_use]
    pub fn with_peers(mut self, peers: Peers) -> Self {
        self.peers = peers;
        self
    }

    #[must_use]
    pub fn with_rest(self, rest: Arc<dyn Rest>) -> Self {
        self.edge.answer_rest_by(rest);
        self
    }

    /// Tells subscribers each of these blocks.
    #[must_use]
    pub fn with_tips(self, tips: Tips) -> Self {
        self.edge.tell_blocks_by(tips);
        self
    }

    /// Serves connections on these threads, by default on the runtime that accepts them.
    #[must_use]
    pub fn with_workers(mut self, workers: Workers) -> Self {
        self.workers = workers;
        self
    }

    pub fn figures(&self) -> Arc<EdgeFigures> {
        self.edge.figures().clone()
    }

    #[cfg(test)]
    pub(super) fn edge(&self) -> &Arc<Edge<S>> {
        &self.edge
    }

    /// The bound addresses with their actual ports; at least one.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Serves until `shutdown` completes. Then it accepts no more connections, closes idle ones, answers the calls in
    /// flight, and drops those that exceed [`Limits::shutdown_grace`].
    ///
    /// The dispatcher should end long polls when shutdown begins, or they use up the grace time.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> DrainReport {
        let Self { mut listeners, edge, peers, workers, .. } = self;
        let (stop, stopping) = watch::channel(false);
        let mut connections = Connections::new(edge, stopping, workers);
        {
            let mut shutdown = std::pin::pin!(shutdown);
            loop {
                tokio::select! {
                    () = &mut shutdown => break,
                    accepted = accept(&mut listeners) => match accepted {
                        Ok((stream, peer)) if peers.allows(peer.ip()) => connections.take(stream, peer),
                        Ok((stream, peer)) => {
                            tracing::warn!(peer = %peer.ip().to_canonical(), "an RPC client of a network that is not allowed");
                            connections.refuse(stream, ConnectionRefusal::Network);
                        }
                        Err(error) => connections.on_accept_error(&error).await,
                    },
                    // Removes finished tasks from the set.
                    Some(ended) = connections.tasks.join_next() => log_panic(ended),
                }
            }
        }
        drop(listeners);
        // Fails only if no connection is left.
        let _no_receiver = stop.send(true);
        connections.drain().await
    }
}

/// The next connection. Listeners take turns.
async fn accept(listeners: &mut [TcpListener]) -> io::Result<(TcpStream, SocketAddr)> {
    listeners.rotate_left(1);
    poll_fn(|context| {
        let ready = listeners.iter().map(|listener| listener.poll_accept(context)).find(Poll::is_ready);
        ready.unwrap_or(Poll::Pending)
    })
    .await
}

/// Listens on each address. Returns the listeners with their actual addresses.
///
/// # Errors
/// An address cannot be listened on (missing IPv6 addresses are skipped with `may_lack_ipv6`), or none is left.
pub async fn listen(wanted: &[SocketAddr], may_lack_ipv6: bool) -> Result<Vec<(TcpListener, SocketAddr)>, ServerError> {
    let mut listeners = Vec::new();
    for &address in wanted {
        let failed = |source| ServerError::Bind { address, source };
        match TcpListener::bind(address).await {
            Err(error) if may_lack_ipv6 && address.is_ipv6() && is_missing(&error) && !listeners.is_empty() => {
                tracing::info!(%address, %error, "this machine has no IPv6: not listening on this address");
            }
            listener => {
                let listener = listener.map_err(failed)?;
                let address = listener.local_addr().map_err(failed)?;
                listeners.push((listener, address));
            }
        }
    }
    if listeners.is_empty() { Err(ServerError::Nowhere) } else { Ok(listeners) }
}

/// Whether the machine does not have the address or its family.
fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable
        || error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error())
}

struct Connections<S> {
    edge: Arc<Edge<S>>,
    stopping: watch::Receiver<bool>,
    workers: Workers,
    slots: Arc<ConnectionSlots>,
    refusals: Arc<Semaphore>,
    tasks: JoinSet<()>,
    /// Limits the log lines about failed `accept`s.
    accept_errors: Rate,
}

impl<S: RpcService> Connections<S> {
    fn new(edge: Arc<Edge<S>>, stopping: watch::Receiver<bool>, workers: Workers) -> Self {
        let slots = ConnectionSlots::new(edge.limits().max_connections, edge.figures().clone());
        let (refusals, tasks) = (Arc::new(Semaphore::new(MAX_REFUSALS)), JoinSet::new());
        Self { edge, stopping, workers, slots, refusals, tasks, accept_errors: Rate::once_a_minute() }
    }

    fn take(&mut self, stream: TcpStream, peer: SocketAddr) {
        // Without it, Nagle's algorithm holds a reply of several writes back until the client's delayed ACK.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        if let Some(slot) = self.slots.enter(peer.ip()) {
            if let Err(error) = self.serve(stream, slot) {
                tracing::warn!(%error, "an RPC connection could not be given to a thread");
            }
        } else {
            tracing::warn!(limit = self.edge.limits().max_connections, "too many RPC connections");
            self.refuse(stream, ConnectionRefusal::TooMany);
        }
    }

    /// Spawns the task that serves `stream`, on a network thread unless all are blocked.
    fn serve(&mut self, stream: TcpStream, slot: ConnectionSlot) -> io::Result<()> {
        let (edge, stopping) = (Arc::clone(&self.edge), self.stopping.clone());
        let Some(thread) = self.workers.take() else {
            self.tasks.spawn(connection::serve(stream, slot, edge, stopping));
            return Ok(());
        };
        // Registers the socket with the runtime of the thread that serves it.
        let stream = stream.into_std()?;
        let handle = thread.handle.clone();
        let work = async move {
            match TcpStream::from_std(stream) {
                Ok(stream) => connection::serve(stream, slot, edge, stopping).await,
                Err(error) => tracing::warn!(%error, "an RPC connection cannot be polled"),
            }
            drop(thread);
        };
        self.tasks.spawn_on(work, &handle);
        Ok(())
    }

    /// Answers a client with the reason of its refusal, unless [`MAX_REFUSALS`] answers are in progress.
    fn refuse(&mut self, stream: TcpStream, reason: ConnectionRefusal) {
        if let Ok(refusal) = Arc::clone(&self.refusals).try_acquire_owned() {
            let edge = Arc::clone(&self.edge);
            self.tasks.spawn(async move {
                connection::refuse(stream, edge.limits(), reason).await;
                drop(refusal);
            });
        }
    }

    async fn on_accept_error(&self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
        // The client closed the connection before it was accepted.
        if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
            return;
        }
        // Usually EMFILE: closing a connection without credentials frees a file descriptor.
        let made_room = self.slots.make_room();
        let more = |times| tracing::error!(times, "RPC connections could not be accepted since the last such line");
        if self.accept_errors.allows(more) {
            tracing::error!(%error, made_room, "cannot accept an RPC connection");
        }
        sleep(ACCEPT_PAUSE).await;
    }

    async fn drain(mut self) -> DrainReport {
        let grace = self.edge.limits().shutdown_grace;
        let all_ended = async {
            while let Some(ended) = self.tasks.join_next().await {
                log_panic(ended);
            }
        };
        if timeout(grace, all_ended).await.is_ok() {
            return DrainReport { dropped: 0 };
        }
        let dropped = self.tasks.len();
        tracing::warn!(dropped, "RPC calls were still running at shutdown");
        self.tasks.shutdown().await;
        DrainReport { dropped }
    }
}

fn log_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!("the task of an RPC connection panicked");
    }
}
