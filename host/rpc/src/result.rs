//! The JSON text of a result, from dispatch to socket: bytes, or a stream of known length for long results.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body, Frame};
use parking_lot::Mutex;

/// The JSON text of a result: one JSON value, on one line. Never empty.
#[derive(Clone, Debug)]
pub enum ResultText {
    Bytes(Bytes),
    /// Sent to the client as it is produced.
    Stream(ResultStream),
}

impl ResultText {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Stream(stream) => stream.length,
        }
    }

    /// The whole text; `None` if it is longer than `most` bytes, without reading any of it.
    pub async fn whole(self, most: usize) -> io::Result<Option<Bytes>> {
        if self.len() > most as u64 {
            return Ok(None);
        }
        let stream = match self {
            Self::Bytes(bytes) => return Ok(Some(bytes)),
            Self::Stream(stream) => stream,
        };
        let mut text = BytesMut::with_capacity(stream.length as usize);
        while let Some(data) = poll_fn(|context| stream.poll_data(context)).await {
            text.extend_from_slice(&data?);
        }
        if text.len() as u64 != stream.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Some(text.freeze()))
    }
}

impl From<Bytes> for ResultText {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

/// A result that is streamed. Clones share the stream.
#[derive(Clone)]
pub struct ResultStream {
    length: u64,
    body: Arc<Mutex<UnsyncBoxBody<Bytes, io::Error>>>,
}

impl ResultStream {
    /// A stream of `length` bytes. If the body fails or ends early, the connection is closed, since part of the answer
    /// was sent.
    pub fn new(length: u64, body: impl Body<Data = Bytes, Error = io::Error> + Send + 'static) -> Self {
        Self { length, body: Arc::new(Mutex::new(UnsyncBoxBody::new(body))) }
    }

    /// The next bytes; `None` at the end.
    pub(super) fn poll_data(&self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let mut body = self.body.lock();
        loop {
            let frame = std::task::ready!(Pin::new(&mut *body).poll_frame(context));
            return Poll::Ready(match frame.map(|frame| frame.map(Frame::into_data)) {
                None => None,
                Some(Ok(Ok(data))) => Some(Ok(data)),
                // Trailers are ignored.
                Some(Ok(Err(_))) => continue,
                Some(Err(error)) => Some(Err(error)),
            });
        }
    }
}

impl fmt::Debug for ResultStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResultStream({} bytes)", self.length)
    }
}
