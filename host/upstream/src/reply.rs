//! A node's reply.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::error::UpstreamError;
use super::pool::{Connection, Pool};

pub struct Reply {
    pub status: StatusCode,
    pub content_type: Option<HeaderValue>,
    pub body: ReplyBody,
}

/// The body of a reply. Its end returns the connection to the pool; a drop before the end closes the connection.
pub struct ReplyBody {
    body: Incoming,
    connection: Option<(Connection, Arc<Pool>)>,
}

impl ReplyBody {
    pub(crate) fn new(body: Incoming, connection: Connection, pool: Arc<Pool>) -> Self {
        Self { body, connection: Some((connection, pool)) }
    }

    /// A body that does not return its connection to the pool.
    pub(crate) fn last(body: Incoming) -> Self {
        Self { body, connection: None }
    }

    /// The bytes still to come; `None` if the node did not state the length.
    pub fn length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    fn ended(&mut self) {
        if let Some((connection, pool)) = self.connection.take() {
            pool.give_back(connection);
        }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(context));
        match &frame {
            None => self.ended(),
            Some(Err(_)) => self.connection = None,
            Some(Ok(_)) if self.body.is_end_stream() => self.ended(),
            Some(Ok(_)) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Reply {
    /// Reads the whole body. A body in one frame is not copied. Fails with `Strange` if it is longer than `most` bytes.
    pub async fn collect(self, most: usize) -> Result<(StatusCode, Bytes), UpstreamError> {
        let Self { status, body, .. } = self;
        match Limited::new(body, most).collect().await {
            Ok(whole) => Ok((status, whole.to_bytes())),
            Err(error) => Err(error
                .downcast::<hyper::Error>()
                .map_or(UpstreamError::Strange(status), |error| UpstreamError::Lost(*error))),
        }
    }
}
