//! Parsing bodies: one request or a batch, each request in its own dialect.
//!
//! Members stay unparsed text. Of members with the same name the first counts, as in bitcoind. Checks run in bitcoind's
//! order, so that the first error is the same.

use std::borrow::Cow;
use std::fmt;

use outrigger_values::RpcError;
use outrigger_values::RpcErrorCode;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::scan::scan;
use crate::items::{Items, items};
use crate::limits::Limits;

/// bitcoind's message for parameters of another type.
const PARAMS_SHAPE: &str = "Params must be an array or object";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Legacy: always `result` and `error`, the `id` if the request had one, HTTP status by error code.
    V1,
    /// JSON-RPC 2.0: either `result` or `error`; without `id` no answer.
    V2,
}

impl Dialect {
    /// Whether a request with this id is not answered. In a batch, this holds for refused requests too, as in bitcoind.
    pub(super) fn is_notification(self, id: Option<&str>) -> bool {
        self == Self::V2 && id.is_none()
    }
}

#[derive(Debug)]
pub(super) struct Request<'a> {
    pub dialect: Dialect,
    /// The text of the id; `None` if absent.
    pub id: Option<&'a str>,
    pub method: Cow<'a, str>,
    /// An array or an object; `None` if absent or null.
    pub params: Option<&'a RawValue>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct RejectedRequest<'a> {
    pub dialect: Dialect,
    pub id: Option<&'a str>,
    pub error: RpcError,
}

impl RejectedRequest<'_> {
    /// An error for something that is not a request, so it has no dialect and its id is null.
    fn outright(error: RpcError) -> Self {
        Self { dialect: Dialect::V1, id: Some("null"), error }
    }
}

pub(super) type Element<'a> = Result<Request<'a>, RejectedRequest<'a>>;

#[derive(Debug)]
pub(super) enum Document<'a> {
    Single(Request<'a>),
    /// A batch. Each element is parsed on its own.
    Batch(Vec<Element<'a>>),
}

/// Reads a body. With `strict`, requests of a version other than 1.0 and 2.0 are refused.
pub(super) fn read_document<'a>(
    body: &'a [u8],
    limits: &Limits,
    strict: bool,
) -> Result<Document<'a>, RejectedRequest<'a>> {
    let parse_error = || RejectedRequest::outright(RpcError::new(RpcErrorCode::PARSE, "Parse error"));
    let text = str::from_utf8(body).map_err(|_| parse_error())?;
    scan(body, limits.max_nesting).ok_or_else(parse_error)?;
    match body.trim_ascii_start().first() {
        Some(b'{') => {
            let members: Members<'a> = serde_json::from_str(text).map_err(|_| parse_error())?;
            members.check(strict).map(Document::Single)
        }
        Some(b'[') => {
            let Items { kept, count } = items(text, limits.max_batch).map_err(|_| parse_error())?;
            if count > limits.max_batch {
                let found = format!("Batch of {count} requests is larger than the limit of {}", limits.max_batch);
                return Err(RejectedRequest::outright(RpcError::new(RpcErrorCode::INVALID_REQUEST, found)));
            }
            Ok(Document::Batch(kept.into_iter().map(|(_, element)| read_element(element, strict)).collect()))
        }
        _ => match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => Err(RejectedRequest::outright(RpcError::new(RpcErrorCode::PARSE, "Top-level object parse error"))),
            Err(_) => Err(parse_error()),
        },
    }
}

/// Checks parameters parsed elsewhere: an array or an object, within the nesting limit, without lone surrogates.
pub fn well_formed(params: &RawValue, limits: &Limits) -> Result<(), RpcError> {
    scan(params.get().as_bytes(), limits.max_nesting)
        .ok_or_else(|| RpcError::new(RpcErrorCode::PARSE, "Parse error"))?;
    let is_container = params.get().starts_with(['[', '{']);
    is_container.then_some(()).ok_or_else(|| RpcError::new(RpcErrorCode::INVALID_REQUEST, PARAMS_SHAPE))
}

fn read_element(element: &RawValue, strict: bool) -> Element<'_> {
    if !element.get().starts_with('{') {
        let error = RpcError::new(RpcErrorCode::INVALID_REQUEST, "Invalid Request object");
        return Err(RejectedRequest::outright(error));
    }
    let members: Members<'_> = serde_json::from_str(element.get())
        .map_err(|error| RejectedRequest::outright(RpcError::new(RpcErrorCode::PARSE, error.to_string())))?;
    members.check(strict)
}

/// The members of a request object that the host reads.
#[derive(Default)]
struct Members<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Name {
    Jsonrpc,
    Id,
    Method,
    Params,
    #[serde(other)]
    Other,
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a request object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Members::default();
                while let Some(name) = map.next_key::<Name>()? {
                    let slot = match name {
                        Name::Jsonrpc => &mut members.jsonrpc,
                        Name::Id => &mut members.id,
                        Name::Method => &mut members.method,
                        Name::Params => &mut members.params,
                        Name::Other => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    let value = map.next_value::<&'de RawValue>()?;
                    slot.get_or_insert(value);
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

impl<'a> Members<'a> {
    /// Checks the members in bitcoind's order: id, version, method, parameters.
    fn check(self, strict: bool) -> Result<Request<'a>, RejectedRequest<'a>> {
        let id = self.id.map(RawValue::get);
        let version = present(self.jsonrpc).map(string_value);
        let dialect = match &version {
            Some(Some(version)) if version == "2.0" => Dialect::V2,
            _ => Dialect::V1,
        };
        let rejected = |message: &str| RejectedRequest {
            dialect,
            id,
            error: RpcError::new(RpcErrorCode::INVALID_REQUEST, message),
        };
        match version {
            Some(None) if strict => return Err(rejected("jsonrpc field must be a string")),
            Some(Some(version)) if strict && version != "1.0" && version != "2.0" => {
                return Err(rejected("JSON-RPC version not supported"));
            }
            _ => {}
        }
        let method = match present(self.method) {
            Some(method) => string_value(method).ok_or_else(|| rejected("Method must be a string"))?,
            None => return Err(rejected("Missing method")),
        };
        let params = present(self.params);
        if params.is_some_and(|params| !params.get().starts_with(['[', '{'])) {
            return Err(rejected(PARAMS_SHAPE));
        }
        Ok(Request { dialect, id, method, params })
    }
}

/// The member, unless absent or null.
fn present(member: Option<&RawValue>) -> Option<&RawValue> {
    member.filter(|value| value.get() != "null")
}

fn string_value(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return serde_json::from_str::<String>(raw.get()).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}
