//! The node's REST interface: GET requests below `/rest/`.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderValue, StatusCode};

use super::result::ResultText;

/// The entry in a user's list of methods that allows REST requests.
pub const REST_ENTRY: &str = "@rest";

pub(super) const REST_PATH: &str = "/rest/";

#[derive(Debug)]
pub struct RestReply {
    pub status: StatusCode,
    pub content_type: Option<HeaderValue>,
    pub body: ResultText,
}

impl RestReply {
    pub fn text(status: StatusCode, words: &str) -> Self {
        let body = Bytes::copy_from_slice(words.as_bytes()).into();
        Self { status, content_type: Some(HeaderValue::from_static("text/plain")), body }
    }
}

/// Answers a REST request of a user that may make it, by its path with the query.
pub type Rest = Arc<dyn Fn(String) -> BoxFuture<'static, RestReply> + Send + Sync>;
