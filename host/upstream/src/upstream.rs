//! One node: its address, its credentials, and how many requests it gets at a time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::Full;
use tokio::sync::Semaphore;

use super::credentials::{Credentials, Login};
use super::endpoint::Endpoint;
use super::error::UpstreamError;
use super::pool::{self, Sender};
use super::reply::{Reply, ReplyBody};

/// The most bytes of the body of a reply that carries only a status.
const MAX_STATUS_BODY: usize = 64 << 10;

/// How long a request waits for its turn while others are answered: after that the node's work queue counts as full.
const PLACE_TIMEOUT: Duration = Duration::from_secs(30);

/// Names the nodes of this process in the threads' pools.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// What is counted of the requests to a node.
#[derive(Debug, Default)]
pub struct Figures {
    /// Requests sent, those sent again included.
    pub requests: AtomicU64,
    /// Requests without a reply.
    pub failures: AtomicU64,
    /// Connections made.
    pub connections: AtomicU64,
    /// Replies, but to requests that wait at the node.
    pub replies: AtomicU64,
    /// The time from these requests to the heads of their replies, in microseconds.
    pub reply_microseconds: AtomicU64,
}

impl Figures {
    fn note_reply(&self, after: Duration) {
        self.replies.fetch_add(1, Ordering::Relaxed);
        let microseconds = u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
        self.reply_microseconds.fetch_add(microseconds, Ordering::Relaxed);
    }
}

/// How a request is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It may have effects, and is sent once.
    Effects,
    /// It has none, and may be sent twice.
    ReadOnly,
    /// It has none, waits at the node, and takes none of the places.
    Waiting,
}

/// A running bitcoind.
pub struct Upstream {
    number: u64,
    endpoint: Endpoint,
    host: HeaderValue,
    credentials: Credentials,
    places: Semaphore,
    figures: Figures,
}

impl Upstream {
    /// A node that gets at most `connections` requests at a time.
    pub fn new(endpoint: Endpoint, login: Login, connections: usize) -> Self {
        let (name, port) = endpoint.authority();
        let name = if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") };
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            host: HeaderValue::from_str(&name).unwrap_or(HeaderValue::from_static("localhost")),
            endpoint,
            credentials: Credentials::new(login),
            places: Semaphore::new(connections.max(1)),
            figures: Figures::default(),
        }
    }

    /// Where it listens.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// What was counted.
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Sends the body of a JSON-RPC request to a path: `/`, or that of a wallet. `read_only`: it has no effects, and may be sent
    /// twice.
    ///
    /// # Errors
    /// No reply, or one of the statuses 401, 403 and 503.
    pub async fn post(&self, path: &str, body: Bytes, read_only: bool) -> Result<Reply, UpstreamError> {
        self.send(Method::POST, path, body, if read_only { Kind::ReadOnly } else { Kind::Effects }).await
    }

    /// Sends a request without effects that waits at the node: it takes none of the places of others.
    ///
    /// # Errors
    /// As of [`Self::post`].
    pub async fn wait(&self, path: &str, body: Bytes) -> Result<Reply, UpstreamError> {
        self.send(Method::POST, path, body, Kind::Waiting).await
    }

    /// Sends a request of the node's REST interface.
    ///
    /// # Errors
    /// As of [`Self::post`].
    pub async fn get(&self, path: &str) -> Result<Reply, UpstreamError> {
        self.send(Method::GET, path, Bytes::new(), Kind::ReadOnly).await
    }

    async fn send(&self, verb: Method, path: &str, body: Bytes, kind: Kind) -> Result<Reply, UpstreamError> {
        let replied = self.send_authorized(verb, path, body, kind).await;
        if let Err(error) = &replied {
            self.figures.failures.fetch_add(1, Ordering::Relaxed);
            if error.is_absent() {
                self.credentials.forget();
                pool::clear(self.number);
            }
        }
        replied
    }

    /// Sends a request, and once more with other credentials where the node refuses these.
    async fn send_authorized(&self, verb: Method, path: &str, body: Bytes, kind: Kind) -> Result<Reply, UpstreamError> {
        let mut credentials = self.credentials.get()?;
        loop {
            let head = (verb.clone(), path, &credentials);
            let reply = self.send_once(head, body.clone(), kind).await?;
            let error = match reply.status {
                StatusCode::UNAUTHORIZED => UpstreamError::Unauthorized,
                StatusCode::FORBIDDEN => UpstreamError::Forbidden,
                StatusCode::SERVICE_UNAVAILABLE => UpstreamError::Overloaded,
                _ => return Ok(reply),
            };
            // Read, so that the connection can be used again.
            let _ = reply.collect(MAX_STATUS_BODY).await;
            credentials = match (&error, self.credentials.other_than(&credentials)) {
                (UpstreamError::Unauthorized, Some(other)) => other,
                _ => return Err(error),
            };
        }
    }

    /// Sends a request, on a connection that waits or on a new one.
    async fn send_once(
        &self,
        (verb, path, credentials): (Method, &str, &HeaderValue),
        body: Bytes,
        kind: Kind,
    ) -> Result<Reply, UpstreamError> {
        // Until the head of the reply: the node's thread is free then, and what remains is only sent.
        let _place = match kind {
            Kind::Waiting => None,
            Kind::Effects | Kind::ReadOnly => {
                let place = tokio::time::timeout(PLACE_TIMEOUT, self.places.acquire()).await;
                Some(place.map_err(|_| UpstreamError::Overloaded)?.map_err(|_| UpstreamError::Overloaded)?)
            }
        };
        loop {
            let (mut sender, is_new) = match pool::take(self.number) {
                Some(sender) => (sender, false),
                None => (self.connect().await?, true),
            };
            let mut request = Request::new(Full::new(body.clone()));
            *request.method_mut() = verb.clone();
            *request.uri_mut() = path.parse().unwrap_or_default();
            let headers = request.headers_mut();
            headers.insert(HOST, self.host.clone());
            headers.insert(AUTHORIZATION, credentials.clone());
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            self.figures.requests.fetch_add(1, Ordering::Relaxed);
            let sent = Instant::now();
            let error = match sender.try_send_request(request).await {
                Ok(response) => {
                    if kind != Kind::Waiting {
                        self.figures.note_reply(sent.elapsed());
                    }
                    let (head, body) = response.into_parts();
                    return Ok(Reply { status: head.status, body: ReplyBody::new(body, self.number, sender) });
                }
                Err(error) => error,
            };
            // A connection that waited may have been closed by the node meanwhile; a new one has no such excuse.
            let unsent = error.message().is_some();
            if is_new || !(unsent || kind != Kind::Effects) {
                return Err(UpstreamError::Lost(error.into_error()));
            }
        }
    }

    async fn connect(&self) -> Result<Sender, UpstreamError> {
        self.figures.connections.fetch_add(1, Ordering::Relaxed);
        pool::connect(&self.endpoint).await.map_err(UpstreamError::Unreachable)
    }
}
