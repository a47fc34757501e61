//! Refusals of requests and connections.

use http::header::{ALLOW, CONNECTION, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};

use super::envelope::reply::{self, Reply};
use super::forwarded::BadForwarding;

/// bitcoind's answer to a verb other than POST.
const POST_ONLY: &str = "JSONRPC server handles only POST requests";

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
        let close = (CONNECTION, HeaderValue::from_static("close"));
        let bad_request = |words| reply::text(StatusCode::BAD_REQUEST, words);
        let (mut response, header) = match self {
            Self::TooManyConnections => {
                (reply::text(StatusCode::SERVICE_UNAVAILABLE, "Too many connections"), Some(close))
            }
            Self::Plain => (bad_request("This port speaks TLS only: use https"), Some(close)),
            Self::Forwarding(BadForwarding::Both) => {
                (bad_request("Forwarded and X-Forwarded-For cannot be combined"), Some(close))
            }
            Self::Forwarding(BadForwarding::Unreadable) => {
                (bad_request("The proxy's header does not name the client"), Some(close))
            }
            Self::Network => (reply::empty(StatusCode::FORBIDDEN), Some(close)),
            Self::Coding => (bad_request("Transfer-Encoding must be chunked alone"), Some(close)),
            Self::PathTooLong => (bad_request("Path is too long"), Some(close)),
            Self::NoSuchPath => (reply::empty(StatusCode::NOT_FOUND), None),
            Self::NotPost => (
                reply::text(StatusCode::METHOD_NOT_ALLOWED, POST_ONLY),
                Some((ALLOW, HeaderValue::from_static("POST"))),
            ),
            Self::NotGet => {
                let words = "The REST interface handles only GET requests";
                (reply::text(StatusCode::METHOD_NOT_ALLOWED, words), Some((ALLOW, HeaderValue::from_static("GET"))))
            }
            Self::Origin => {
                let words = "rpc.websocket_origins does not list the page's origin";
                (reply::text(StatusCode::FORBIDDEN, words), None)
            }
            Self::Unauthorized => (
                reply::empty(StatusCode::UNAUTHORIZED),
                Some((WWW_AUTHENTICATE, HeaderValue::from_static(r#"Basic realm="jsonrpc""#))),
            ),
            Self::TooManyAttempts => {
                let words = "Too many requests with wrong credentials from this address";
                (reply::text(StatusCode::TOO_MANY_REQUESTS, words), Some(close))
            }
            Self::BodyTooLarge => {
                (reply::text(StatusCode::PAYLOAD_TOO_LARGE, "Request body is too large"), Some(close))
            }
            Self::BodyStalled => {
                (reply::text(StatusCode::REQUEST_TIMEOUT, "Request body did not arrive in time"), Some(close))
            }
            Self::BodyBroken => (bad_request("Request body could not be read"), Some(close)),
        };
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}
