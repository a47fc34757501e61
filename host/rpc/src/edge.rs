//! HTTP as bitcoind's clients expect it: paths, verbs, credentials, bodies and their limits.
//!
//! The order of the checks is bitcoind's: framing (400), path (400, 404), verb (405), credentials (401), and only then
//! the body (413).

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use http::header::{ALLOW, AUTHORIZATION, CONNECTION, CONTENT_TYPE, EXPECT};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use hyper::body::Body;
use percent_encoding::percent_decode_str;
use tokio::time::sleep;

use outrigger_base::busy_poll::BusyPoll;

use super::admission::Admission;
use super::attempts::Attempts;
use super::auth::{AuthenticationFailure, Authenticator, Caller};
use super::body::{discard, is_chunked_alone, read_body};
use super::client::Client;
use super::dispatch::Origin;
use super::envelope;
use super::envelope::reply::{self, Reply};
use super::figures::EdgeFigures;
use super::forwarded::client_of;
use super::gateway::RpcService;
use super::health::{Readiness, health};
use super::limits::Limits;
use super::pages::{Page, page};
use super::peers::{Access, Peer};
use super::refusal::RequestError;
use super::rest::{REST_ENTRY, REST_PATH, Rest};
use super::subscriptions::Tips;
use super::threads::Workers;
use super::tls::Tls;
use super::unread::Unread;
use super::websocket;

/// The longest path, in bytes: bitcoind's limit for a head (`MAX_HEADERS_SIZE`).
const MAX_PATH_BYTES: usize = 8192;

#[derive(Default)]
pub struct ServerOptions {
    pub access: Access,
    /// The certificate. With one, the server speaks TLS only, except on Unix sockets.
    pub tls: Option<Arc<Tls>>,
    /// Without it, `/rest/` does not exist. `true`: it needs no credentials.
    pub rest: Option<(Rest, bool)>,
    /// The newest block. Without it, subscriptions report no blocks.
    pub tips: Option<Tips>,
    /// The answer of `/readyz`. Without it, the host is not ready.
    pub readiness: Option<Readiness>,
    pub pages: &'static [Page],
    /// The threads that serve connections; by default, the threads of the accepting runtime.
    pub workers: Workers,
}

pub(super) struct Edge<S> {
    service: Arc<S>,
    pub admission: Admission,
    pub limits: Limits,
    pub options: ServerOptions,
    pub busy_poll: Arc<BusyPoll>,
    pub attempts: Attempts,
    pub unread: Arc<Unread>,
    pub figures: Arc<EdgeFigures>,
}

impl<S: RpcService> Edge<S> {
    pub(super) fn new(service: S, auth: Arc<Authenticator>, limits: Limits, mut options: ServerOptions) -> Self {
        let (busy_poll, attempts) = (BusyPoll::new(limits.busy_poll), Attempts::new(limits.wrong_credentials_delay));
        let figures = Arc::<EdgeFigures>::default();
        let unread = Unread::new(limits.max_unread_bytes, figures.clone());
        let admission = Admission::of(auth, std::mem::take(&mut options.access));
        Self { service: Arc::new(service), admission, limits, options, busy_poll, attempts, unread, figures }
    }

    fn health(&self, head: &Parts) -> Option<Reply> {
        let path = Some(head.uri.path()).filter(|_| head.uri.authority().is_none())?;
        let is_ready = || self.options.readiness.as_ref().is_some_and(|is_ready| is_ready());
        let status = health(&head.method, path, is_ready)?;
        let mut response = reply::empty(status);
        if status == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        Some(response)
    }

    pub(super) async fn handle<B>(&self, request: Request<B>, client: &Arc<Client>) -> Reply
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

    async fn answer<B>(&self, request: Request<B>, client: &Arc<Client>, is_chunked: bool) -> Reply
    where
        B: Body<Data = Bytes>,
    {
        let (head, body) = request.into_parts();
        let mut body = pin!(body);
        let admitted = match is_chunked {
            true if !is_chunked_alone(&head.headers) => Err(RequestError::Coding),
            _ => match self.client_of(&head.headers, client) {
                Ok(peer) => {
                    let page = || page(&head, self.options.pages);
                    if let Some(response) = self.health(&head).or_else(page) {
                        discard(body).await;
                        return response;
                    }
                    self.admit(&head, client, peer).await
                }
                Err(refusal) => Err(refusal),
            },
        };
        let (caller, wallet) = match admitted {
            Ok((caller, Target::Calls(wallet))) => (caller, wallet),
            Ok((caller, Target::WebSocket(wallet))) => {
                let (origin, tips) = (caller.origin(wallet), self.options.tips.clone());
                let accepted = websocket::accept(&self.service, &self.limits, client, origin, head, tips);
                // Boxed, so that not every connection reserves room for it.
                return Box::pin(accepted).await;
            }
            Ok((caller, Target::Rest(rest))) => {
                discard(body).await;
                // Boxed, so that not every connection reserves room for it.
                return Box::pin(get(rest, &caller.origin, &head.uri)).await;
            }
            Err(refusal) => {
                if !head.headers.contains_key(EXPECT) {
                    discard(body).await;
                }
                return refusal.into_response();
            }
        };
        if body.size_hint().lower() > self.limits.max_body_bytes as u64 {
            return RequestError::BodyTooLarge.into_response();
        }
        match read_body(&mut body, &self.limits).await {
            Ok(body) => envelope::answer(&*self.service, caller.origin(wallet), body, &self.limits).await,
            Err(refusal) => refusal.into_response(),
        }
    }

    /// Checks the head of a request of `peer`. Returns the user and the target.
    async fn admit(
        &self,
        head: &Parts,
        client: &Arc<Client>,
        peer: Peer,
    ) -> Result<(Caller, Target<'_>), RequestError> {
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
        let identified = self.admission.identified(client, peer).map_err(|AuthenticationFailure| {
            tracing::warn!(%peer, "RPC request with a certificate that names no user");
            RequestError::Unauthorized
        })?;
        let Some(credentials) = head.headers.get(AUTHORIZATION) else {
            let caller = match (identified, &self.options.rest) {
                // A browser presents the user's certificate for requests from any site's pages.
                (Some(_), _) if websocket::is_cross_site(&head.headers, &self.limits.websocket_origins) => {
                    return Err(RequestError::Origin);
                }
                (Some(caller), _) => {
                    client.link.authenticate();
                    caller
                }
                (None, Some((_, true))) if matches!(target, Target::Rest(_)) => {
                    client.activity.needs_no_credentials();
                    Caller::unrestricted("")
                }
                (None, _) => return Err(RequestError::Unauthorized),
            };
            return Ok((caller.on(client.clone(), peer), target));
        };
        if !self.attempts.is_quiet() && !client.has_shown(credentials, peer) {
            self.attempts.wait_for_turn(peer).await.ok_or_else(|| {
                self.figures.refused_attempts.fetch_add(1, Ordering::Relaxed);
                RequestError::TooManyAttempts
            })?;
        }
        match self.admission.admit(client, credentials, peer) {
            Ok(caller) => Ok((caller.on(client.clone(), peer), target)),
            Err(AuthenticationFailure) => {
                // Programs that watch the log read the client's address from this field.
                tracing::warn!(%peer, "RPC request with wrong credentials");
                self.figures.wrong_credentials.fetch_add(1, Ordering::Relaxed);
                sleep(self.attempts.wrong(peer, Instant::now())).await;
                Err(RequestError::Unauthorized)
            }
        }
    }

    /// The client of a request. Behind a trusted proxy, the client's network must be allowed too.
    fn client_of(&self, headers: &HeaderMap, client: &Client) -> Result<Peer, RequestError> {
        let access = self.admission.access();
        // If the PROXY header names no client, the client itself may have written the HTTP headers.
        let peer = match client.link.hides_client() {
            true => client.peer(),
            false => client_of(headers, client.peer(), &access).map_err(RequestError::Forwarding)?,
        };
        if peer != client.peer() && !access.allows(peer) {
            tracing::warn!(%peer, "an RPC client of a network that is not allowed");
            return Err(RequestError::Network);
        }
        Ok(peer)
    }

    fn target_of(&self, uri: &Uri) -> Result<Target<'_>, RequestError> {
        match &self.options.rest {
            Some((rest, _)) if uri.authority().is_none() && path_of(uri)?.starts_with(REST_PATH) => {
                Ok(Target::Rest(rest))
            }
            _ => wallet_of(uri).map(Target::Calls),
        }
    }
}

/// The target of a request, with the wallet in its path.
enum Target<'e> {
    /// JSON-RPC over HTTP.
    Calls(Option<Arc<str>>),
    /// JSON-RPC over a WebSocket.
    WebSocket(Option<Arc<str>>),
    Rest(&'e Rest),
}

async fn get(rest: &Rest, origin: &Origin, uri: &Uri) -> Reply {
    if !origin.may_call(REST_ENTRY) {
        return envelope::forbidden(origin, REST_ENTRY);
    }
    let answer = rest(uri.path_and_query().map_or_else(String::new, |path| path.as_str().to_owned())).await;
    let mut response = reply::whole(answer.status, vec![answer.body]);
    if let Some(content_type) = answer.content_type {
        response.headers_mut().insert(CONTENT_TYPE, content_type);
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
    // No wallet name has control characters. A name that is not UTF-8 gets one, so that only a call that needs the
    // wallet fails.
    let name =
        String::from_utf8(name).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned() + "\0");
    Ok(Some(Arc::from(name)))
}

/// The path with its query, unless it is too long.
fn path_of(uri: &Uri) -> Result<&str, RequestError> {
    let path = uri.path_and_query().map_or("", |path| path.as_str());
    if path.len() > MAX_PATH_BYTES { Err(RequestError::PathTooLong) } else { Ok(path) }
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
