//! One node: its address, its credentials, and how many requests it gets at a time.

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
use super::error::UpstreamError;
use super::greeting::{ENOUGH, Ending, Endings, Greeting};
use super::pool::{self, Connection, Place, Pool, Way};
use super::reply::{Reply, ReplyBody};

/// The most bytes of the body of a reply that carries only a status.
const MAX_STATUS_BODY: usize = 64 << 10;

/// The beginning of the body with which bitcoind refuses what its work queue has no room for. It has others for 503 while it stops, and
/// its REST interface while it starts.
const QUEUE_FULL: &[u8] = b"Work queue depth exceeded";

/// The longest answer to a question of the greeting, in bytes: a block template with all transactions in hexadecimal.
const MAX_GREETING: usize = 64 << 20;

/// How long a request waits for its turn, and for a connection, while others are answered: after that the node's work queue counts as full.
const PLACE_TIMEOUT: Duration = Duration::from_secs(30);

/// Names the nodes of this process.
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
    credentials: Arc<Credentials>,
    pool: Arc<Pool>,
    /// Whether its requests are the host's own, for which there are connections beside the others.
    is_own: bool,
    places: Semaphore,
    figures: Figures,
    greeting: Option<Arc<Greeting>>,
    busy_poll: Arc<BusyPoll>,
}

/// A connection to the node, or the reply that says why there is none.
enum Greeted {
    Node(Connection),
    /// It is the node, whose connection ended with its answer.
    Ended(Ending),
    Refused(Reply),
}

/// What is known of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// It was used before.
    Used,
    /// It is new, and was greeted where there is a greeting.
    New,
    /// It is new, and was not greeted.
    Unasked,
}

impl Upstream {
    /// A node that gets at most `connections` requests at a time, on as many connections at most.
    pub fn new(endpoint: Endpoint, login: Login, connections: usize) -> Self {
        let (name, port) = endpoint.authority();
        let name = if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") };
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
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

    /// The same node for the host's own requests, of which it gets at most `requests` at a time. They use the connections of the others,
    /// and `own` more, which are for them alone.
    #[must_use]
    pub fn for_host(&self, requests: usize, own: usize) -> Self {
        self.pool.add_own(own);
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
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

    /// The same, whose threads look for a reply for up to so long before they sleep.
    #[must_use]
    pub fn polled(self, patience: Duration) -> Self {
        Self { busy_poll: BusyPoll::new(patience), ..self }
    }

    /// The same, with questions that a node has to answer on each new connection before it gets any request.
    #[must_use]
    pub fn greeted(self, greeting: Arc<Greeting>) -> Self {
        Self { greeting: Some(greeting), ..self }
    }

    /// Whether each connection ends after one answer, so that only methods without effects can be called.
    pub fn ends_connections(&self) -> bool {
        self.endings().is_some_and(Endings::were_the_rule)
    }

    fn endings(&self) -> Option<&Endings> {
        self.greeting.as_ref().map(|greeting| &greeting.endings)
    }

    /// Names it among the nodes of this process.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether its results stand between a known beginning and a known end, so that long ones can be cut out while they come.
    pub fn is_plain(&self) -> bool {
        self.greeting.as_ref().is_none_or(|greeting| greeting.plain.load(Ordering::Relaxed))
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
                self.pool.clear();
            }
        }
        // A proxy says by a status of its own that the node is gone.
        let is_of_node = match &replied {
            Ok(reply) => !matches!(reply.status, StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT),
            Err(error) => matches!(error, UpstreamError::Ended(_) | UpstreamError::Forbidden),
        };
        if let Some(endings) = self.endings().filter(|_| !is_of_node) {
            endings.forget();
        }
        replied
    }

    /// Sends a request, and once more with other credentials where the node refuses these.
    async fn send_authorized(&self, verb: Method, path: &str, body: Bytes, kind: Kind) -> Result<Reply, UpstreamError> {
        let mut credentials = self.credentials.get()?;
        loop {
            let head = (verb.clone(), path, &credentials);
            let reply = self.send_once(head, body.clone(), kind).await?;
            let status = reply.status;
            if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::SERVICE_UNAVAILABLE) {
                return Ok(reply);
            }
            // Read to its end, so that the connection can be used again.
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
        let mut endings = 0;
        loop {
            let greeted = Instant::now();
            let way = tokio::time::timeout(PLACE_TIMEOUT, self.pool.way(self.is_own)).await;
            let (mut connection, known) = match way.map_err(|_| UpstreamError::Overloaded)? {
                // Its task may have to finish the last reply first.
                Way::Waiting(mut connection) => match connection.sender.ready().await {
                    Ok(()) => (connection, Known::Used),
                    Err(_) => continue,
                },
                Way::New(place) if self.endings().is_some_and(Endings::are_the_rule) => match kind {
                    Kind::Effects => return Err(UpstreamError::Ended(self.endpoint.clone())),
                    Kind::ReadOnly | Kind::Waiting => (self.connect(place).await?, Known::Unasked),
                },
                Way::New(place) => match self.greet(place, credentials).await.map_err(before_sending)? {
                    Greeted::Node(connection) => (connection, Known::New),
                    Greeted::Ended(ending) => {
                        self.note_ending(greeted, ending, &mut endings)?;
                        continue;
                    }
                    Greeted::Refused(reply) => return Ok(reply),
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
                        Known::Unasked => ReplyBody::last(body),
                        Known::Used | Known::New => ReplyBody::new(body, connection, self.pool.clone()),
                    };
                    return Ok(Reply { status: head.status, content_type: head.headers.remove(CONTENT_TYPE), body });
                }
                Err(error) => error,
            };
            let unsent = error.message().is_some();
            let may_repeat = unsent || kind != Kind::Effects;
            match known {
                // One that waited may have been closed by the node meanwhile, and one that was greeted with the answer to that.
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

    /// Notes that the node was greeted, and the connection ended then. `count` are those of this request.
    ///
    /// # Errors
    /// Where connections ended as often as makes the rule, and others did not.
    fn note_ending(&self, greeted: Instant, ending: Ending, count: &mut u32) -> Result<(), UpstreamError> {
        if self.endings().is_some_and(|endings| endings.note(greeted, ending)) {
            tracing::warn!(endpoint = %self.endpoint, "{}", UpstreamError::Ended(self.endpoint.clone()));
        }
        *count += 1;
        if *count <= ENOUGH {
            return Ok(());
        }
        let ended = std::io::Error::other("connections end after their first answer");
        Err(UpstreamError::Unreachable(ended))
    }

    /// Notes that a connection is kept after an answer, where this one shows it.
    fn note_kept(&self, known: Known, head: &Parts) {
        let Some(endings) = self.endings() else { return };
        let is_kept = match known {
            Known::Used => true,
            Known::New => false,
            Known::Unasked => endings.are_told() && !ends_connection(head),
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

    /// Asks on a new connection whether it leads to the node. A status that says nothing of it, as 401, is the reply to whatever was
    /// to be sent.
    async fn greet(&self, place: Place, credentials: &HeaderValue) -> Result<Greeted, UpstreamError> {
        let mut connection = self.connect(place).await?;
        let Some(greeting) = &self.greeting else { return Ok(Greeted::Node(connection)) };
        for (number, body) in greeting.requests.iter().enumerate() {
            // Where it has ended, each question tells by itself.
            if number > 0 && connection.sender.ready().await.is_err() {
                let place = tokio::time::timeout(PLACE_TIMEOUT, self.pool.place(self.is_own)).await;
                connection = self.connect(place.map_err(|_| UpstreamError::Overloaded)?).await?;
            }
            let request = self.request((Method::POST, "/", credentials), body.clone());
            connection.sender.ready().await.map_err(UpstreamError::Lost)?;
            let (head, body) = connection.sender.send_request(request).await.map_err(UpstreamError::Lost)?.into_parts();
            let (status, is_last) = (head.status, ends_connection(&head));
            if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::SERVICE_UNAVAILABLE) {
                return Ok(Greeted::Refused(Reply { status, content_type: None, body: ReplyBody::last(body) }));
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
                return Ok(match connection.sender.ready().await {
                    Ok(()) => Greeted::Node(connection),
                    Err(_) => Greeted::Ended(if is_last { Ending::Told } else { Ending::Untold }),
                });
            }
        }
        Err(UpstreamError::Foreign(format!("{} does not say which chain it is on", self.endpoint)))
    }

    async fn connect(&self, place: Place) -> Result<Connection, UpstreamError> {
        self.figures.connections.fetch_add(1, Ordering::Relaxed);
        pool::connect(&self.endpoint, &self.busy_poll, place).await.map_err(UpstreamError::Unreachable)
    }
}

/// Whether the head of an answer says that its connection ends behind it.
fn ends_connection(head: &Parts) -> bool {
    let says = |word: &str| {
        let values = head.headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case(word))
    };
    says("close") || (head.version < Version::HTTP_11 && !says("keep-alive"))
}

/// An error before anything was sent but questions.
fn before_sending(error: UpstreamError) -> UpstreamError {
    match error {
        UpstreamError::Lost(error) => UpstreamError::Unreachable(std::io::Error::other(error)),
        UpstreamError::Strange(_) => {
            UpstreamError::Foreign("what listens there does not answer as bitcoind does".into())
        }
        error => error,
    }
}
