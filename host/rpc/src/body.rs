//! The bodies of requests, within their limits.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::TRANSFER_ENCODING;
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::time::timeout;

use super::limits::Limits;
use super::refusal::RequestError;

/// The most bytes of a refused request's body that are read and dropped so that its connection stays usable. A longer
/// body closes the connection.
const DISCARD_MAX_BYTES: u64 = 64 * 1024;

/// How long the answer to a refused request waits for the body.
const DISCARD_TIMEOUT: Duration = Duration::from_millis(250);

/// The most bytes allocated by a body's declared length. A longer body's buffer grows as it arrives.
const BODY_RESERVE_MAX: usize = 1024 * 1024;

/// Whether `chunked` is the only transfer coding. No other is decoded.
pub(super) fn is_chunked_alone(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let first = codings.next().is_some_and(|coding| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"));
    first && codings.next().is_none()
}

/// Reads the whole body. A single frame is not copied. Bodies may hold keys: the program's allocator wipes freed memory.
pub(super) async fn read_body<B>(
    mut body: impl Body<Data = Bytes, Error = B> + Unpin,
    limits: &Limits,
) -> Result<Bytes, RequestError> {
    let Some(first) = next_data(&mut body, limits.body_stall_timeout).await? else {
        return Ok(Bytes::new());
    };
    if first.len() > limits.max_body_bytes {
        return Err(RequestError::BodyTooLarge);
    }
    if body.is_end_stream() {
        return Ok(first);
    }
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut whole = BytesMut::with_capacity(first.len() + announced.min(BODY_RESERVE_MAX));
    whole.extend_from_slice(&first);
    drop(first);
    while let Some(data) = next_data(&mut body, limits.body_stall_timeout).await? {
        if data.len() > limits.max_body_bytes.saturating_sub(whole.len()) {
            return Err(RequestError::BodyTooLarge);
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

/// The next bytes of `body`; `None` at its end.
async fn next_data(
    body: &mut (impl Body<Data = Bytes> + Unpin),
    stall_timeout: Duration,
) -> Result<Option<Bytes>, RequestError> {
    loop {
        let frame = timeout(stall_timeout, body.frame()).await.map_err(|_| RequestError::BodyStalled)?;
        match frame {
            None => return Ok(None),
            Some(Err(_)) => return Err(RequestError::BodyBroken),
            // Trailers are ignored.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// Reads and drops a refused request's body, within limits. If the connection is closed while the client still sends,
/// the client may lose the answer. Beyond the limits this is accepted.
pub(super) async fn discard(mut body: impl Body<Data = Bytes> + Unpin) {
    if body.size_hint().lower() > DISCARD_MAX_BYTES {
        return;
    }
    let reading = async {
        let mut discarded = 0_u64;
        while discarded <= DISCARD_MAX_BYTES {
            match body.frame().await {
                Some(Ok(frame)) => {
                    discarded += frame.data_ref().map_or(0, |data| data.len() as u64);
                }
                _ => return,
            }
        }
    };
    // A timeout does not change the answer.
    let _in_time = timeout(DISCARD_TIMEOUT, reading).await;
}
