//! The client at the other end of a connection.

use std::fmt;
use std::future::pending;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::HeaderValue;
use outrigger_values::{RpcError, RpcErrorCode};
use parking_lot::Mutex;
use subtle::ConstantTimeEq;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::activity::Activity;
use super::proof::{Proof, prove};
use super::slots::Link;
use super::websocket::{Conversation, ReadGate};

/// How often it is looked whether a client that has sent more than was read sends no more after that.
const LOOK_BEHIND_UNREAD: Duration = Duration::from_secs(1);

/// How long a long poll goes on when its client has closed its sending side: such a client has mostly gone.
pub const HALF_CLOSED_PATIENCE: Duration = Duration::from_secs(5);

/// What is told the client of a long poll that has ended so.
const HALF_CLOSED: &str = "The client closed its sending side, so its long poll has ended";

/// The answer to a long poll whose client has closed its sending side for [`HALF_CLOSED_PATIENCE`]; one that still reads gets it.
pub fn half_closed() -> RpcError {
    RpcError::new(RpcErrorCode::CLIENT_NOT_CONNECTED, HALF_CLOSED)
}

/// The client at the other end of a connection, as its requests and calls know it.
pub struct Client {
    link: Arc<Link>,
    stream: TcpStream,
    activity: Activity,
    /// What tells the credentials that it has shown from others.
    proof: OnceLock<Proof>,
    /// Of a WebSocket.
    gate: ReadGate,
    conversation: Mutex<Option<Conversation>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("peer", &self.peer()).finish_non_exhaustive()
    }
}

impl Client {
    /// The client of a connection that began at a time, as [`activity::now`](super::activity::now) counts it.
    pub(super) fn new(link: Arc<Link>, stream: TcpStream, began: Duration) -> Arc<Self> {
        let (activity, proof) = (Activity::since(began), OnceLock::new());
        Arc::new(Self { link, stream, activity, proof, gate: ReadGate::default(), conversation: Mutex::default() })
    }

    pub(super) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(super) fn activity(&self) -> &Activity {
        &self.activity
    }

    pub(super) fn gate(&self) -> &ReadGate {
        &self.gate
    }

    /// After the answer that is about to be sent, the connection is a WebSocket.
    pub(super) fn upgrade(&self, conversation: Conversation) {
        *self.conversation.lock() = Some(conversation);
    }

    /// The conversation of a connection that has become a WebSocket.
    pub(super) fn take_conversation(&self) -> Option<Conversation> {
        self.conversation.lock().take()
    }

    /// Its address.
    pub fn peer(&self) -> IpAddr {
        self.link.peer()
    }

    /// It has shown these credentials, which are right.
    pub(super) fn authenticated_with(&self, credentials: &HeaderValue) {
        if !self.link.is_authenticated() {
            self.proof.get_or_init(|| prove(credentials));
            self.link.authenticate();
        }
    }

    /// Whether it has shown these credentials before, and they were right.
    pub(super) fn has_shown(&self, credentials: &HeaderValue) -> bool {
        self.proof.get().is_some_and(|proof| proof.ct_eq(&prove(credentials)).into())
    }

    /// Returns when the client has closed its sending side. It may still wait for an answer.
    pub async fn sends_no_more(&self) {
        loop {
            match self.stream.ready(Interest::READABLE).await {
                Ok(ready) if ready.is_read_closed() => return,
                // What it sent is read after the answer that it waits for.
                Ok(_) => sleep(LOOK_BEHIND_UNREAD).await,
                // The runtime ends.
                Err(_) => pending().await,
            }
        }
    }
}

/// Marks a request of a client as being answered, for as long as it lives.
pub(super) struct InCall(Arc<Client>);

impl InCall {
    pub(super) fn begin(client: &Arc<Client>) -> Self {
        client.activity.begin_call();
        Self(Arc::clone(client))
    }

    /// The request is answered, with so many bytes.
    pub(super) fn answered(self, bytes: u64) {
        self.0.activity.end_call(bytes);
    }
}
