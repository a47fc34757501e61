//! Converts messages to and from JSON, for programs not written in Rust and for services that only use JSON.
//!
//! There is no code per type: the [`Shape`] of a message drives both conversions.
//!
//! The host's allocator wipes JSON text and [`Value`]s when they are freed, since they may contain secrets.
//!
#![doc = include_str!("json/form.md")]

mod page;
mod schema;

use bitcoin::hex::{DisplayHex, FromHex};
use outrigger_abi::{JsonCode, OwnedBytes, RawService, Response, STATUS_OK};
use outrigger_values::RpcError;
use serde_json::{Map, Value, json};

pub use page::page;
pub use schema::schema;

use crate::events::Event;
use crate::wire::{FieldShape, FunctionShape, Reader, Shape, VariantShape, Wire, WireError, Writer, count, to_bytes};
use crate::{ErrorKind, PROVIDED, SERVICES, Scope, ServiceError, transport};

const HASH_LEN: usize = 32;

/// Why JSON is not a message of the expected type.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{path}{}{problem}", if path.is_empty() { "" } else { ": " })]
pub struct JsonError {
    /// The path of the member, for example `requests[3].sighash`; empty for the whole message.
    pub path: String,
    /// What is wrong with it. It never contains the value, which may be secret.
    pub problem: String,
}

impl JsonError {
    fn new(problem: impl Into<String>) -> Self {
        Self { path: String::new(), problem: problem.into() }
    }

    fn within(self, outer: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        Self { path: format!("{outer}{dot}{}", self.path), ..self }
    }
}

impl From<JsonError> for ServiceError {
    fn from(error: JsonError) -> Self {
        Self::new(ErrorKind::Malformed, error.to_string())
    }
}

impl From<WireError> for JsonError {
    fn from(error: WireError) -> Self {
        Self::new(error.to_string())
    }
}

/// Converts a message to JSON.
///
/// # Errors
/// If the message contains a damaged [`Encoded`](crate::wire::Encoded) message.
pub fn to_json<T: Wire>(message: &T) -> Result<Value, WireError> {
    read(T::SHAPE, &mut Reader::new(&to_bytes(message)))
}

/// Reads a message from JSON. Ignores unknown members.
///
/// # Errors
/// If a member is missing or has a value of another type.
pub fn from_json<T: Wire>(json: &Value) -> Result<T, JsonError> {
    let mut out = Writer::new(T::SECRET);
    put(T::SHAPE, json, false, &mut out)?;
    Ok(T::from_message(out.into_message())?)
}

/// Calls a function of a service with its named arguments as a JSON object. `service` is the table of the service `name`.
///
/// # Errors
/// `Malformed` for invalid arguments, `Unsupported` for an unknown function, and the function's own errors.
pub fn ask(service: &RawService, name: &str, function: &str, scope: Scope, request: &Value) -> crate::Result<Value> {
    let unknown = || ServiceError::new(ErrorKind::Unsupported, format!("There is no function {function} of {name}"));
    let functions = SERVICES.iter().find(|known| known.name == name).ok_or_else(unknown)?.functions.iter();
    let (index, shape) = functions.enumerate().find(|(_, known)| known.name == function).ok_or_else(unknown)?;
    let mut message = Writer::new(true);
    put_fields(shape.request, request, true, &mut message)?;
    let response = transport::call(name, service, index, scope, &message.into_message())?;
    read(shape.response, &mut Reader::new(&response)).map_err(transport::damaged)
}

/// Converts the request to a function of a service that plugins provide, for example `policy/1.judge`, to JSON.
///
/// # Errors
/// `Unsupported` for an unknown function, `Malformed` for bytes that are not its message.
pub fn provided_request(method: &str, message: &[u8]) -> crate::Result<Value> {
    let mut reader = Reader::new(message);
    let mut fields = provided(method)?.request.iter();
    fields.next().map_or(Ok(Value::Null), |field| Ok(read(field.shape, &mut reader)?))
}

/// Converts the JSON answer of such a function to its message.
///
/// # Errors
/// As for [`provided_request`].
pub fn provided_response(method: &str, json: &Value) -> crate::Result<Vec<u8>> {
    let mut out = Writer::new(false);
    put(provided(method)?.response, json, false, &mut out)?;
    Ok(out.into_message().to_vec())
}

fn provided(method: &str) -> crate::Result<&'static FunctionShape> {
    let (service, name) = method.rsplit_once('.').unwrap_or_default();
    let functions = PROVIDED.iter().filter(|known| known.name == service).flat_map(|known| known.functions);
    let unknown = || ServiceError::new(ErrorKind::Unsupported, format!("There is no function {method}"));
    functions.into_iter().find(|known| known.name == name).ok_or_else(unknown)
}

/// Implements `ask_json` and `event_json` of the host's table.
pub struct Json;

impl JsonCode for Json {
    fn ask(service: &RawService, name: &[u8], function: &[u8], scope: u64, request: &[u8]) -> Response {
        let malformed = |reason: String| ServiceError::new(ErrorKind::Malformed, reason);
        let text = |bytes| str::from_utf8(bytes).map_err(|error| malformed(error.to_string()));
        let asked = || {
            let request = serde_json::from_slice(request).map_err(|error| malformed(error.to_string()))?;
            ask(service, text(name)?, text(function)?, Scope(scope), &request)
        };
        response(asked())
    }

    fn event(event: &[u8]) -> Response {
        response(read(Event::SHAPE, &mut Reader::new(event)).map_err(ServiceError::from))
    }
}

/// The result, or the error with bitcoind's code and message.
fn response(answer: crate::Result<Value>) -> Response {
    let (status, json) = match answer {
        Ok(json) => (STATUS_OK, json),
        Err(error) => {
            let RpcError { code, message, .. } = RpcError::from(error.clone());
            (error.kind as i32, json!({"code": code.0, "message": message}))
        }
    };
    Response { status, bytes: OwnedBytes::secret(json.to_string().into_bytes()) }
}

/// Converts a name to snake case: `P2shSegwit` to `p2sh_segwit`.
pub fn snake(name: &str) -> String {
    let mut out = String::new();
    let mut previous = '_';
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && previous != '_' && !previous.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
        previous = letter;
    }
    out
}

/// Reads the next value of a message and converts it to JSON.
fn read(shape: &Shape, reader: &mut Reader<'_>) -> Result<Value, WireError> {
    Ok(match shape {
        Shape::Bool => bool::get(reader)?.into(),
        Shape::U8 => u8::get(reader)?.into(),
        Shape::U16 => u16::get(reader)?.into(),
        Shape::U32 => u32::get(reader)?.into(),
        Shape::U64 => u64::get(reader)?.into(),
        Shape::I32 => i32::get(reader)?.into(),
        Shape::I64 => i64::get(reader)?.into(),
        Shape::Array(len) => reader.take(*len)?.to_lower_hex_string().into(),
        Shape::Hash => {
            let mut hash: [u8; HASH_LEN] = reader.array()?;
            hash.reverse();
            hash.to_lower_hex_string().into()
        }
        Shape::Text | Shape::Secret => String::get(reader)?.into(),
        Shape::ByteString => reader.byte_string()?.to_lower_hex_string().into(),
        Shape::Option(inner) => match bool::get(reader)? {
            true => read(inner, reader)?,
            false => Value::Null,
        },
        Shape::List(item) => {
            let (count, mut items) = reader.begin_list()?;
            for _ in 0..count {
                items.push(read(item, reader)?);
            }
            Value::Array(items)
        }
        Shape::Framed(inner) => read(inner, &mut Reader::new(reader.byte_string()?))?,
        Shape::Tuple([]) => Value::Null,
        Shape::Tuple(items) => items.iter().map(|item| read(item, reader)).collect::<Result<_, _>>()?,
        Shape::Struct(known) => Value::Object(read_fields(known.fields, reader)?),
        Shape::Enum(known) => {
            let error = reader.error();
            let tag = u8::get(reader)?;
            let variant = known.variants.iter().find(|variant| variant.tag == tag).ok_or(error)?;
            match variant.fields {
                [] => snake(variant.name).into(),
                fields => Map::from_iter([(snake(variant.name), read_fields(fields, reader)?.into())]).into(),
            }
        }
    })
}

fn read_fields(fields: &[FieldShape], reader: &mut Reader<'_>) -> Result<Map<String, Value>, WireError> {
    let mut members = Map::new();
    for field in fields {
        // A message of an older writer ends here.
        if field.since > 0 && reader.is_empty() {
            break;
        }
        members.insert(field.name.to_owned(), read(field.shape, reader)?);
    }
    Ok(members)
}

/// Encodes JSON and appends it to a message. `strict` refuses unknown members.
fn put(shape: &Shape, json: &Value, strict: bool, out: &mut Writer) -> Result<(), JsonError> {
    match shape {
        Shape::Bool => json.as_bool().ok_or_else(|| expected("true or false"))?.put(out),
        Shape::U8 => unsigned::<u8>(json)?.put(out),
        Shape::U16 => unsigned::<u16>(json)?.put(out),
        Shape::U32 => unsigned::<u32>(json)?.put(out),
        Shape::U64 => unsigned::<u64>(json)?.put(out),
        Shape::I32 => signed::<i32>(json)?.put(out),
        Shape::I64 => signed::<i64>(json)?.put(out),
        Shape::Array(len) => out.extend_from_slice(&bytes(json, Some(*len))?),
        Shape::Hash => {
            let hash = bytes(json, Some(HASH_LEN))?;
            hash.iter().rev().for_each(|byte| out.push(*byte));
        }
        Shape::Text | Shape::Secret => out.put_byte_string(text(json)?.as_bytes()),
        Shape::ByteString => out.put_byte_string(&bytes(json, None)?),
        Shape::Option(_) if json.is_null() => false.put(out),
        Shape::Option(inner) => {
            true.put(out);
            put(inner, json, strict, out)?;
        }
        Shape::List(item) => {
            let items = array(json)?;
            out.extend_from_slice(&count(items.len()));
            put_items(items.iter().map(|json| (*item, json)), strict, out)?;
        }
        Shape::Framed(inner) => out.put_framed(|out| put(inner, json, strict, out))?,
        Shape::Tuple([]) if json.is_null() => {}
        Shape::Tuple(items) => {
            let values = array(json)?;
            if items.is_empty() || values.len() != items.len() {
                return Err(expected(&format!("{} items", items.len())));
            }
            put_items(items.iter().copied().zip(values), strict, out)?;
        }
        Shape::Struct(known) => put_fields(known.fields, json, strict, out)?,
        Shape::Enum(known) => put_variant(known.variants, json, strict, out)?,
    }
    Ok(())
}

fn put_items<'a>(
    items: impl Iterator<Item = (&'a Shape, &'a Value)>,
    strict: bool,
    out: &mut Writer,
) -> Result<(), JsonError> {
    for (at, (shape, json)) in items.enumerate() {
        put(shape, json, strict, out).map_err(|error| error.within(&format!("[{at}]")))?;
    }
    Ok(())
}

fn put_fields(fields: &[FieldShape], json: &Value, strict: bool, out: &mut Writer) -> Result<(), JsonError> {
    let members = json.as_object().ok_or_else(|| expected("an object"))?;
    let unknown = members.keys().find(|name| !fields.iter().any(|field| field.name == *name));
    if let Some(name) = unknown.filter(|_| strict) {
        return Err(JsonError::new("unknown").within(name));
    }
    for (at, field) in fields.iter().enumerate() {
        let ends = || !fields.iter().skip(at).any(|later| members.contains_key(later.name));
        match members.get(field.name) {
            Some(json) => put(field.shape, json, strict, out).map_err(|error| error.within(field.name))?,
            // The message ends here, as an older writer's does.
            None if field.since > 0 && ends() => break,
            None if matches!(field.shape, Shape::Option(_)) => false.put(out),
            None => return Err(JsonError::new("missing").within(field.name)),
        }
    }
    Ok(())
}

fn put_variant(variants: &[VariantShape], json: &Value, strict: bool, out: &mut Writer) -> Result<(), JsonError> {
    let (name, members) = match json {
        Value::Object(one) if one.len() == 1 => one.iter().next().map(|(name, json)| (name.as_str(), Some(json))),
        _ => json.as_str().map(|name| (name, None)),
    }
    .ok_or_else(|| expected("a variant"))?;
    let known = |variant: &&VariantShape| snake(variant.name) == name && variant.fields.is_empty() == members.is_none();
    let variant = variants.iter().find(known).ok_or_else(|| {
        let names: Vec<String> = variants.iter().map(|variant| snake(variant.name)).collect();
        expected(&format!("one of {}", names.join(", ")))
    })?;
    out.push(variant.tag);
    match members {
        Some(json) => put_fields(variant.fields, json, strict, out).map_err(|error| error.within(&snake(variant.name))),
        None => Ok(()),
    }
}

fn expected(what: &str) -> JsonError {
    JsonError::new(format!("expected {what}"))
}

fn unsigned<T: TryFrom<u64>>(json: &Value) -> Result<T, JsonError> {
    let number = json.as_u64().and_then(|number| number.try_into().ok());
    number.ok_or_else(|| expected(&format!("an integer of {} bits that is not negative", 8 * size_of::<T>())))
}

fn signed<T: TryFrom<i64>>(json: &Value) -> Result<T, JsonError> {
    let number = json.as_i64().and_then(|number| number.try_into().ok());
    number.ok_or_else(|| expected(&format!("an integer of {} bits", 8 * size_of::<T>())))
}

fn text(json: &Value) -> Result<&str, JsonError> {
    json.as_str().ok_or_else(|| expected("text"))
}

fn array(json: &Value) -> Result<&Vec<Value>, JsonError> {
    json.as_array().ok_or_else(|| expected("an array"))
}

fn bytes(json: &Value, len: Option<usize>) -> Result<Vec<u8>, JsonError> {
    let read = Vec::<u8>::from_hex(text(json)?).map_err(|_| expected("hexadecimal digits"))?;
    match len {
        Some(len) if read.len() != len => Err(expected(&format!("{len} bytes"))),
        _ => Ok(read),
    }
}

#[cfg(test)]
mod tests;
