//! Listening, and stopping in good order.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::auth::Authenticator;
use super::connection;
use super::edge::Edge;
use super::gateway::RpcService;
use super::limits::Limits;

/// Connections beyond the limit that are told so at one time. Further ones are closed unheard.
const MAX_REFUSALS: usize = 64;

/// Pause after the system could not give a connection, as when file descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The server could not be started.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The address cannot be listened on.
    #[error("cannot listen for RPC on {address}: {source}")]
    Bind {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were closed although they had not ended, since the time given to them ran
    /// out; with a call in flight, nearly always.
    pub dropped: usize,
}

/// A listening RPC server.
pub struct Server<S> {
    listener: TcpListener,
    address: SocketAddr,
    edge: Arc<Edge<S>>,
}

impl<S> std::fmt::Debug for Server<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl<S: RpcService> Server<S> {
    /// Listens on `address`; port 0 takes a free one. Connections wait until [`Server::serve`].
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn bind(
        address: SocketAddr,
        service: S,
        auth: Arc<Authenticator>,
        limits: Limits,
    ) -> Result<Self, ServerError> {
        let failed = |source| ServerError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, edge: Arc::new(Edge::new(service, auth, limits)) })
    }

    /// The address that is listened on, with the true port.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` ends. Then no connection is accepted any more, idle ones are closed,
    /// calls in flight are finished and answered, and what has not ended within
    /// [`Limits::shutdown_grace`] is dropped.
    ///
    /// Calls that wait for something to happen (long polls) should be ended by the dispatcher when
    /// shutdown begins, or they use up the whole of that time.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> Drained {
        let Self { listener, edge, .. } = self;
        let (stop, stopping) = watch::channel(false);
        let mut connections = Connections::new(edge, stopping);
        {
            let mut shutdown = std::pin::pin!(shutdown);
            loop {
                tokio::select! {
                    () = &mut shutdown => break,
                    accepted = listener.accept() => match accepted {
                        Ok((stream, _)) => connections.take(stream),
                        Err(error) => on_accept_error(&error).await,
                    },
                    // Ended connections are forgotten as they end.
                    Some(ended) = connections.tasks.join_next() => log_panic(ended),
                }
            }
        }
        drop(listener);
        // No receiver means that no connection is left.
        let _nobody_left = stop.send(true);
        connections.drain().await
    }
}

/// The connections that are open.
struct Connections<S> {
    edge: Arc<Edge<S>>,
    stopping: watch::Receiver<bool>,
    slots: Arc<Semaphore>,
    refusals: Arc<Semaphore>,
    tasks: JoinSet<()>,
}

impl<S: RpcService> Connections<S> {
    fn new(edge: Arc<Edge<S>>, stopping: watch::Receiver<bool>) -> Self {
        let slots = edge.limits().max_connections.min(Semaphore::MAX_PERMITS);
        Self {
            edge,
            stopping,
            slots: Arc::new(Semaphore::new(slots)),
            refusals: Arc::new(Semaphore::new(MAX_REFUSALS)),
            tasks: JoinSet::new(),
        }
    }

    fn take(&mut self, stream: TcpStream) {
        // Without it a reply in several pieces may wait for the client's delayed acknowledgement.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let edge = Arc::clone(&self.edge);
        if let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
            let stopping = self.stopping.clone();
            self.tasks.spawn(async move {
                connection::serve(stream, edge, stopping).await;
                drop(slot);
            });
        } else if let Ok(refusal) = Arc::clone(&self.refusals).try_acquire_owned() {
            tracing::warn!(limit = edge.limits().max_connections, "too many RPC connections");
            self.tasks.spawn(async move {
                connection::refuse(stream, edge.limits()).await;
                drop(refusal);
            });
        }
    }

    async fn drain(mut self) -> Drained {
        let grace = self.edge.limits().shutdown_grace;
        let all_ended = async {
            while let Some(ended) = self.tasks.join_next().await {
                log_panic(ended);
            }
        };
        if timeout(grace, all_ended).await.is_ok() {
            return Drained { dropped: 0 };
        }
        let dropped = self.tasks.len();
        tracing::warn!(dropped, "RPC calls were still running at shutdown");
        self.tasks.shutdown().await;
        Drained { dropped }
    }
}

async fn on_accept_error(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    // The client was gone before it was met: nothing is wrong here.
    if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
        return;
    }
    tracing::error!(%error, "cannot accept an RPC connection");
    sleep(ACCEPT_PAUSE).await;
}

fn log_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!("the task of an RPC connection panicked");
    }
}
