//! A node's reply.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, StatusCode};
use http_body_util::BodyExt;
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
    /// Reads the whole body. Fails with `Strange` if it is longer than `most` bytes.
    pub async fn collect(self, most: usize) -> Result<(StatusCode, Bytes), UpstreamError> {
        let Self { status, mut body, .. } = self;
        let mut first: Option<Bytes> = None;
        let mut whole = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(UpstreamError::Lost)?.into_data() else { continue };
            if data.len() > most.saturating_sub(whole.len() + first.as_ref().map_or(0, Bytes::len)) {
                return Err(UpstreamError::Strange(status));
            }
            match first.take() {
                // A body in one frame is not copied.
                None if whole.is_empty() => first = Some(data),
                None => whole.extend_from_slice(&data),
                Some(earlier) => {
                    let stated = body.length().and_then(|left| usize::try_from(left).ok()).unwrap_or(0).min(most);
                    whole.reserve(earlier.len() + data.len() + stated);
                    whole.extend_from_slice(&earlier);
                    whole.extend_from_slice(&data);
                }
            }
        }
        Ok((status, first.unwrap_or_else(|| whole.freeze())))
    }
}
