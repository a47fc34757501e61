//! The JSON schema of all messages.

use serde_json::{Map, Value, json};

use super::page::prose;
use super::{HASH_LEN, snake};
use crate::events::Event;
use crate::wire::{Docs, FieldShape, Shape, VariantShape, Wire};
use crate::{PROVIDED, SERVICES};

/// The schema (draft 2020-12) of an object with a member for each service and a member `event`. A service has a member for each function,
/// with the members `request` and `response`.
pub fn schema() -> Value {
    let mut defs = Map::new();
    let mut members = Map::new();
    for service in SERVICES.iter().chain(&PROVIDED) {
        let function = |(name, docs, request, response): (&str, Docs, &[FieldShape], &Shape)| {
            let mut request = object(request, &mut defs);
            request["additionalProperties"] = false.into();
            let messages = json!({"request": request, "response": value(response, &mut defs)});
            (name.to_owned(), described(docs, json!({"type": "object", "properties": messages})))
        };
        let functions = service.functions.iter().map(|known| (known.name, known.docs, known.request, known.response));
        let functions: Map<String, Value> = functions.map(function).collect();
        members.insert(
            service.name.to_owned(),
            described(service.docs, json!({"type": "object", "properties": functions})),
        );
    }
    members.insert("event".to_owned(), value(Event::SHAPE, &mut defs));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The messages of a host's services",
        "type": "object",
        "properties": members,
        "$defs": defs,
    })
}

fn described(docs: Docs, mut schema: Value) -> Value {
    if !docs.is_empty() {
        schema["description"] = prose(docs).into();
    }
    schema
}

/// The schema of a value. Adds named messages to the definitions.
fn value(shape: &Shape, defs: &mut Map<String, Value>) -> Value {
    let unsigned = |maximum: u64| json!({"type": "integer", "minimum": 0, "maximum": maximum});
    let digits = |bytes: usize| json!({"type": "string", "pattern": format!("^[0-9a-fA-F]{{{}}}$", 2 * bytes)});
    match shape {
        Shape::Bool => json!({"type": "boolean"}),
        Shape::U8 => unsigned(u8::MAX.into()),
        Shape::U16 => unsigned(u16::MAX.into()),
        Shape::U32 => unsigned(u32::MAX.into()),
        Shape::U64 => unsigned(u64::MAX),
        Shape::I32 => json!({"type": "integer", "minimum": i32::MIN, "maximum": i32::MAX}),
        Shape::I64 => json!({"type": "integer", "minimum": i64::MIN, "maximum": i64::MAX}),
        Shape::Array(len) => digits(*len),
        Shape::Hash => digits(HASH_LEN),
        Shape::Text | Shape::Secret => json!({"type": "string"}),
        Shape::ByteString => json!({"type": "string", "pattern": "^([0-9a-fA-F]{2})*$"}),
        Shape::Option(inner) => json!({"anyOf": [value(inner, defs), {"type": "null"}]}),
        Shape::List(item) => json!({"type": "array", "items": value(item, defs)}),
        Shape::Framed(inner) => value(inner, defs),
        Shape::Tuple([]) => json!({"type": "null"}),
        Shape::Tuple(items) => {
            let each: Vec<Value> = items.iter().map(|item| value(item, defs)).collect();
            json!({"type": "array", "prefixItems": each, "items": false, "minItems": items.len()})
        }
        Shape::Struct(known) => defined(known.name, known.docs, defs, |defs| object(known.fields, defs)),
        Shape::Enum(known) => defined(known.name, known.docs, defs, |defs| {
            let variants: Vec<Value> = known.variants.iter().map(|known| variant(known, defs)).collect();
            json!({"oneOf": variants})
        }),
    }
}

/// A reference to a definition. Adds the definition if it is missing.
fn defined(
    name: &str,
    docs: Docs,
    defs: &mut Map<String, Value>,
    make: impl FnOnce(&mut Map<String, Value>) -> Value,
) -> Value {
    if !defs.contains_key(name) {
        let made = make(defs);
        defs.insert(name.to_owned(), described(docs, made));
    }
    json!({"$ref": format!("#/$defs/{name}")})
}

fn object(fields: &[FieldShape], defs: &mut Map<String, Value>) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.name.to_owned(), described(field.docs, value(field.shape, defs)))).collect();
    let needed = |field: &&FieldShape| field.since == 0 && !matches!(field.shape, Shape::Option(_));
    let required: Vec<&str> = fields.iter().filter(needed).map(|field| field.name).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

fn variant(known: &VariantShape, defs: &mut Map<String, Value>) -> Value {
    let name = snake(known.name);
    let schema = match known.fields {
        [] => json!({"const": name}),
        fields => {
            let members = Map::from_iter([(name.clone(), object(fields, defs))]);
            json!({"type": "object", "properties": members, "required": [name], "additionalProperties": false})
        }
    };
    described(known.docs, schema)
}
