//! Refusals of requests and connections, and replies as HTTP responses.

use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};

use super::envelope::{Content, Reply, ReplyBody};
use super::forwarded::BadForwarding;

/// bitcoind's answer to a verb other than POST.
const POST_ONLY: &str = "JSONRPC server handles only POST requests";

/// Why a request is refused before its body is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestError {
    Forwarding(BadForwarding),
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
    pub(super) fn into_response(self) -> Response<ReplyBody> {
        let close = (CONNECTION, HeaderValue::from_static("close"));
        let bad_request = |words| Reply::text(StatusCode::BAD_REQUEST, words);
        let (reply, header) = match self {
            Self::Forwarding(BadForwarding::Both) => {
                (bad_request("Forwarded and X-Forwarded-For cannot be combined"), Some(close))
            }
            Self::Forwarding(BadForwarding::Unreadable) => {
                (bad_request("The proxy's header does not name the client"), Some(close))
            }
            Self::Network => (Reply::empty(StatusCode::FORBIDDEN), Some(close)),
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
    /// Plain HTTP where TLS is spoken.
    Plain,
}

impl ConnectionRefusal {
    /// The answer to the first request; it closes the connection.
    pub(super) fn into_response(self) -> Response<ReplyBody> {
        let mut response = into_response(match self {
            Self::TooMany => Reply::text(StatusCode::SERVICE_UNAVAILABLE, "Too many connections"),
            Self::Network => Reply::empty(StatusCode::FORBIDDEN),
            Self::Plain => Reply::text(StatusCode::BAD_REQUEST, "This port speaks TLS only: use https"),
        });
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

/// Adds the headers. `Content-Length` comes from the body.
pub(super) fn into_response(reply: Reply) -> Response<ReplyBody> {
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
