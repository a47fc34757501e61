//! The client at the other end of a connection.

use std::any::Any;
use std::fmt;
use std::future::pending;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::HeaderValue;
use outrigger_values::{RpcError, RpcErrorCode};
use parking_lot::Mutex;
use subtle::ConstantTimeEq;
use tokio::io::Interest;
use tokio::time::sleep;

use super::activity::Activity;
use super::conversation::{Conversation, ReadGate};
use super::peers::Peer;
use super::proof::{Proof, prove};
use super::slots::Link;
use super::socket::Socket;
use super::tls::TlsClients;

/// How often the socket of a client with unread bytes is checked for the end of its stream.
const LOOK_BEHIND_UNREAD: Duration = Duration::from_secs(1);

/// How long a long poll goes on after its client has closed its sending side. Such a client is usually gone.
pub const HALF_CLOSED_PATIENCE: Duration = Duration::from_secs(5);

/// The answer to a long poll whose client closed its sending side [`HALF_CLOSED_PATIENCE`] ago.
pub fn half_closed() -> RpcError {
    let message = "The client closed its sending side, so its long poll has ended";
    RpcError::new(RpcErrorCode::CLIENT_NOT_CONNECTED, message)
}

/// The identity of a connection itself, apart from the credentials of its requests.
pub(super) enum Identity {
    /// The common name of the client's certificate, which must be a user's; `None` if it does not have exactly one.
    Certificate { name: Option<String>, clients: Arc<TlsClients> },
    /// The uid of the client's process, which may identify an RPC user.
    Process(u32),
}

/// The client at the other end of a connection, as its requests and calls know it.
pub struct Client {
    pub(super) link: Arc<Link>,
    pub(super) stream: Socket,
    pub(super) activity: Activity,
    /// A proof of the first accepted credentials, and their client: a proxy's connection serves several clients.
    proof: OnceLock<(Proof, Peer)>,
    /// The user of the newest request, as `admission.rs` keeps it.
    pub(super) user: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
    pub(super) identity: OnceLock<Identity>,
    pub(super) gate: ReadGate,
    /// Set when the next answer turns the connection into a WebSocket.
    pub(super) conversation: Mutex<Option<Conversation>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("peer", &self.peer()).finish_non_exhaustive()
    }
}

impl Client {
    /// `began` is a time of [`activity::now`](super::activity::now).
    pub(super) fn new(link: Arc<Link>, stream: Socket, began: Duration) -> Arc<Self> {
        let (activity, proof, identity) = (Activity::since(began), OnceLock::new(), OnceLock::new());
        let (user, gate, conversation) = Default::default();
        Arc::new(Self { link, stream, activity, proof, user, identity, gate, conversation })
    }

    pub fn peer(&self) -> Peer {
        self.link.peer()
    }

    pub(super) fn authenticated_with(&self, credentials: &HeaderValue, peer: Peer) {
        if !self.link.is_authenticated() {
            self.proof.get_or_init(|| (prove(credentials), peer));
            self.link.authenticate();
        }
    }

    /// Whether these credentials of that client were accepted on this connection before.
    pub(super) fn has_shown(&self, credentials: &HeaderValue, peer: Peer) -> bool {
        let is_same = |(proof, shown_by): &(Proof, Peer)| *shown_by == peer && proof.ct_eq(&prove(credentials)).into();
        self.proof.get().is_some_and(is_same)
    }

    /// Returns when the client has closed its sending side. It may still wait for an answer.
    pub async fn sends_no_more(&self) {
        loop {
            match self.stream.ready(Interest::READABLE).await {
                Ok(ready) if ready.is_read_closed() => return,
                // A pipelined request: it is read after the current answer.
                Ok(_) => sleep(LOOK_BEHIND_UNREAD).await,
                // The runtime is shutting down.
                Err(_) => pending().await,
            }
        }
    }
}
