//! Refusals of requests and connections.

use http::header::{ALLOW, CONNECTION, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};

use super::envelope::reply::{self, Reply};
use super::forwarded::BadForwarding;

/// Why a request is refused before its body is parsed, or a connection with its first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestError {
    TooManyConnections,
    /// Plain HTTP where TLS is spoken.
    Plain,
    Forwarding(BadForwarding),
    /// The client's address is not allowed (`-rpcallowip`). The answer is bitcoind's.
    Network,
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
    pub(super) fn into_response(self) -> Reply {
        let close = Some((CONNECTION, "close"));
        let (status, words, header) = match self {
            Self::TooManyConnections => (StatusCode::SERVICE_UNAVAILABLE, "Too many connections", close),
            Self::Plain => (StatusCode::BAD_REQUEST, "This port speaks TLS only: use https", close),
            Self::Forwarding(BadForwarding::Both) => {
                (StatusCode::BAD_REQUEST, "Forwarded and X-Forwarded-For cannot be combined", close)
            }
            Self::Forwarding(BadForwarding::Unreadable) => {
                (StatusCode::BAD_REQUEST, "The proxy's header does not name the client", close)
            }
            Self::Network => (StatusCode::FORBIDDEN, "", close),
            Self::Coding => (StatusCode::BAD_REQUEST, "Transfer-Encoding must be chunked alone", close),
            Self::PathTooLong => (StatusCode::BAD_REQUEST, "Path is too long", close),
            Self::NoSuchPath => (StatusCode::NOT_FOUND, "", None),
            // bitcoind's words.
            Self::NotPost => {
                (StatusCode::METHOD_NOT_ALLOWED, "JSONRPC server handles only POST requests", Some((ALLOW, "POST")))
            }
            Self::NotGet => {
                (StatusCode::METHOD_NOT_ALLOWED, "The REST interface handles only GET requests", Some((ALLOW, "GET")))
            }
            Self::Origin => (StatusCode::FORBIDDEN, "rpc.websocket_origins does not list the page's origin", None),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "", Some((WWW_AUTHENTICATE, r#"Basic realm="jsonrpc""#))),
            Self::TooManyAttempts => {
                let words = "Too many requests with wrong credentials from this address";
                (StatusCode::TOO_MANY_REQUESTS, words, close)
            }
            Self::BodyTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "Request body is too large", close),
            Self::BodyStalled => (StatusCode::REQUEST_TIMEOUT, "Request body did not arrive in time", close),
            Self::BodyBroken => (StatusCode::BAD_REQUEST, "Request body could not be read", close),
        };
        let mut response = if words.is_empty() { reply::empty(status) } else { reply::text(status, words) };
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}
