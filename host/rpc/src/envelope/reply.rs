//! Writing replies: text in pieces, large results among them uncopied.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::StatusCode;
use hyper::body::{Body, Frame, SizeHint};
use outrigger_values::RpcError;
use outrigger_values::RpcErrorCode;

use super::request::Dialect;
use crate::result::{ResultStream, ResultText};

/// A result of at least this many bytes is a piece of its own; a smaller one is cheaper to copy.
const SPLICE_MIN_BYTES: usize = 16 * 1024;

/// About how much of a stream is in memory, in bytes.
const STREAM_HELD: u64 = 256 << 10;

/// Bytes of a reply besides its result, or error message, and id, at most.
const FRAME_BYTES: usize = 64;

/// What the content of a reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A line of JSON.
    Json,
    /// Words for people, without a line end.
    Text,
    /// Nothing.
    Empty,
}

/// The answer to an HTTP request.
#[derive(Debug)]
pub(crate) struct Reply {
    pub status: StatusCode,
    pub content: Content,
    pub body: ReplyBody,
}

impl Reply {
    /// A status without a body.
    pub(crate) fn empty(status: StatusCode) -> Self {
        Self { status, content: Content::Empty, body: ReplyBody::default() }
    }

    /// A status with words.
    pub(crate) fn text(status: StatusCode, words: &'static str) -> Self {
        let body = ReplyBody::from_pieces(vec![Bytes::from_static(words.as_bytes()).into()]);
        Self { status, content: Content::Text, body }
    }

    /// A status with a body whose type is said elsewhere.
    pub(crate) fn whole(status: StatusCode, body: ResultText) -> Self {
        Self { status, content: Content::Empty, body: ReplyBody::from_pieces(vec![body]) }
    }

    /// A status with the JSON in `writer`, to which the line end is added.
    pub(super) fn json(status: StatusCode, mut writer: Writer) -> Self {
        writer.text("\n");
        Self { status, content: Content::Json, body: ReplyBody::from_pieces(writer.finish()) }
    }
}

/// A body of known length: pieces that are there, and streams between them.
#[derive(Debug, Default)]
pub(crate) struct ReplyBody {
    pieces: std::vec::IntoIter<ResultText>,
    stream: Option<ResultStream>,
    remaining: u64,
}

impl ReplyBody {
    fn from_pieces(pieces: Vec<ResultText>) -> Self {
        let remaining = pieces.iter().map(ResultText::len).sum();
        Self { pieces: pieces.into_iter(), stream: None, remaining }
    }

    /// How much of it is in memory, in bytes: what is there, and of a stream about what the socket takes at a time.
    pub(crate) fn held_bytes(&self) -> u64 {
        let held = |piece: &ResultText| match piece {
            ResultText::Bytes(bytes) => bytes.len() as u64,
            ResultText::Stream(_) => STREAM_HELD,
        };
        self.pieces.as_slice().iter().map(held).sum()
    }

    /// The next bytes of the stream that is being sent, if there is one.
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

/// Collects the text of a reply.
#[derive(Default)]
pub(super) struct Writer {
    pieces: Vec<ResultText>,
    open: Vec<u8>,
}

impl Writer {
    /// Adds `text`.
    pub(super) fn text(&mut self, text: &str) {
        self.open.extend_from_slice(text.as_bytes());
    }

    /// Adds what a call answered.
    fn result(&mut self, result: ResultText) {
        match result {
            ResultText::Bytes(bytes) if bytes.len() < SPLICE_MIN_BYTES => self.open.extend_from_slice(&bytes),
            _ => {
                self.close_piece();
                self.pieces.push(result);
            }
        }
    }

    /// Adds the reply to a request of `dialect` and `id`, in that dialect.
    pub(super) fn reply(&mut self, dialect: Dialect, id: Option<&str>, outcome: Result<ResultText, RpcError>) {
        // At once: to grow step by step costs more than all the writing.
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
        // Written at once, since it may be long. Memory takes all text.
        let _ = serde_json::to_writer(&mut self.open, &error.message);
        self.text("}");
    }

    /// Adds an id as it came. Clients that read a reply line by line need
    /// it on one line, so an id that was spread over several is drawn together: a JSON text holds
    /// line ends only between its tokens.
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

/// The status of a single request of the 1.x dialect that failed with `code`.
pub(super) fn status_of(code: RpcErrorCode) -> StatusCode {
    match code {
        RpcErrorCode::INVALID_REQUEST => StatusCode::BAD_REQUEST,
        RpcErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
