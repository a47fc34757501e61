//! HTTP as bitcoind's clients expect it: paths, verbs, credentials, bodies and their limits.
//!
//! The order of the checks is bitcoind's: framing (400), path (400, 404), verb (405), credentials (401), and only then
//! the body (413).

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{
    ALLOW, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, TRANSFER_ENCODING, WWW_AUTHENTICATE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use hyper::body::Body;
use percent_encoding::percent_decode_str;
use tokio::time::{sleep, timeout};
use zeroize::Zeroize;

use outrigger_base::busy_poll::BusyPoll;

use super::attempts::Attempts;
use super::auth::{AuthenticationFailure, Authenticator, Caller};
use super::client::Client;
use super::envelope::{self, Content, Reply, ReplyBody};
use super::figures::EdgeFigures;
use super::gateway::RpcService;
use super::limits::Limits;
use super::rest::{REST_ENTRY, REST_PATH, Rest};
use super::subscriptions::Tips;
use super::unread::Unread;
use super::websocket;

/// The longest path, in bytes: bitcoind's limit for a head (`MAX_HEADERS_SIZE`).
const MAX_PATH_BYTES: usize = 8192;

/// bitcoind's answer to a verb other than POST.
const POST_ONLY: &str = "JSONRPC server handles only POST requests";

/// The most bytes of a refused request's body that are read and dropped so that its connection stays usable. A longer
/// body closes the connection.
const DISCARD_MAX_BYTES: u64 = 64 * 1024;

/// How long the answer to a refused request waits for the body.
const DISCARD_TIMEOUT: Duration = Duration::from_millis(250);

/// The most bytes allocated by a body's declared length. A longer body's buffer grows as it arrives.
const BODY_RESERVE_MAX: usize = 1024 * 1024;

pub(super) struct Edge<S> {
    service: Arc<S>,
    auth: Arc<Authenticator>,
    limits: Limits,
    rest: OnceLock<Arc<dyn Rest>>,
    busy_poll: Arc<BusyPoll>,
    attempts: Attempts,
    unread: Arc<Unread>,
    figures: Arc<EdgeFigures>,
    /// The newest block, for subscriptions.
    tips: OnceLock<Tips>,
}

impl<S: RpcService> Edge<S> {
    pub(super) fn new(service: S, auth: Arc<Authenticator>, limits: Limits) -> Self {
        let (busy_poll, attempts) = (BusyPoll::new(limits.busy_poll), Attempts::new(limits.wrong_credentials_delay));
        let figures = Arc::<EdgeFigures>::default();
        let unread = Unread::new(limits.max_unread_bytes, figures.clone());
        let (service, rest, tips) = (Arc::new(service), OnceLock::new(), OnceLock::new());
        Self { service, auth, limits, rest, busy_poll, attempts, unread, figures, tips }
    }

    /// Sets the REST interface, once. Without it, `/rest/` does not exist.
    pub(super) fn answer_rest_by(&self, rest: Arc<dyn Rest>) {
        let _ = self.rest.set(rest);
    }

    /// Sets the newest block, once. Without it, subscriptions tell no blocks.
    pub(super) fn tell_blocks_by(&self, tips: Tips) {
        let _ = self.tips.set(tips);
    }

    pub(super) fn busy_poll(&self) -> &Arc<BusyPoll> {
        &self.busy_poll
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn unread(&self) -> &Arc<Unread> {
        &self.unread
    }

    pub(super) fn figures(&self) -> &Arc<EdgeFigures> {
        &self.figures
    }

    #[cfg(test)]
    pub(super) fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    pub(super) async fn handle<B>(&self, request: Request<B>, client: &Arc<Client>) -> Response<ReplyBody>
    where
        B: Body<Data = Bytes>,
    {
        // Only a chunked body has no known length.
        let is_chunked = request.body().size_hint().exact().is_none();
        let mut response = self.answer(request, client, is_chunked).await;
        if is_chunked {
            // RFC 9112, 6.1: a proxy may see the request end elsewhere, so the connection is closed.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    async fn answer<B>(&self, request: Request<B>, client: &Arc<Client>, is_chunked: bool) -> Response<ReplyBody>
    where
        B: Body<Data = Bytes>,
    {
        let (head, body) = request.into_parts();
        let mut body = pin!(body);
        let admitted = match is_chunked {
            true if !is_chunked_alone(&head.headers) => Err(RequestError::Coding),
            _ => self.admit(&head, client).await,
        };
        let (caller, wallet) = match admitted {
            Ok((caller, Target::Calls(wallet))) => (caller, wallet),
            Ok((caller, Target::WebSocket(wallet))) => {
                let origin = caller.origin(wallet);
                // Boxed, since every connection reserves room for it.
                let tips = self.tips.get().cloned();
                let accepted = websocket::accept(&self.service, &self.limits, client, caller, origin, head, tips);
                return Box::pin(accepted).await;
            }
            Ok((caller, Target::Rest(rest))) => {
                discard(body).await;
                // Boxed, since every connection reserves room for it.
                return Box::pin(get(&**rest, &caller, &head.uri)).await;
            }
            Err(refusal) => {
                if !head.headers.contains_key(EXPECT) {
                    discard(body).await;
                }
                return refusal.into_response();
            }
        };
        if declared_length(&head.headers) > self.limits.max_body_bytes as u64 {
            return RequestError::BodyTooLarge.into_response();
        }
        match read_body(&mut body, &self.limits).await {
            Ok(body) => {
                let reply = envelope::answer(&*self.service, &caller, wallet, body, &self.limits).await;
                into_response(reply)
            }
            Err(refusal) => refusal.into_response(),
        }
    }

    /// Checks the head of a request. Returns the user and the target.
    async fn admit(&self, head: &Parts, client: &Arc<Client>) -> Result<(Caller, Target<'_>), RequestError> {
        let target = match self.target_of(&head.uri)? {
            Target::Calls(wallet) if websocket::is_upgrade(head) => Target::WebSocket(wallet),
            target => target,
        };
        match target {
            Target::WebSocket(_) if !websocket::allows_origin(&head.headers, &self.limits.websocket_origins) => {
                return Err(RequestError::Origin);
            }
            Target::Calls(_) if head.method != Method::POST => return Err(RequestError::NotPost),
            Target::Rest(_) if head.method != Method::GET => return Err(RequestError::NotGet),
            _ => {}
        }
        let credentials = head.headers.get(AUTHORIZATION).ok_or(RequestError::Unauthorized)?;
        if !self.attempts.is_quiet() && !client.has_shown(credentials) {
            self.attempts.wait_for_turn(client.peer()).await.map_err(|_| self.too_many_attempts())?;
        }
        match self.auth.check(credentials) {
            Ok(caller) => {
                client.authenticated_with(credentials);
                Ok((caller.on(client.clone()), target))
            }
            Err(AuthenticationFailure) => {
                let peer = client.peer();
                // Programs that watch the log read the client's address from this field.
                tracing::warn!(%peer, "RPC request with wrong credentials");
                self.figures.wrong_credentials.fetch_add(1, Ordering::Relaxed);
                sleep(self.attempts.wrong(peer, Instant::now())).await;
                Err(RequestError::Unauthorized)
            }
        }
    }

    fn target_of(&self, uri: &Uri) -> Result<Target<'_>, RequestError> {
        match self.rest.get() {
            Some(rest) if uri.authority().is_none() && path_of(uri)?.starts_with(REST_PATH) => Ok(Target::Rest(rest)),
            _ => wallet_of(uri).map(Target::Calls),
        }
    }

    fn too_many_attempts(&self) -> RequestError {
        self.figures.refused_attempts.fetch_add(1, Ordering::Relaxed);
        RequestError::TooManyAttempts
    }
}

/// The target of a request, with the wallet in its path.
enum Target<'e> {
    /// JSON-RPC over HTTP.
    Calls(Option<Arc<str>>),
    /// JSON-RPC over a WebSocket.
    WebSocket(Option<Arc<str>>),
    Rest(&'e Arc<dyn Rest>),
}

async fn get(rest: &dyn Rest, caller: &Caller, uri: &Uri) -> Response<ReplyBody> {
    if !caller.may_call(REST_ENTRY) {
        return into_response(envelope::forbidden(caller, REST_ENTRY));
    }
    let answer = rest.get(uri.path_and_query().map_or_else(String::new, |path| path.as_str().to_owned())).await;
    let mut response = into_response(Reply::whole(answer.status, answer.body));
    if let Some(content_type) = answer.content_type {
        response.headers_mut().insert(CONTENT_TYPE, content_type);
    }
    response
}

/// Why a request is refused before its body is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestError {
    Coding,
    PathTooLong,
    NoSuchPath,
    NotPost,
    NotGet,
    Origin,
    Unauthorized,
    TooManyAttempts,
    BodyTooLarge,
    BodyStalled,
    BodyBroken,
}

impl RequestError {
    fn into_response(self) -> Response<ReplyBody> {
        let close = (CONNECTION, HeaderValue::from_static("close"));
        let bad_request = |words| Reply::text(StatusCode::BAD_REQUEST, words);
        let (reply, header) = match self {
            Self::Coding => (bad_request("Transfer-Encoding must be chunked alone"), Some(close)),
            Self::PathTooLong => (bad_request("Path is too long"), Some(close)),
            Self::NoSuchPath => (Reply::empty(StatusCode::NOT_FOUND), None),
            Self::NotPost => (
                Reply::text(StatusCode::METHOD_NOT_ALLOWED, POST_ONLY),
                Some((ALLOW, HeaderValue::from_static("POST"))),
            ),
            Self::NotGet => {
                let words = "The REST interface handles only GET requests";
                (Reply::text(StatusCode::METHOD_NOT_ALLOWED, words), Some((ALLOW, HeaderValue::from_static("GET"))))
            }
            Self::Origin => {
                let words = "rpc.websocket_origins does not list the page's origin";
                (Reply::text(StatusCode::FORBIDDEN, words), None)
            }
            Self::Unauthorized => (
                Reply::empty(StatusCode::UNAUTHORIZED),
                Some((WWW_AUTHENTICATE, HeaderValue::from_static(r#"Basic realm="jsonrpc""#))),
            ),
            Self::TooManyAttempts => {
                let words = "Too many requests with wrong credentials from this address";
                (Reply::text(StatusCode::TOO_MANY_REQUESTS, words), Some(close))
            }
            Self::BodyTooLarge => {
                (Reply::text(StatusCode::PAYLOAD_TOO_LARGE, "Request body is too large"), Some(close))
            }
            Self::BodyStalled => {
                (Reply::text(StatusCode::REQUEST_TIMEOUT, "Request body did not arrive in time"), Some(close))
            }
            Self::BodyBroken => (bad_request("Request body could not be read"), Some(close)),
        };
        let mut response = into_response(reply);
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionRefusal {
    TooMany,
    /// The client's address is not allowed (`-rpcallowip`). The answer is bitcoind's.
    Network,
}

impl ConnectionRefusal {
    /// The answer to the first request; it closes the connection.
    pub(super) fn into_response(self) -> Response<ReplyBody> {
        let mut response = into_response(match self {
            Self::TooMany => Reply::text(StatusCode::SERVICE_UNAVAILABLE, "Too many connections"),
            Self::Network => Reply::empty(StatusCode::FORBIDDEN),
        });
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

/// Adds the headers. `Content-Length` comes from the body.
fn into_response(reply: Reply) -> Response<ReplyBody> {
    let content_type = match reply.content {
        // Clients compare the whole value: no charset may follow.
        Content::Json => Some("application/json"),
        Content::Text => Some("text/plain"),
        Content::Empty => None,
    };
    let mut response = Response::new(reply.body);
    *response.status_mut() = reply.status;
    if let Some(content_type) = content_type {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    response
}

/// The wallet in a path: `None` for `/`. Everything after `/wallet/` is the name, slashes and question marks included,
/// as in bitcoind.
///
/// An absolute URI is answered with 404, as in bitcoind, even if it names this host.
fn wallet_of(uri: &Uri) -> Result<Option<Arc<str>>, RequestError> {
    if uri.authority().is_some() {
        return Err(RequestError::NoSuchPath);
    }
    let path = path_of(uri)?;
    if path == "/" {
        return Ok(None);
    }
    let name = path.strip_prefix("/wallet/").ok_or(RequestError::NoSuchPath)?;
    // A percent sign without two hex digits is literal.
    let name = percent_decode_str(name).collect::<Vec<_>>();
    let name = String::from_utf8(name).unwrap_or_else(|error| no_wallet(error.as_bytes()));
    Ok(Some(Arc::from(name)))
}

/// The path with its query, unless it is too long.
fn path_of(uri: &Uri) -> Result<&str, RequestError> {
    let path = uri.path_and_query().map_or("", |path| path.as_str());
    if path.len() > MAX_PATH_BYTES { Err(RequestError::PathTooLong) } else { Ok(path) }
}

/// Replaces a name that is not UTF-8 by one that no wallet has, so only a call that needs the wallet fails. It keeps
/// the readable part and adds a control character, which wallet names cannot contain.
fn no_wallet(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned() + "\0"
}

/// Whether `chunked` is the only transfer coding. No other is decoded.
fn is_chunked_alone(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let first = codings.next().is_some_and(|coding| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"));
    first && codings.next().is_none()
}

/// The declared length, else 0. hyper refuses lengths that are not numbers.
fn declared_length(headers: &HeaderMap) -> u64 {
    headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()).and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// Reads the whole body. A single frame is not copied.
async fn read_body<B>(
    mut body: impl Body<Data = Bytes, Error = B> + Unpin,
    limits: &Limits,
) -> Result<Bytes, RequestError> {
    let Some(first) = next_data(&mut body, limits.body_stall_timeout).await? else {
        return Ok(Bytes::new());
    };
    if first.len() > limits.max_body_bytes {
        return Err(RequestError::BodyTooLarge);
    }
    if body.is_end_stream() {
        return Ok(first);
    }
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut whole = BytesMut::with_capacity(first.len() + announced.min(BODY_RESERVE_MAX));
    whole.extend_from_slice(&first);
    drop(first);
    while let Some(data) = next_data(&mut body, limits.body_stall_timeout).await? {
        if data.len() > limits.max_body_bytes.saturating_sub(whole.len()) {
            return Err(RequestError::BodyTooLarge);
        }
        whole.extend_from_slice(&data);
    }
    Ok(Bytes::from_owner(AssembledBody(whole)))
}

/// A body assembled from several frames, wiped on drop: it may hold many keys. A body in one frame stays in hyper's
/// memory, which cannot be wiped from here, and a body longer than [`BODY_RESERVE_MAX`] leaves copies behind as it
/// grows.
struct AssembledBody(BytesMut);

impl AsRef<[u8]> for AssembledBody {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for AssembledBody {
    fn drop(&mut self) {
        self.0.as_mut().zeroize();
    }
}

/// The next bytes of `body`; `None` at its end.
async fn next_data(
    body: &mut (impl Body<Data = Bytes> + Unpin),
    stall_timeout: Duration,
) -> Result<Option<Bytes>, RequestError> {
    loop {
        let frame = timeout(stall_timeout, body.frame()).await.map_err(|_| RequestError::BodyStalled)?;
        match frame {
            None => return Ok(None),
            Some(Err(_)) => return Err(RequestError::BodyBroken),
            // Trailers are ignored.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// Reads and drops a refused request's body, within limits. If the connection is closed while the client still sends,
/// the client may lose the answer. Beyond the limits this is accepted.
async fn discard(mut body: impl Body<Data = Bytes> + Unpin) {
    if body.size_hint().lower() > DISCARD_MAX_BYTES {
        return;
    }
    let reading = async {
        let mut discarded = 0_u64;
        while discarded <= DISCARD_MAX_BYTES {
            match body.frame().await {
                Some(Ok(frame)) => {
                    discarded += frame.data_ref().map_or(0, |data| data.len() as u64);
                }
                _ => return,
            }
        }
    };
    // A timeout does not change the answer.
    let _in_time = timeout(DISCARD_TIMEOUT, reading).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wallet(path: &str) -> Result<Option<String>, RequestError> {
        let uri = path.parse().expect("uri");
        wallet_of(&uri).map(|name| name.map(|name| name.to_string()))
    }

    #[test]
    fn edge_paths_name_wallets() {
        let named = |name: &str| Ok(Some(name.to_owned()));
        let cases = [
            ("/", Ok(None)),
            ("http://localhost:8332/", Err(RequestError::NoSuchPath)),
            ("http://localhost:8332/wallet/w", Err(RequestError::NoSuchPath)),
            ("/wallet/", named("")),
            ("/wallet/w", named("w")),
            ("/wallet/a%20b%2Fc", named("a b/c")),
            ("/wallet/a/b/", named("a/b/")),
            ("/wallet/a+b", named("a+b")),
            ("/wallet/%zz%4", named("%zz%4")),
            ("/wallet/a?b=%31", named("a?b=1")),
            ("/wallet/%C3%A9", named("é")),
            ("/wallet/../x", named("../x")),
            ("/wallet/a%ff", named("a\u{fffd}\0")),
            ("/wallet", Err(RequestError::NoSuchPath)),
            ("/?a=1", Err(RequestError::NoSuchPath)),
            ("//", Err(RequestError::NoSuchPath)),
            ("/Wallet/w", Err(RequestError::NoSuchPath)),
            ("*", Err(RequestError::NoSuchPath)),
            ("localhost:80", Err(RequestError::NoSuchPath)),
            (&*format!("/{}", "a".repeat(10_000)), Err(RequestError::PathTooLong)),
            (&*format!("/wallet/{}", "a".repeat(10_000)), Err(RequestError::PathTooLong)),
            (&*format!("/{}", "a".repeat(8_000)), Err(RequestError::NoSuchPath)),
        ];
        for (path, expected) in cases {
            assert_eq!(wallet(path), expected, "{path}");
        }
    }
}
