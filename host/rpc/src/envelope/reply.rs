//! Writing replies as a list of chunks. Large results are not copied.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use hyper::body::{Body, Frame, SizeHint};
use outrigger_values::RpcError;
use outrigger_values::RpcErrorCode;

use super::request::Dialect;
use crate::result::{ResultStream, ResultText};

/// A result of at least this many bytes is a chunk of its own. A smaller one is cheaper to copy.
const SPLICE_MIN_BYTES: usize = 16 * 1024;

/// Roughly how many bytes of a stream are in memory at a time.
const STREAM_HELD: u64 = 256 << 10;

/// The most bytes of a reply, apart from its result or error message and its id.
const FRAME_BYTES: usize = 64;

pub(crate) type Reply = Response<ReplyBody>;

pub(crate) fn empty(status: StatusCode) -> Reply {
    whole(status, Vec::new())
}

/// Plain text without a line end.
pub(crate) fn text(status: StatusCode, words: impl Into<Bytes>) -> Reply {
    of_type("text/plain", whole(status, vec![words.into().into()]))
}

/// The JSON in `writer`, with a final line end.
pub(super) fn json(status: StatusCode, mut writer: Writer) -> Reply {
    writer.text("\n");
    // Clients compare the whole value: no charset may follow.
    of_type("application/json", whole(status, writer.finish()))
}

/// A body without a content type. `Content-Length` comes from the body.
pub(crate) fn whole(status: StatusCode, pieces: Vec<ResultText>) -> Reply {
    let remaining = pieces.iter().map(ResultText::len).sum();
    let mut reply = Response::new(ReplyBody { pieces: pieces.into_iter(), stream: None, remaining });
    *reply.status_mut() = status;
    reply
}

fn of_type(content_type: &'static str, mut reply: Reply) -> Reply {
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

/// A body of known length: chunks in memory, and streams between them.
#[derive(Debug, Default)]
pub(crate) struct ReplyBody {
    pieces: std::vec::IntoIter<ResultText>,
    stream: Option<ResultStream>,
    remaining: u64,
}

impl ReplyBody {
    /// How many bytes of the reply are in memory: its chunks, and [`STREAM_HELD`] for each stream.
    pub(crate) fn held_bytes(&self) -> u64 {
        let held = |piece: &ResultText| match piece {
            ResultText::Bytes(bytes) => bytes.len() as u64,
            ResultText::Stream(_) => STREAM_HELD,
        };
        self.pieces.as_slice().iter().map(held).sum()
    }

    /// The next bytes of the current stream, if any.
    fn poll_stream(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let Some(stream) = &self.stream else { return Poll::Ready(None) };
        let data = std::task::ready!(stream.poll_data(context));
        if data.is_none() {
            self.stream = None;
        }
        Poll::Ready(data)
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        loop {
            let data = match std::task::ready!(self.poll_stream(context)) {
                Some(data) => data?,
                None => match self.pieces.next() {
                    None => return Poll::Ready(None),
                    Some(ResultText::Bytes(piece)) => piece,
                    Some(ResultText::Stream(stream)) => {
                        self.stream = Some(stream);
                        continue;
                    }
                },
            };
            self.remaining = self.remaining.saturating_sub(data.len() as u64);
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}

#[derive(Default)]
pub(super) struct Writer {
    pieces: Vec<ResultText>,
    open: Vec<u8>,
}

impl Writer {
    pub(super) fn text(&mut self, text: &str) {
        self.open.extend_from_slice(text.as_bytes());
    }

    fn result(&mut self, result: ResultText) {
        match result {
            ResultText::Bytes(bytes) if bytes.len() < SPLICE_MIN_BYTES => self.open.extend_from_slice(&bytes),
            _ => {
                self.close_piece();
                self.pieces.push(result);
            }
        }
    }

    /// Adds the reply to a request with this `dialect` and `id`.
    pub(super) fn reply(&mut self, dialect: Dialect, id: Option<&str>, outcome: Result<ResultText, RpcError>) {
        // Reserved once: growing step by step costs more than the writing.
        let copied = match &outcome {
            Ok(ResultText::Bytes(result)) if result.len() < SPLICE_MIN_BYTES => result.len(),
            Ok(_) => 0,
            Err(error) => error.message.len(),
        };
        self.open.reserve(FRAME_BYTES + copied + id.map_or(0, str::len));
        match (dialect, outcome) {
            (Dialect::V1, Ok(result)) => {
                self.text(r#"{"result":"#);
                self.result(result);
                self.text(r#","error":null"#);
            }
            (Dialect::V1, Err(error)) => {
                self.text(r#"{"result":null,"error":"#);
                self.error(&error);
            }
            (Dialect::V2, Ok(result)) => {
                self.text(r#"{"jsonrpc":"2.0","result":"#);
                self.result(result);
            }
            (Dialect::V2, Err(error)) => {
                self.text(r#"{"jsonrpc":"2.0","error":"#);
                self.error(&error);
            }
        }
        if let Some(id) = id {
            self.text(r#","id":"#);
            self.id(id);
        }
        self.text("}");
    }

    fn error(&mut self, error: &RpcError) {
        self.text(&format!(r#"{{"code":{},"message":"#, error.code.0));
        // Written directly, since it may be long. Writing to memory does not fail.
        let _ = serde_json::to_writer(&mut self.open, &error.message);
        self.text("}");
    }

    /// Adds an id as the client wrote it. Clients that read by line need it on one line, so line ends are removed: JSON
    /// text has them only between tokens.
    fn id(&mut self, id: &str) {
        self.open.extend(id.as_bytes().iter().filter(|byte| !matches!(byte, b'\n' | b'\r')));
    }

    fn close_piece(&mut self) {
        if !self.open.is_empty() {
            self.pieces.push(Bytes::from(std::mem::take(&mut self.open)).into());
        }
    }

    fn finish(mut self) -> Vec<ResultText> {
        self.close_piece();
        self.pieces
    }
}

/// The HTTP status of a single legacy request that failed with `code`.
pub(super) fn status_of(code: RpcErrorCode) -> StatusCode {
    match code {
        RpcErrorCode::INVALID_REQUEST => StatusCode::BAD_REQUEST,
        RpcErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
