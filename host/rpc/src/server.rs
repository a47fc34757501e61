//! Accepting connections, and graceful shutdown.

use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use outrigger_base::rate::Rate;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::auth::{Authenticator, RpcUser};
use super::connection;
use super::edge::{Edge, ServerOptions};
use super::figures::EdgeFigures;
use super::gateway::RpcService;
use super::limits::Limits;
use super::listen::{Arrival, ListenAddress, Listener};
use super::peers::{Access, Peer};
use super::refusal::RequestError;
use super::slots::{ConnectionSlot, ConnectionSlots};
use super::socket::Socket;
use super::tls::Tls;

/// How many connections are refused with an HTTP answer at a time. Further ones are closed without an answer.
const MAX_REFUSALS: usize = 64;

/// Pause after a failed `accept`, for example without free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub struct Server<S> {
    listeners: Vec<Listener>,
    /// The bound addresses with their actual ports; at least one.
    pub addresses: Vec<ListenAddress>,
    pub(super) edge: Arc<Edge<S>>,
}

impl<S: RpcService> Server<S> {
    /// A server for these listeners. Their connections wait until [`Server::serve`].
    pub fn new(
        listeners: Vec<Listener>,
        service: S,
        auth: Arc<Authenticator>,
        limits: Limits,
        options: ServerOptions,
    ) -> Self {
        let addresses = listeners.iter().map(|listener| listener.address.clone()).collect();
        Self { listeners, addresses, edge: Arc::new(Edge::new(service, auth, limits, options)) }
    }

    pub fn figures(&self) -> Arc<EdgeFigures> {
        self.edge.figures.clone()
    }

    /// Returns a function that replaces the users, the networks and, with TLS, the certificate. It ends connections no longer allowed.
    pub fn admission(&self) -> impl Fn(Vec<RpcUser>, Access, Option<Tls>) + Send + Sync + use<S> {
        let edge = self.edge.clone();
        move |users, access, fresh| {
            if let (Some(tls), Some(fresh)) = (&edge.options.tls, fresh) {
                tls.replace(fresh);
            }
            edge.admission.replace(users, access);
        }
    }

    /// Serves until `shutdown` completes. Then it accepts no more connections, closes idle ones, answers the calls in
    /// flight, and after [`Limits::shutdown_grace`] closes all connections. Returns how many it closed after the grace;
    /// nearly all of them had a call in flight.
    ///
    /// The dispatcher should end long polls when shutdown begins, or they use up the grace time.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> usize {
        let Self { mut listeners, edge, .. } = self;
        let (stop, stopping) = watch::channel(false);
        let mut connections = Connections::new(edge, stopping);
        {
            let mut shutdown = std::pin::pin!(shutdown);
            loop {
                tokio::select! {
                    () = &mut shutdown => break,
                    accepted = accept(&mut listeners) => match accepted {
                        Ok(arrival) => connections.admit(arrival),
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
async fn accept(listeners: &mut [Listener]) -> io::Result<Arrival> {
    listeners.rotate_left(1);
    poll_fn(|context| {
        let ready = listeners.iter().map(|listener| listener.poll_accept(context)).find(Poll::is_ready);
        ready.unwrap_or(Poll::Pending)
    })
    .await
}

struct Connections<S> {
    edge: Arc<Edge<S>>,
    stopping: watch::Receiver<bool>,
    slots: Arc<ConnectionSlots>,
    refusals: Arc<Semaphore>,
    tasks: JoinSet<()>,
    /// Limits the log lines about failed `accept`s.
    accept_errors: Rate,
}

impl<S: RpcService> Connections<S> {
    fn new(edge: Arc<Edge<S>>, stopping: watch::Receiver<bool>) -> Self {
        let slots = ConnectionSlots::new(edge.limits.max_connections, edge.figures.clone());
        let (refusals, tasks) = (Arc::new(Semaphore::new(MAX_REFUSALS)), JoinSet::new());
        Self { edge, stopping, slots, refusals, tasks, accept_errors: Rate::once_a_minute() }
    }

    fn admit(&mut self, arrival: Arrival) {
        let Arrival { stream, peer, is_proxied } = arrival;
        let access = self.edge.admission.access();
        if is_proxied && !access.trusts(peer) {
            tracing::warn!(%peer, "an RPC client that is not a trusted proxy, on a port for proxies");
        } else if access.allows(peer) {
            let tls = self.edge.options.tls.clone().filter(|_| stream.tcp().is_some());
            self.take(stream, peer, tls, is_proxied);
        } else {
            tracing::warn!(%peer, "an RPC client of a network that is not allowed");
            self.refuse(stream, RequestError::Network);
        }
    }

    fn take(&mut self, stream: Socket, peer: Peer, tls: Option<Arc<Tls>>, is_proxied: bool) {
        // Otherwise Nagle's algorithm holds back a reply of several writes until the client's delayed ACK.
        if let Some(Err(error)) = stream.tcp().map(|stream| stream.set_nodelay(true)) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        if let Some(slot) = self.slots.enter(peer) {
            if let Err(error) = self.serve(stream, slot, tls, is_proxied) {
                tracing::warn!(%error, "an RPC connection could not be given to a thread");
            }
        } else {
            tracing::warn!(limit = self.edge.limits.max_connections, "too many RPC connections");
            self.refuse(stream, RequestError::TooManyConnections);
        }
    }

    /// Spawns the task that serves `stream`, on a network thread unless all are blocked.
    fn serve(
        &mut self,
        stream: Socket,
        slot: ConnectionSlot,
        tls: Option<Arc<Tls>>,
        is_proxied: bool,
    ) -> io::Result<()> {
        let (edge, stopping) = (Arc::clone(&self.edge), self.stopping.clone());
        let Some(thread) = self.edge.options.workers.take() else {
            self.tasks.spawn(connection::serve(stream, slot, tls, is_proxied, edge, stopping));
            return Ok(());
        };
        let handle = thread.handle.clone();
        let _entered = handle.enter();
        let stream = stream.moved()?;
        let work = async move {
            connection::serve(stream, slot, tls, is_proxied, edge, stopping).await;
            drop(thread);
        };
        self.tasks.spawn_on(work, &handle);
        Ok(())
    }

    /// Answers a client with the reason of its refusal, unless [`MAX_REFUSALS`] answers are in progress. With TLS the
    /// connection is closed: a handshake costs more than the refusal is worth.
    fn refuse(&mut self, stream: Socket, reason: RequestError) {
        if self.edge.options.tls.is_some() && stream.tcp().is_some() {
            return;
        }
        if let Ok(refusal) = Arc::clone(&self.refusals).try_acquire_owned() {
            let edge = Arc::clone(&self.edge);
            self.tasks.spawn(async move {
                connection::refuse(stream, &edge.limits, reason).await;
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

    async fn drain(mut self) -> usize {
        let grace = self.edge.limits.shutdown_grace;
        let all_ended = async {
            while let Some(ended) = self.tasks.join_next().await {
                log_panic(ended);
            }
        };
        if timeout(grace, all_ended).await.is_ok() {
            return 0;
        }
        let dropped = self.tasks.len();
        tracing::warn!(dropped, "RPC calls were still running at shutdown");
        self.tasks.shutdown().await;
        dropped
    }
}

fn log_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!("the task of an RPC connection panicked");
    }
}
