//! Arguments to try on a method: such as it wants, and such as make no sense.
//!
//! The manifest says what a method wants. Objects have their keys in no declaration, but in the help of the parameter: each
//! word there is tried as a key.

use std::collections::BTreeSet;

use outrigger_sdk::manifest::{MethodSpec, ParamSpec, ParamType};
use serde_json::json;

use super::protocol::ExtraCall;

/// A value of each JSON type, and those at the ends of each: what a parameter is given in place of what it wants.
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

/// Values that a key of an object is given.
const MEMBERS: [&str; 8] = ["null", "true", "1", "-1", "\"x\"", "[]", "{}", "[{\"x\":1}]"];

/// The words of a help text that are tried as keys.
const MAX_WORDS: usize = 96;

/// How deep values nest: as deep as the host lets them through.
const DEPTH: usize = 500;

/// The bytes of a text that is long.
const LONG_TEXT: usize = 1 << 20;

/// The digits of a number that is long.
const LONG_NUMBER: usize = 10_000;

/// The items of a list that is long.
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

/// A few of them, where there is much else to try.
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

/// What the user wants to be tried on a method as well.
pub fn extra<'a>(method: &str, calls: &'a [ExtraCall]) -> impl Iterator<Item = String> + use<'a> {
    let method = method.to_owned();
    calls.iter().filter(move |call| call.method == method).map(|call| call.arguments.clone())
}

fn array(values: &[&str]) -> String {
    format!("[{}]", values.join(","))
}

/// All parameters as they should be but one.
fn with(params: &[ParamSpec], index: usize, value: &str) -> String {
    let values: Vec<&str> =
        params.iter().enumerate().map(|(at, param)| if at == index { value } else { plausible(param) }).collect();
    array(&values)
}

/// A value that a parameter may well take.
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

/// Values of more than the usual size or depth, and text that is JSON and yet no Unicode.
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
