//! One node: its address, its credentials, and its limit of concurrent requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST};
use http::response::Parts;
use http::{HeaderValue, Method, Request, StatusCode, Version};
use http_body_util::Full;
use outrigger_base::busy_poll::BusyPoll;
use tokio::sync::Semaphore;

use super::credentials::{Credentials, Login};
use super::endpoint::Endpoint;
use super::envelope::{Outcome, is_plain, read_reply};
use super::error::{NO_BITCOIND, UpstreamError};
use super::greeting::{ENOUGH, Ending, Endings, Greeting};
use super::pool::{self, Connection, Place, Pool, Way};
use super::reply::{Reply, ReplyBody};

/// The most bytes that the host reads of the body of a reply with status 401, 403 or 503.
const MAX_STATUS_BODY: usize = 64 << 10;

/// The body of bitcoind's 503 for a full work queue begins with this. bitcoind sends other bodies with 503 while it
/// stops, and over REST while it starts.
const QUEUE_FULL: &[u8] = b"Work queue depth exceeded";

/// The longest answer to a greeting, in bytes: a block template with all transactions in hex.
const MAX_GREETING: usize = 64 << 20;

/// How long a request waits for a permit, and then for a connection, before it fails as for a full work queue.
const PLACE_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub struct Figures {
    /// Requests sent, including repeated ones and greetings.
    pub requests: AtomicU64,
    pub failures: AtomicU64,
    pub connections: AtomicU64,
    /// Replies, except to long polls.
    pub replies: AtomicU64,
    /// The total time from these requests to the heads of their replies, in microseconds.
    pub reply_microseconds: AtomicU64,
}

impl Figures {
    fn note_reply(&self, after: Duration) {
        self.replies.fetch_add(1, Ordering::Relaxed);
        let microseconds = u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
        self.reply_microseconds.fetch_add(microseconds, Ordering::Relaxed);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Has effects, and is sent once.
    Effects,
    /// Has no effects, and may be repeated.
    ReadOnly,
    /// Has no effects, waits at the node, and needs no permit.
    Waiting,
}

pub struct Upstream {
    endpoint: Endpoint,
    host: HeaderValue,
    credentials: Arc<Credentials>,
    pool: Arc<Pool>,
    /// Whether it sends the host's own requests, for which some connections are reserved.
    is_own: bool,
    places: Semaphore,
    figures: Figures,
    greeting: Option<Arc<Greeting>>,
    busy_poll: Arc<BusyPoll>,
}

enum GreetingOutcome {
    Node(Connection),
    /// The node answered, and its connection ended.
    Ended(Ending),
    Refused(Reply),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Used,
    /// New, and greeted if there is a greeting.
    New,
    /// New, and not greeted.
    Ungreeted,
}

impl Upstream {
    /// `connections` is the most connections, and the most concurrent requests.
    pub fn new(endpoint: Endpoint, login: Login, connections: usize) -> Self {
        let (name, port) = endpoint.authority();
        let name = if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") };
        Self {
            host: HeaderValue::from_str(&name).unwrap_or(HeaderValue::from_static("localhost")),
            endpoint,
            credentials: Arc::new(Credentials::new(login)),
            pool: Arc::new(Pool::new(connections.max(1))),
            is_own: false,
            places: Semaphore::new(connections.max(1)),
            figures: Figures::default(),
            greeting: None,
            busy_poll: BusyPoll::new(Duration::ZERO),
        }
    }

    /// A client of the same node for the host's own requests, at most `requests` at a time. They share the connections,
    /// and have `own` more to themselves.
    #[must_use]
    pub fn for_host(&self, requests: usize, own: usize) -> Self {
        self.pool.add_own(own);
        Self {
            endpoint: self.endpoint.clone(),
            host: self.host.clone(),
            credentials: self.credentials.clone(),
            pool: self.pool.clone(),
            is_own: true,
            places: Semaphore::new(requests.max(1)),
            figures: Figures::default(),
            greeting: self.greeting.clone(),
            busy_poll: BusyPoll::new(Duration::ZERO),
        }
    }

    /// Busy-polls for each reply, for up to `patience`.
    #[must_use]
    pub fn polled(self, patience: Duration) -> Self {
        Self { busy_poll: BusyPoll::new(patience), ..self }
    }

    /// Greets the node on each new connection.
    #[must_use]
    pub fn greeted(self, greeting: Arc<Greeting>) -> Self {
        Self { greeting: Some(greeting), ..self }
    }

    /// Whether each connection ends after one answer, so that calls with effects are impossible.
    pub fn ends_connections(&self) -> bool {
        self.endings().is_some_and(Endings::were_the_rule)
    }

    fn endings(&self) -> Option<&Endings> {
        self.greeting.as_ref().map(|greeting| &greeting.endings)
    }

    /// Whether replies have bitcoind's exact form, so that long results can be sliced out of a stream.
    pub fn is_plain(&self) -> bool {
        self.greeting.as_ref().is_none_or(|greeting| greeting.plain.load(Ordering::Relaxed))
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Sends a JSON-RPC request to a path: `/`, or a wallet's. A `read_only` request may be repeated. Fails for the
    /// statuses 401, 403 and 503.
    pub async fn post(&self, path: &str, body: Bytes, read_only: bool) -> Result<Reply, UpstreamError> {
        self.send(Method::POST, path, body, if read_only { Kind::ReadOnly } else { Kind::Effects }).await
    }

    /// Sends a long poll without effects, which needs no permit.
    pub async fn wait(&self, path: &str, body: Bytes) -> Result<Reply, UpstreamError> {
        self.send(Method::POST, path, body, Kind::Waiting).await
    }

    pub async fn get(&self, path: &str) -> Result<Reply, UpstreamError> {
        self.send(Method::GET, path, Bytes::new(), Kind::ReadOnly).await
    }

    async fn send(&self, verb: Method, path: &str, body: Bytes, kind: Kind) -> Result<Reply, UpstreamError> {
        let replied = self.send_authorized(verb, path, body, kind).await;
        if let Err(error) = &replied {
            self.figures.failures.fetch_add(1, Ordering::Relaxed);
            if error.is_absent() {
                self.credentials.forget();
                self.pool.clear();
            }
        }
        let is_of_node = match &replied {
            Ok(_) => true,
            Err(error) => matches!(error, UpstreamError::Ended(_) | UpstreamError::Forbidden),
        };
        if let Some(endings) = self.endings().filter(|_| !is_of_node) {
            endings.forget();
        }
        replied
    }

    /// Sends a request. If the node refuses the credentials, repeats it with other ones, if there are any.
    async fn send_authorized(&self, verb: Method, path: &str, body: Bytes, kind: Kind) -> Result<Reply, UpstreamError> {
        let mut credentials = self.credentials.get()?;
        loop {
            let head = (verb.clone(), path, &credentials);
            let reply = self.send_once(head, body.clone(), kind).await?;
            let status = reply.status;
            if is_of_gateway(status) {
                return Err(UpstreamError::Gateway(status));
            }
            if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::SERVICE_UNAVAILABLE) {
                return Ok(reply);
            }
            // Read, so that the connection can be reused.
            let body = reply.collect(MAX_STATUS_BODY).await.map_or_else(|_| Bytes::new(), |(_, body)| body);
            let error = match status {
                StatusCode::UNAUTHORIZED => UpstreamError::Unauthorized,
                StatusCode::FORBIDDEN => UpstreamError::Forbidden,
                _ if body.starts_with(QUEUE_FULL) => UpstreamError::Overloaded,
                _ => UpstreamError::Unavailable,
            };
            credentials = match (&error, self.credentials.other_than(&credentials)) {
                (UpstreamError::Unauthorized, Some(other)) => other,
                _ => return Err(error),
            };
        }
    }

    async fn send_once(
        &self,
        (verb, path, credentials): (Method, &str, &HeaderValue),
        body: Bytes,
        kind: Kind,
    ) -> Result<Reply, UpstreamError> {
        // Held until the head of the reply arrives. The node's thread is then free, and only has to send the body.
        let _place = match kind {
            Kind::Waiting => None,
            Kind::Effects | Kind::ReadOnly => {
                let place = tokio::time::timeout(PLACE_TIMEOUT, self.places.acquire()).await;
                Some(place.map_err(|_| UpstreamError::Overloaded)?.map_err(|_| UpstreamError::Overloaded)?)
            }
        };
        let mut endings = 0;
        loop {
            let greeted = Instant::now();
            let way = tokio::time::timeout(PLACE_TIMEOUT, self.pool.way(self.is_own)).await;
            let (mut connection, known) = match way.map_err(|_| UpstreamError::Overloaded)? {
                // The connection's task may not have finished the last reply yet.
                Way::Waiting(mut connection) => match connection.sender.ready().await {
                    Ok(()) => (connection, Known::Used),
                    Err(_) => continue,
                },
                Way::New(place) if kind != Kind::Effects && self.endings().is_some_and(Endings::are_the_rule) => {
                    (self.connect(place).await?, Known::Ungreeted)
                }
                Way::New(place) => match self.greet(place, credentials).await.map_err(before_sending)? {
                    GreetingOutcome::Node(connection) => (connection, Known::New),
                    GreetingOutcome::Ended(ending) => {
                        self.note_ending(greeted, ending, &mut endings)?;
                        if kind == Kind::Effects && self.endings().is_some_and(Endings::are_the_rule) {
                            return Err(UpstreamError::Ended(self.endpoint.clone()));
                        }
                        continue;
                    }
                    GreetingOutcome::Refused(reply) => return Ok(reply),
                },
            };
            let request = self.request((verb.clone(), path, credentials), body.clone());
            let sent = Instant::now();
            let error = match connection.sender.try_send_request(request).await {
                Ok(response) => {
                    if kind != Kind::Waiting {
                        self.figures.note_reply(sent.elapsed());
                    }
                    let (mut head, body) = response.into_parts();
                    self.note_kept(known, &head);
                    let body = match known {
                        Known::Ungreeted => ReplyBody::last(body),
                        Known::Used | Known::New => ReplyBody::new(body, connection, self.pool.clone()),
                    };
                    return Ok(Reply { status: head.status, content_type: head.headers.remove(CONTENT_TYPE), body });
                }
                Err(error) => error,
            };
            let unsent = error.message().is_some();
            let may_repeat = unsent || kind != Kind::Effects;
            match known {
                // The node may have closed an idle connection, or a greeted one after its answer.
                Known::Used if may_repeat => {}
                Known::New if may_repeat && self.greeting.is_some() => {
                    self.note_ending(greeted, Ending::Untold, &mut endings)?;
                }
                _ => {
                    let lost = UpstreamError::Lost(error.into_error());
                    return Err(if unsent { before_sending(lost) } else { lost });
                }
            }
        }
    }

    /// Records the end of a greeted connection. `count` is the number of ends during this request.
    ///
    /// # Errors
    /// More than [`ENOUGH`] of this request's connections ended, although the node keeps others.
    fn note_ending(&self, greeted: Instant, ending: Ending, count: &mut u32) -> Result<(), UpstreamError> {
        if self.endings().is_some_and(|endings| endings.note(greeted, ending)) {
            tracing::warn!(endpoint = %self.endpoint, "{}", UpstreamError::Ended(self.endpoint.clone()));
        }
        *count += 1;
        if *count <= ENOUGH {
            return Ok(());
        }
        let ended =
            std::io::Error::other("the node, or a proxy in front of it, closes connections after their first answer");
        Err(UpstreamError::Unreachable(ended))
    }

    /// Records that a connection is kept after an answer, if this answer shows it.
    fn note_kept(&self, known: Known, head: &Parts) {
        let Some(endings) = self.endings() else { return };
        let is_kept = match known {
            Known::Used => true,
            Known::New => false,
            Known::Ungreeted => endings.are_told() && !ends_connection(head),
        };
        if is_kept {
            endings.note_kept();
        }
    }

    fn request(&self, (verb, path, credentials): (Method, &str, &HeaderValue), body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = verb;
        *request.uri_mut() = path.parse().unwrap_or_default();
        let headers = request.headers_mut();
        headers.insert(HOST, self.host.clone());
        headers.insert(AUTHORIZATION, credentials.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.figures.requests.fetch_add(1, Ordering::Relaxed);
        request
    }

    /// Greets the node on a new connection. A status that does not identify the node, such as 401, is returned as the
    /// reply.
    async fn greet(&self, place: Place, credentials: &HeaderValue) -> Result<GreetingOutcome, UpstreamError> {
        let mut connection = self.connect(place).await?;
        let Some(greeting) = &self.greeting else { return Ok(GreetingOutcome::Node(connection)) };
        for (number, body) in greeting.requests.iter().enumerate() {
            // If the connection has ended, the next request uses a new one: each request identifies the node by itself.
            if number > 0 && connection.sender.ready().await.is_err() {
                let place = tokio::time::timeout(PLACE_TIMEOUT, self.pool.place(self.is_own)).await;
                connection = self.connect(place.map_err(|_| UpstreamError::Overloaded)?).await?;
            }
            let request = self.request((Method::POST, "/", credentials), body.clone());
            let request_again = request.clone();
            connection.sender.ready().await.map_err(UpstreamError::Lost)?;
            let (head, body) = connection.sender.send_request(request).await.map_err(UpstreamError::Lost)?.into_parts();
            let (status, is_last) = (head.status, ends_connection(&head));
            if is_of_gateway(status) {
                return Err(UpstreamError::Gateway(status));
            }
            if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::SERVICE_UNAVAILABLE) {
                return Ok(GreetingOutcome::Refused(Reply { status, content_type: None, body: ReplyBody::last(body) }));
            }
            let (status, body) =
                Reply { status, content_type: None, body: ReplyBody::last(body) }.collect(MAX_GREETING).await?;
            let result = match read_reply(status, &body) {
                Outcome::Result(result) => {
                    greeting.plain.store(is_plain(&body), Ordering::Relaxed);
                    result
                }
                Outcome::Error(error) => return Err(UpstreamError::NotReady(error)),
                Outcome::Strange => return Err(UpstreamError::Strange(status)),
            };
            if (greeting.check)(number, &result).map_err(UpstreamError::Foreign)? {
                let is_node = |result: &[u8]| (greeting.check)(number, result).is_ok_and(|known| known);
                let is_kept = connection.sender.ready().await.is_ok()
                    && (!greeting.endings.were_the_rule()
                        || self.answers_again(&mut connection, request_again, is_node).await);
                return Ok(if is_kept {
                    GreetingOutcome::Node(connection)
                } else {
                    GreetingOutcome::Ended(if is_last { Ending::Told } else { Ending::Untold })
                });
            }
        }
        Err(UpstreamError::Foreign(format!("{} does not say which chain it is on", self.endpoint)))
    }

    /// Whether a connection stays open after its first answer, and a repeated request identifies the node again. A connection whose end was
    /// not announced may look open until it is used.
    async fn answers_again(
        &self,
        connection: &mut Connection,
        request: Request<Full<Bytes>>,
        is_node: impl Fn(&[u8]) -> bool,
    ) -> bool {
        let Ok(response) = connection.sender.send_request(request).await else { return false };
        let (status, body) = (response.status(), ReplyBody::last(response.into_body()));
        let again = Reply { status, content_type: None, body }.collect(MAX_GREETING).await;
        let is_told = |result| matches!(result, Outcome::Result(result) if is_node(&result));
        let is_kept = again.is_ok_and(|(status, body)| is_told(read_reply(status, &body)))
            && connection.sender.ready().await.is_ok();
        if let Some(endings) = self.endings().filter(|_| is_kept) {
            endings.note_kept();
        }
        is_kept
    }

    async fn connect(&self, place: Place) -> Result<Connection, UpstreamError> {
        self.figures.connections.fetch_add(1, Ordering::Relaxed);
        pool::connect(&self.endpoint, &self.busy_poll, place).await.map_err(UpstreamError::Unreachable)
    }
}

/// Whether a proxy answers with this status if it cannot reach the node.
fn is_of_gateway(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT)
}

/// Whether an answer's head announces the end of its connection.
fn ends_connection(head: &Parts) -> bool {
    let says = |word: &str| {
        let values = head.headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case(word))
    };
    says("close") || (head.version < Version::HTTP_11 && !says("keep-alive"))
}

/// Converts an error that came before the request itself was sent: at most the greeting was.
fn before_sending(error: UpstreamError) -> UpstreamError {
    match error {
        UpstreamError::Lost(error) => UpstreamError::Unreachable(std::io::Error::other(error)),
        error @ UpstreamError::Gateway(_) => UpstreamError::Unreachable(std::io::Error::other(error)),
        UpstreamError::Strange(_) => UpstreamError::Foreign(NO_BITCOIND.into()),
        error => error,
    }
}
