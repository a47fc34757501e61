//! The node's REST interface: GET requests below `/rest/`, which are answered by something else than JSON-RPC.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderValue, StatusCode};

use super::result::ResultText;

/// What a user's list of methods has to name for these requests.
pub const REST_ENTRY: &str = "@rest";

/// How their paths begin.
pub(super) const REST_PATH: &str = "/rest/";

/// The answer to such a request.
#[derive(Debug)]
pub struct RestReply {
    /// Its status.
    pub status: StatusCode,
    /// What its body is.
    pub content_type: Option<HeaderValue>,
    /// Its body, which may be a stream.
    pub body: ResultText,
}

impl RestReply {
    /// A status with words.
    pub fn text(status: StatusCode, words: &str) -> Self {
        let body = Bytes::copy_from_slice(words.as_bytes()).into();
        Self { status, content_type: Some(HeaderValue::from_static("text/plain")), body }
    }
}

/// Answers these requests, of users that may make them.
pub trait Rest: Send + Sync {
    /// Answers a request for a path with its query.
    fn get(&self, path: String) -> Pin<Box<dyn Future<Output = RestReply> + Send>>;
}
