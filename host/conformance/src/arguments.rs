//! Generates plausible, extreme and invalid arguments for a method.
//!
//! The manifest declares the types of parameters, but not the keys of objects: each word of a parameter's help is tried as a
//! key.

use std::collections::BTreeSet;

use outrigger_sdk::manifest::{MethodSpec, ParamSpec, ParamType};
use serde_json::json;

/// Ordinary and extreme values of each JSON type, tried for every parameter.
const LITERALS: [&str; 21] = [
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1.5",
    "1e400",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "\"\"",
    "\"x\"",
    "\"0\"",
    "\"\\u0000\\u001f\\ud83d\\ude00\"",
    "\"*\"",
    "[]",
    "[null]",
    "[[],{},\"x\",-1]",
    "{}",
    "{\"\":null}",
    "{\"x\":{\"x\":[]}}",
];

/// Values tried for each key of an object.
const MEMBERS: [&str; 8] = ["null", "true", "1", "-1", "\"x\"", "[]", "{}", "[{\"x\":1}]"];

/// The most words of a help text that are tried as keys.
const MAX_WORDS: usize = 96;

/// The depth of a nested value: the most that the host accepts.
const DEPTH: usize = 500;

/// The length of a long string, in bytes.
const LONG_TEXT: usize = 1 << 20;

/// The length of a long number, in digits.
const LONG_NUMBER: usize = 10_000;

/// The length of a long array, in items.
const LONG_LIST: usize = 10_000;

/// The arguments to try on a method, each a JSON array.
pub fn all(method: &MethodSpec) -> Vec<String> {
    let mut sets = few(method);
    let params = &method.params;
    for (index, param) in params.iter().enumerate() {
        let with = |value: &str| with(params, index, value);
        sets.extend(LITERALS.iter().map(|literal| with(literal)));
        sets.extend(extremes().iter().map(|value| with(value)));
        sets.extend(objects(param).iter().map(|value| with(value)));
    }
    sets
}

/// A few of [`all`], for checks that make many other calls.
pub fn few(method: &MethodSpec) -> Vec<String> {
    let plausible: Vec<&str> = method.params.iter().map(plausible).collect();
    let required = plausible.get(..method.required()).unwrap_or(&plausible);
    let nulls = vec!["null"; method.params.len()];
    let surplus = [&plausible[..], &["1", "\"x\"", "{}"]].concat();
    let mut sets: Vec<String> = Vec::new();
    for set in [array(&[]), array(required), array(&plausible), array(&nulls), array(&surplus)] {
        if !sets.contains(&set) {
            sets.push(set);
        }
    }
    sets
}

fn array(values: &[&str]) -> String {
    format!("[{}]", values.join(","))
}

/// Plausible arguments, except for `value` at `index`.
fn with(params: &[ParamSpec], index: usize, value: &str) -> String {
    let values: Vec<&str> =
        params.iter().enumerate().map(|(at, param)| if at == index { value } else { plausible(param) }).collect();
    array(&values)
}

fn plausible(param: &ParamSpec) -> &'static str {
    match param.kind {
        ParamType::String => "\"x\"",
        ParamType::Hex => "\"00\"",
        ParamType::Numeric | ParamType::Verbosity => "1",
        ParamType::Amount => "0.1",
        ParamType::Boolean => "true",
        ParamType::Array | ParamType::Outputs => "[]",
        ParamType::Object | ParamType::Amounts => "{}",
        ParamType::Any => "null",
    }
}

/// Values of unusual size or depth, and a JSON string that is not valid Unicode.
fn extremes() -> Vec<String> {
    vec![
        format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH)),
        format!("{}1{}", "{\"x\":".repeat(DEPTH), "}".repeat(DEPTH)),
        format!("\"{}\"", "a".repeat(LONG_TEXT)),
        format!("\"{}\"", "00".repeat(LONG_TEXT / 2)),
        "9".repeat(LONG_NUMBER),
        format!("[{}1]", "1,".repeat(LONG_LIST)),
        "\"\\ud800\"".to_owned(),
    ]
}

/// Objects, and lists of objects, with each word of the parameter's help as a key.
fn objects(param: &ParamSpec) -> Vec<String> {
    let wraps: &[fn(&str) -> String] = match param.kind {
        ParamType::Object | ParamType::Amounts => &[|object| object.to_owned()],
        ParamType::Array => &[|object| format!("[{object}]")],
        ParamType::Any | ParamType::Outputs => &[|object| object.to_owned(), |object| format!("[{object}]")],
        _ => return Vec::new(),
    };
    let mut objects = Vec::new();
    for word in words(&param.help) {
        for member in MEMBERS {
            let object = format!("{{{}:{member}}}", json!(word));
            objects.extend(wraps.iter().map(|wrap| wrap(&object)));
        }
    }
    objects
}

/// The words of a text that may be keys, in order.
fn words(text: &str) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.len() > 1 && word.starts_with(|c: char| c.is_ascii_lowercase()))
        .filter(|word| seen.insert(*word))
        .take(MAX_WORDS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(params: serde_json::Value) -> MethodSpec {
        serde_json::from_value(json!({"name": "m", "category": "c", "help": "h", "params": params})).unwrap()
    }

    #[test]
    fn every_parameter_is_given_every_type() {
        let params = json!([{"name": "a", "type": "string", "required": true, "help": ""},
            {"name": "b", "type": "object", "help": "mode: \"template\"; data_hex: the block; mode again"}]);
        let sets = all(&method(params));
        for set in ["[]", "[\"x\"]", "[\"x\",{}]", "[null,null]", "[\"x\",{},1,\"x\",{}]", "[{},{}]", "[\"x\",[]]"] {
            assert!(sets.iter().any(|known| known == set), "{set}");
        }
        for set in ["[\"x\",{\"data_hex\":true}]", "[\"x\",{\"mode\":[]}]"] {
            assert_eq!(sets.iter().filter(|known| *known == set).count(), 1, "{set}");
        }
    }

    #[test]
    fn a_method_without_parameters_is_tried_with_too_many() {
        assert_eq!(all(&method(json!([]))), ["[]", "[1,\"x\",{}]"]);
    }
}
