//! Converting each message to JSON and back yields the same message.

use std::collections::BTreeSet;

use bitcoin::hashes::Hash;
use bitcoin::{Amount, BlockHash, OutPoint, ScriptBuf, TxOut, Txid};
use outrigger_abi::ExportedService;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::PROVIDED;
use crate::chain::{BlockRef, Chain};
use crate::events::Event;
use crate::log::Level;
use crate::wire::{Blob, Framed};

/// The longest list and text of a random message.
const MOST_ITEMS: u64 = 3;

/// A pseudorandom number generator (xorshift).
pub(super) struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// Appends a random value of a shape.
pub(super) fn random(shape: &Shape, random: &mut Random, out: &mut Writer) {
    match shape {
        Shape::Bool => out.push(random.below(2) as u8),
        Shape::U8 => out.push(random.next() as u8),
        Shape::U16 => out.extend_from_slice(&random.bytes(2)),
        Shape::U32 | Shape::I32 => out.extend_from_slice(&random.bytes(4)),
        Shape::U64 | Shape::I64 => out.extend_from_slice(&random.bytes(8)),
        Shape::Array(len) => out.extend_from_slice(&random.bytes(*len)),
        Shape::Hash => out.extend_from_slice(&random.bytes(HASH_LEN)),
        Shape::Text | Shape::Secret => {
            let letters = ["a", "\"", "\\", "\0", "\u{e9}", "\u{1f600}"];
            let text = (0..random.below(MOST_ITEMS + 1)).map(|_| letters[random.below(6) as usize]).collect::<String>();
            out.put_byte_string(text.as_bytes());
        }
        Shape::ByteString => {
            let len = random.below(MOST_ITEMS + 1) as usize;
            out.put_byte_string(&random.bytes(len));
        }
        Shape::Option(inner) => {
            let present = random.below(2);
            out.push(present as u8);
            if present == 1 {
                self::random(inner, random, out);
            }
        }
        Shape::List(item) => {
            let len = random.below(MOST_ITEMS + 1) as usize;
            out.extend_from_slice(&count(len));
            (0..len).for_each(|_| self::random(item, random, out));
        }
        Shape::Framed(inner) => out.put_framed(|out| self::random(inner, random, out)),
        Shape::Tuple(items) => items.iter().for_each(|item| self::random(item, random, out)),
        Shape::Struct(known) => known.fields.iter().for_each(|field| self::random(field.shape, random, out)),
        Shape::Enum(known) => {
            let variant = &known.variants[random.below(known.variants.len() as u64) as usize];
            out.push(variant.tag);
            variant.fields.iter().for_each(|field| self::random(field.shape, random, out));
        }
    }
}

/// All messages with a name: the arguments and the result of each function, and the event.
pub(super) fn messages() -> Vec<(String, &'static Shape)> {
    let mut all = vec![("event".to_owned(), Event::SHAPE)];
    for (service, function) in
        SERVICES.iter().chain(&PROVIDED).flat_map(|service| service.functions.iter().map(move |f| (service, f)))
    {
        let name = format!("{}.{}", service.name, function.name);
        all.extend(function.request.iter().map(|field| (format!("{name} {}", field.name), field.shape)));
        all.push((name, function.response));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn each_message_comes_back_from_its_json(seed in 1_u64..) {
        for (name, shape) in messages() {
            let mut message = Writer::new(false);
            random(shape, &mut Random(seed), &mut message);
            let message = message.into_message();
            let mut reader = Reader::new(&message);
            let json = read(shape, &mut reader).unwrap();
            prop_assert!(reader.is_empty(), "{name}");
            let text = json.to_string();
            let mut again = Writer::new(false);
            put(shape, &serde_json::from_str(&text).unwrap(), true, &mut again).unwrap();
            prop_assert_eq!(&*again.into_message(), &*message, "{} {}", name, text);
        }
    }

    #[test]
    fn damaged_messages_are_errors_and_no_panics(bytes in proptest::collection::vec(0_u8..4, 0..64)) {
        for (_, shape) in messages() {
            let _ = read(shape, &mut Reader::new(&bytes));
        }
    }
}

#[test]
fn null_says_one_thing_only() {
    fn look(shape: &'static Shape, is_optional: bool, path: &str) {
        let null = matches!(shape, Shape::Option(_) | Shape::Tuple([]));
        assert!(!(is_optional && null), "{path}: absent and present have one form");
        match shape {
            Shape::Option(inner) => look(inner, true, path),
            Shape::List(inner) | Shape::Framed(inner) => look(inner, false, path),
            Shape::Tuple(items) => items.iter().for_each(|item| look(item, false, path)),
            Shape::Struct(known) => known.fields.iter().for_each(|field| look(field.shape, false, path)),
            Shape::Enum(known) => {
                let fields = known.variants.iter().flat_map(|variant| variant.fields);
                fields.for_each(|field| look(field.shape, false, path));
            }
            _ => {}
        }
    }
    messages().iter().for_each(|(name, shape)| look(shape, false, name));
}

#[test]
fn messages_of_one_name_are_the_same() {
    let mut known = Vec::new();
    messages().iter().for_each(|(_, shape)| page::gather(shape, &mut known));
    let names: BTreeSet<String> = known.iter().map(|shape| page::name(shape)).collect();
    assert!(names.contains("SignBatch"), "{names:?}");
    assert_eq!(names.len(), known.len(), "{names:?}");
}

#[test]
fn the_form_is_that_of_the_page() {
    let mut txid = [0; 32];
    txid[0] = 0xab;
    let event = Event::WalletTransaction { wallet: "w".into(), txid: Txid::from_byte_array(txid) };
    let shown = format!("{}ab", "00".repeat(31));
    assert_eq!(to_json(&event).unwrap(), json!({"wallet_transaction": {"wallet": "w", "txid": shown}}));
    let output = TxOut { value: Amount::MAX, script_pubkey: ScriptBuf::from_bytes(vec![0x51, 0xAC]) };
    let coin = (OutPoint { txid: Txid::from_byte_array(txid), vout: 7 }, Some(output));
    let expected = json!([{"txid": shown, "vout": 7}, {"value": u64::MAX, "script_pubkey": "51ac"}]);
    assert_eq!(to_json(&coin).unwrap(), expected);
    assert_eq!(from_json(&expected), Ok(coin));
    let mixed = (Level::Warn, (), None::<u8>, Framed(vec![[1_u8, 0xf0]]), -1_i64);
    assert_eq!(to_json(&mixed).unwrap(), json!(["warn", null, null, ["01f0"], -1]));
    assert_eq!(to_json(&BlockRef::Height { height: 2 }).unwrap(), json!({"height": {"height": 2}}));
}

crate::wire_struct! {
    /// A message with fields that an older writer does not have.
    #[derive(PartialEq, Debug)]
    pub struct Grown {
        /// The first.
        pub first: u8,
        /// The second.
        #[since(1)]
        pub height: Option<u32>,
        /// The third.
        #[since(1)]
        pub widened: bool,
    }
}

#[test]
fn what_may_be_left_out_is_read_as_absent() {
    let whole = |height| Grown { first: 1, height, widened: false };
    assert_eq!(from_json(&json!({"first": 1})), Ok(whole(None)));
    let mut newer = json!({"first": 1, "height": 9, "later": [1]});
    assert_eq!(from_json(&newer), Ok(whole(Some(9))));
    newer["widened"] = json!(0);
    assert_eq!(from_json::<Grown>(&newer).unwrap_err().to_string(), "widened: expected true or false");
}

/// A chain for scope 5, in which the block of a hash is the first byte in memory (the last digits of the hash).
struct Blocks;

impl Chain for Blocks {
    fn block(&self, scope: Scope, hash: BlockHash) -> crate::Result<Option<Blob>> {
        match hash.as_byte_array() {
            [7, ..] => Err(ServiceError::new(ErrorKind::Refused, "not \"seven\"")),
            [first, ..] => Ok((scope == Scope(5)).then(|| Blob(vec![*first]))),
        }
    }
}

#[test]
fn a_service_is_asked_with_json() {
    let exported = ExportedService::new::<dyn Chain>(std::sync::Arc::new(Blocks));
    #[allow(unsafe_code)]
    // SAFETY: `exported` outlives the client.
    let chain = unsafe { RawService::new(exported.table()) };
    let asked = |service: &RawService, function: &str, scope, request: &str| {
        let Response { status, bytes } = Json::ask(service, b"chain/1", function.as_bytes(), scope, request.as_bytes());
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    };
    let block = |scope, last: u8, more: &str| {
        asked(&chain, "block", scope, &format!(r#"{{"hash": "{}{last:02x}"{more}}}"#, "00".repeat(31)))
    };
    let refused = |kind: ErrorKind, code: i32, message: &str| {
        (kind as i32, json!({"code": code, "message": message}).to_string())
    };
    let malformed = |message| refused(ErrorKind::Malformed, -32603, message);
    assert_eq!(block(5, 2, ""), (0, r#""02""#.to_owned()));
    assert_eq!(block(0, 2, ""), (0, "null".to_owned()));
    assert_eq!(block(5, 7, ""), refused(ErrorKind::Refused, -4, "not \"seven\""));
    assert_eq!(block(5, 2, r#", "height": 3"#), malformed("height: unknown"));
    assert_eq!(asked(&chain, "block", 5, "{}"), malformed("hash: missing"));
    assert_eq!(asked(&chain, "block", 5, "{").0, ErrorKind::Malformed as i32);
    let none = "There is no function dig of chain/1";
    assert_eq!(asked(&chain, "dig", 5, "{}"), refused(ErrorKind::Unsupported, -32603, none));
    assert_eq!(asked(&chain, "tip", 5, "{}"), refused(ErrorKind::Unsupported, -32603, "Internal error"));
    let not_granted = refused(ErrorKind::NotGranted, -32603, "The plugin's grants lack chain/1");
    assert_eq!(asked(&RawService::NOT_GRANTED, "tip", 5, "{}"), not_granted);
}

#[test]
fn an_event_is_shown_as_json() {
    let shown = Json::event(&to_bytes(&Event::MempoolChanged { sequence: 3 }));
    assert_eq!((shown.status, &*shown.bytes), (0, &br#"{"mempool_changed":{"sequence":3}}"#[..]));
    assert_eq!(Json::event(&[200]).status, ErrorKind::Malformed as i32);
}

#[test]
fn json_that_is_no_message_is_refused_by_its_member() {
    #[track_caller]
    fn refused<T: Wire>(json: Value, error: &str) {
        assert_eq!(from_json::<T>(&json).map(drop).unwrap_err().to_string(), error);
    }
    refused::<u8>(json!(256), "expected an integer of 8 bits that is not negative");
    refused::<u64>(json!(-1), "expected an integer of 64 bits that is not negative");
    refused::<u32>(json!(1.0), "expected an integer of 32 bits that is not negative");
    refused::<i32>(json!(1_u64 << 31), "expected an integer of 32 bits");
    refused::<Vec<String>>(json!(["a", 5]), "[1]: expected text");
    refused::<Vec<OutPoint>>(json!([{"vout": 1}]), "[0].txid: missing");
    refused::<Txid>(json!("00"), "expected 32 bytes");
    refused::<Blob>(json!("0"), "expected hexadecimal digits");
    refused::<(u8, u8)>(json!([1]), "expected 2 items");
    refused::<()>(json!([]), "expected 0 items");
    refused::<Level>(json!("loud"), "expected one of error, warn, info, debug");
    refused::<Level>(json!({"warn": {}}), "expected one of error, warn, info, debug");
    refused::<bitcoin::Network>(json!("liquid"), "message is damaged at byte 0 of 10");
}

/// Whether a schema accepts JSON, by the keywords that `schema` uses.
fn accepts(root: &Value, schema: &Value, json: &Value) -> bool {
    let each = |name: &str| schema[name].as_array().cloned().unwrap_or_default();
    schema.as_object().unwrap().iter().all(|(keyword, rule)| match (keyword.as_str(), json) {
        ("$schema" | "$defs" | "title" | "description", _) => true,
        ("$ref", _) => {
            let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
            accepts(root, root["$defs"].get(name).unwrap(), json)
        }
        ("type", _) => match rule.as_str().unwrap() {
            "boolean" => json.is_boolean(),
            "integer" => json.is_u64() || json.is_i64(),
            "string" => json.is_string(),
            "array" => json.is_array(),
            "object" => json.is_object(),
            "null" => json.is_null(),
            other => panic!("{other}"),
        },
        ("minimum", Value::Number(number)) => whole(number) >= whole(rule.as_number().unwrap()),
        ("maximum", Value::Number(number)) => whole(number) <= whole(rule.as_number().unwrap()),
        ("pattern", Value::String(text)) => {
            let digits = text.chars().all(|digit| digit.is_ascii_hexdigit());
            let len = rule.as_str().unwrap().strip_prefix("^[0-9a-fA-F]{").and_then(|rest| rest.strip_suffix("}$"));
            digits && len.map_or(text.len() % 2 == 0, |len| text.len().to_string() == len)
        }
        ("const", _) => json == rule,
        ("anyOf", _) => each("anyOf").iter().any(|one| accepts(root, one, json)),
        ("oneOf", _) => each("oneOf").iter().filter(|one| accepts(root, one, json)).count() == 1,
        ("prefixItems", Value::Array(items)) => {
            items.iter().zip(&each("prefixItems")).all(|(item, one)| accepts(root, one, item))
        }
        ("minItems", Value::Array(items)) => items.len() as u64 >= rule.as_u64().unwrap(),
        ("items", Value::Array(items)) if rule.is_boolean() => items.len() <= each("prefixItems").len(),
        ("items", Value::Array(items)) => items.iter().all(|item| accepts(root, rule, item)),
        ("required", Value::Object(members)) => {
            each("required").iter().all(|name| members.contains_key(name.as_str().unwrap()))
        }
        ("properties", Value::Object(members)) => {
            members.iter().all(|(name, json)| rule.get(name).is_none_or(|one| accepts(root, one, json)))
        }
        ("additionalProperties", Value::Object(members)) => {
            members.keys().all(|name| schema["properties"].get(name).is_some())
        }
        ("minimum" | "maximum" | "pattern" | "prefixItems" | "minItems" | "items", _) => true,
        ("required" | "properties" | "additionalProperties", _) => true,
        (other, _) => panic!("the schema has {other}"),
    })
}

fn whole(number: &serde_json::Number) -> i128 {
    number.as_i128().unwrap()
}

/// A random message as JSON.
fn random_json(shape: &Shape, seed: u64) -> Value {
    let mut message = Writer::new(false);
    random(shape, &mut Random(seed), &mut message);
    read(shape, &mut Reader::new(&message.into_message())).unwrap()
}

#[test]
fn the_schema_accepts_each_message_and_no_other() {
    let schema = schema();
    for seed in 1..20 {
        for service in SERVICES.iter().chain(&PROVIDED) {
            for function in service.functions {
                let name = format!("{}.{}", service.name, function.name);
                let known = &schema["properties"][service.name]["properties"][function.name]["properties"];
                let request: Map<String, Value> = function
                    .request
                    .iter()
                    .map(|field| (field.name.to_owned(), random_json(field.shape, seed)))
                    .collect();
                assert!(accepts(&schema, &known["request"], &Value::Object(request.clone())), "{name} {request:?}");
                let response = random_json(function.response, seed);
                assert!(accepts(&schema, &known["response"], &response), "{name} {response}");
                assert!(!accepts(&schema, &known["response"], &json!({"no": 1})), "{name}");
                let mut more = request.clone();
                more.insert("more".to_owned(), json!(null));
                assert!(!accepts(&schema, &known["request"], &Value::Object(more)), "{name}");
                // No argument may be a fraction, and only optional ones may be missing.
                for field in function.request {
                    let mut other = request.clone();
                    other.insert(field.name.to_owned(), json!(0.5));
                    assert!(!accepts(&schema, &known["request"], &Value::Object(other)), "{name} {}", field.name);
                    let mut fewer = request.clone();
                    fewer.remove(field.name);
                    let optional = matches!(field.shape, Shape::Option(_));
                    assert_eq!(accepts(&schema, &known["request"], &Value::Object(fewer)), optional, "{name}");
                }
            }
        }
        let event = json!({"event": random_json(Event::SHAPE, seed)});
        assert!(accepts(&schema, &schema, &event), "{event}");
    }
    assert!(!accepts(&schema, &schema, &json!({"event": "no_event"})));
}

#[test]
fn the_page_has_each_service_function_and_message() {
    let page = page();
    for service in SERVICES.iter().chain(&PROVIDED) {
        let rest = page.split_once(&format!("\n## {}\n", service.name)).unwrap().1;
        let section = rest.split("\n## ").next().unwrap();
        for function in service.functions {
            assert!(section.contains(&format!("\n### {0}\n\n`{0}(", function.name)), "{}", function.name);
        }
    }
    assert!(page.contains("`block_info(block: BlockRef) -> BlockInfo or null`"), "{page}");
    assert!(page.contains("`coins(outpoints: list of OutPoint) -> list of (Coin or null)`"));
    assert!(page.contains("\n### SignRequest\n\nA signature that is wanted.\n\n* `input` (u32): The input's index.\n"));
    assert!(page.contains(
        "\n* `\"mempool_changed\"`: Transactions came to or left the mempool (`mempool`).\n  * `sequence` (u64): "
    ));
    let known = schema();
    for name in known["$defs"].as_object().unwrap().keys() {
        assert!(page.contains(&format!("\n### {name}\n")), "{name}");
    }
    for rust in ["[`", "::", "Option<", "Vec<"] {
        let line = page.lines().find(|line| line.contains(rust));
        assert_eq!(line, None, "{rust}");
    }
}

#[test]
fn messages_grow_only_where_nothing_follows() {
    let mut found = Vec::new();
    for function in SERVICES.iter().chain(&PROVIDED).flat_map(|service| service.functions) {
        look(function.response, true, &mut found);
        for (at, field) in function.request.iter().enumerate() {
            look(field.shape, at + 1 == function.request.len(), &mut found);
        }
    }
    look(Event::SHAPE, true, &mut found);
    assert_eq!(found, Vec::<String>::new(), "these are read by older plugins as they were");

    /// Finds types with fields of later versions that are not at the end of a message or frame. There an older reader would
    /// read the new field as the next value. `last`: nothing follows the type.
    fn look(shape: &'static Shape, last: bool, found: &mut Vec<String>) {
        let mut look_at_fields = |fields: &'static [FieldShape]| {
            if !last && fields.iter().any(|field| field.since > 0) {
                found.push(page::name(shape));
            }
            for (at, field) in fields.iter().enumerate() {
                look(field.shape, last && at + 1 == fields.len(), found);
            }
        };
        match shape {
            Shape::Struct(known) => look_at_fields(known.fields),
            Shape::Enum(known) => known.variants.iter().for_each(|case| look_at_fields(case.fields)),
            Shape::Option(inner) => look(inner, last, found),
            Shape::List(item) => look(item, false, found),
            Shape::Framed(inner) => look(inner, true, found),
            Shape::Tuple(items) => {
                for (at, item) in items.iter().enumerate() {
                    look(item, last && at + 1 == items.len(), found);
                }
            }
            _ => {}
        }
    }
}
