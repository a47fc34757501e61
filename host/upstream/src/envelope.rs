//! Encodes a call for bitcoind, and slices the result out of the reply.
//!
//! Requests have no `jsonrpc` member, so that all versions of bitcoind reply in the same form: the result is between a
//! fixed prefix and suffix, and need not be parsed. A reply with different whitespace or member order is parsed.

use bytes::{BufMut, Bytes, BytesMut};
use http::StatusCode;
use outrigger_values::{RpcError, RpcErrorCode};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

pub const PREFIX: &[u8] = br#"{"result":"#;

pub const SUFFIX: &[u8] = b",\"error\":null,\"id\":1}\n";

/// Encodes a call. `params` is the JSON text of an array or object.
pub fn request(method: &str, params: &[u8]) -> Bytes {
    let mut body = BytesMut::with_capacity(request_length(method, params));
    put_request(&mut body, method, params);
    body.freeze()
}

/// Encodes several calls as one request. bitcoind answers them in order.
pub fn batch_request<'c>(calls: impl Iterator<Item = (&'c str, &'c [u8])> + Clone) -> Bytes {
    let length = calls.clone().map(|(method, params)| 1 + request_length(method, params)).sum();
    let mut body = BytesMut::with_capacity(length);
    let mut separator = b'[';
    for (method, params) in calls {
        body.put_u8(separator);
        put_request(&mut body, method, params);
        separator = b',';
    }
    body.put_u8(b']');
    body.freeze()
}

/// The capacity that a request needs, in bytes, if JSON escapes nothing in the method's name.
fn request_length(method: &str, params: &[u8]) -> usize {
    method.len() + params.len() + 32
}

fn put_request(body: &mut BytesMut, method: &str, params: &[u8]) {
    body.put_slice(br#"{"id":1,"method":"#);
    // Writing to memory does not fail.
    serde_json::to_writer((&mut *body).writer(), method).unwrap_or_default();
    body.put_slice(br#","params":"#);
    body.put_slice(params);
    body.put_slice(b"}");
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    Result(Bytes),
    Error(RpcError),
    /// The reply does not have bitcoind's form.
    Strange,
}

#[derive(Deserialize)]
struct AnyReply<'b> {
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'b RawValue>,
    error: Option<ErrorObject>,
}

/// Distinguishes a null member from a missing one.
fn present<'b, D: Deserializer<'b>>(deserializer: D) -> Result<Option<&'b RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
struct ErrorObject {
    code: i32,
    message: String,
}

impl From<ErrorObject> for RpcError {
    fn from(error: ErrorObject) -> Self {
        Self::new(RpcErrorCode(error.code), error.message)
    }
}

pub fn read_reply(status: StatusCode, body: &Bytes) -> Outcome {
    if status == StatusCode::OK && is_plain(body) {
        let end = body.len() - SUFFIX.len();
        return if end > PREFIX.len() { Outcome::Result(body.slice(PREFIX.len()..end)) } else { Outcome::Strange };
    }
    match serde_json::from_slice::<AnyReply<'_>>(body) {
        Ok(AnyReply { error: Some(error), .. }) => Outcome::Error(error.into()),
        Ok(AnyReply { result: Some(result), .. }) if status == StatusCode::OK => {
            Outcome::Result(body.slice_ref(result.get().as_bytes()))
        }
        _ => Outcome::Strange,
    }
}

/// The answers in a reply to a batch of `count` calls; `None` for an invalid reply.
pub fn read_batch(reply: &Bytes, count: usize) -> Option<Vec<Result<Bytes, RpcError>>> {
    let replies: Vec<AnyReply<'_>> = serde_json::from_slice(reply).ok()?;
    let answer = |AnyReply { result, error }: AnyReply<'_>| match (error, result) {
        (Some(error), _) => Err(error.into()),
        // A slice of the reply, without a copy.
        (None, Some(result)) => Ok(reply.slice_ref(result.get().as_bytes())),
        (None, None) => Ok(Bytes::from_static(b"null")),
    };
    (replies.len() == count).then(|| replies.into_iter().map(answer).collect())
}

/// Whether a reply has bitcoind's exact form with a result.
pub fn is_plain(body: &[u8]) -> bool {
    body.starts_with(PREFIX) && body.ends_with(SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_results_errors_or_strange() {
        let read = |status: u16, text: &'static str| {
            read_reply(StatusCode::from_u16(status).unwrap(), &Bytes::from_static(text.as_bytes()))
        };
        assert_eq!(read(200, "{\"result\":[1,\"é\"],\"error\":null,\"id\":1}\n"), Outcome::Result("[1,\"é\"]".into()));
        let error = r#"{"result":null,"error":{"code":-8,"message":"Block height out of range"},"id":1}"#;
        assert_eq!(read(500, error), Outcome::Error(RpcError::new(RpcErrorCode(-8), "Block height out of range")));
        for spaced in [
            "{\"result\":[1,\"é\"],\"error\":null,\"id\":1}",
            " { \"error\": null,\r\n \"id\": 1, \"result\": [1,\"é\"] }\r\n",
        ] {
            assert_eq!(read(200, spaced), Outcome::Result("[1,\"é\"]".into()), "{spaced}");
        }
        assert_eq!(read(200, r#"{"result": null, "error": null}"#), Outcome::Result("null".into()));
        for strange in ["", "<html>", "{\"result\":,\"error\":null,\"id\":1}\n", "{\"error\":null}"] {
            assert_eq!(read(200, strange), Outcome::Strange, "{strange}");
        }
    }

    #[test]
    fn a_batch_has_an_answer_for_each_call() {
        let calls = [("a", &b"[1]"[..]), ("b", b"{}")];
        let body = r#"[{"id":1,"method":"a","params":[1]},{"id":1,"method":"b","params":{}}]"#;
        assert_eq!(batch_request(calls.into_iter()), body);
        let reply =
            r#"[{"result": [2],"error":null,"id":1},{"result":null,"error":{"code":-5,"message":"x"},"id":1},{}]"#;
        let reply = Bytes::from_static(reply.as_bytes());
        let refused = RpcError::new(RpcErrorCode(-5), "x");
        assert_eq!(read_batch(&reply, 3).unwrap(), [Ok("[2]".into()), Err(refused), Ok("null".into())]);
        assert!(read_batch(&reply, 2).is_none() && read_batch(&"{}".into(), 1).is_none());
    }

    #[test]
    fn request_quotes_the_method() {
        assert_eq!(request("a\"b", b"[1]"), Bytes::from_static(br#"{"id":1,"method":"a\"b","params":[1]}"#));
    }
}
