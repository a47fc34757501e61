//! What was typed, as the arguments of a call.

use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use crate::router::openrpc::ALIASES;

/// The member of a named call that holds the arguments by position.
const ARGS: &str = "args";

/// An argument as it was typed.
pub struct Typed {
    /// What was typed.
    pub text: Zeroizing<String>,
    /// Whether it came from standard input, where secrets come from: it is shown nowhere.
    pub is_secret: bool,
}

/// Why no call can be made of what was typed. Nothing of a secret stands in it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// With `--named`, a line whose name the method does not know: all of it may be a secret.
    #[error("line {0} of standard input does not begin with the name of one of the method's parameters and '='")]
    Line(usize),
    /// A name that was given twice.
    #[error("the argument '{0}' is given twice")]
    Twice(String),
}

/// Whether what was typed means one thing or another by what the method takes.
pub fn are_ambiguous(typed: &[Typed]) -> bool {
    let is_ambiguous = |typed: &Typed| match serde_json::from_str::<Value>(&typed.text) {
        Ok(value) => typed.is_secret || !value.is_string(),
        Err(_) => typed.text.contains('='),
    };
    typed.iter().any(is_ambiguous)
}

/// The arguments: those with a name go into an object, the others by position; with both, the positions go under `args`.
///
/// On the command line `NAME=VALUE` has a name where the method has such a parameter, and with `is_named` wherever a `=` stands.
/// What came from standard input has a name with `is_named` alone.
///
/// An argument is JSON where it reads as JSON, else text. Where the method wants a text, it is text also if it reads as
/// something else: a passphrase may be digits. There, what came from standard input is text as it stands, quotes and all.
/// What the method wants is in `document`, that of `rpc.discover`, which is needed where the arguments [`are_ambiguous`].
///
/// # Errors
/// [`ArgumentError`].
pub fn of(typed: &[Typed], is_named: bool, method: &str, document: Option<&Value>) -> Result<Value, ArgumentError> {
    let specs = document.and_then(|document| specs(document, method));
    let mut positions = Vec::new();
    let mut names = Map::new();
    let mut lines = 0;
    for Typed { text, is_secret } in typed {
        lines += usize::from(*is_secret);
        let split = text.split_once('=');
        let known = split.filter(|(name, _)| *name == ARGS || spec_named(specs, name).is_some());
        let named = match (is_named, *is_secret) {
            (true, true) if split.is_some() && known.is_none() => return Err(ArgumentError::Line(lines)),
            (true, false) => split,
            (false, true) => None,
            _ => known,
        };
        match named {
            Some((name, text)) => {
                if names.insert(name.to_owned(), value(text, spec_named(specs, name), *is_secret)).is_some() {
                    return Err(ArgumentError::Twice(name.to_owned()));
                }
            }
            None => {
                let spec = specs.and_then(|specs| specs.get(positions.len()));
                positions.push(value(text, spec, *is_secret));
            }
        }
    }
    if names.is_empty() {
        return Ok(Value::Array(positions));
    }
    if !positions.is_empty() && names.insert(ARGS.to_owned(), Value::Array(positions)).is_some() {
        return Err(ArgumentError::Twice(ARGS.to_owned()));
    }
    Ok(Value::Object(names))
}

/// The parameters of a method in the document of `rpc.discover`.
fn specs<'a>(document: &'a Value, method: &str) -> Option<&'a Vec<Value>> {
    let methods = document["result"]["methods"].as_array()?;
    methods.iter().find(|spec| spec["name"] == method)?["params"].as_array()
}

/// The parameter that answers to a name.
fn spec_named<'a>(specs: Option<&'a Vec<Value>>, name: &str) -> Option<&'a Value> {
    let has_alias = |spec: &Value| spec[ALIASES].as_array().is_some_and(|aliases| aliases.iter().any(|a| a == name));
    specs?.iter().find(|spec| spec["name"] == name || has_alias(spec))
}

/// The value of an argument for the parameter that `spec` describes. A secret for an unknown one is text: it is refused anyway.
fn value(text: &str, spec: Option<&Value>, is_secret: bool) -> Value {
    let is_text = spec.map(|spec| spec["schema"]["type"] == "string");
    match (serde_json::from_str(text), is_secret, is_text) {
        (_, true, None | Some(true)) | (Err(_), ..) => json!(text),
        (Ok(value @ (Value::String(_) | Value::Null)), ..) => value,
        (Ok(_), false, Some(true)) => json!(text),
        (Ok(value), ..) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_kind(params: &[&str], is_secret: bool) -> Vec<Typed> {
        params.iter().map(|param| Typed { text: Zeroizing::new((*param).to_owned()), is_secret }).collect()
    }

    fn document() -> Value {
        json!({"result": {"methods": [
            {"name": "other", "params": []},
            {"name": "m", "params": [
                {"name": "passphrase", "schema": {"type": "string"}, "x-aliases": ["secret"]},
                {"name": "timeout", "schema": {"type": "number"}}
            ]},
        ]}})
    }

    fn typed(params: &[&str], document: Option<&Value>) -> Value {
        of(&of_kind(params, false), false, "m", document).unwrap()
    }

    #[test]
    fn arguments_are_json_or_text_by_position_or_name() {
        let document = Some(&document());
        assert_eq!(typed(&["1", "abc", "[1]", "\"2\""], None), json!([1, "abc", [1], "2"]));
        assert_eq!(typed(&["passphrase=x", "timeout=2"], document), json!({"passphrase": "x", "timeout": 2}));
        assert_eq!(typed(&["a", "timeout=2"], document), json!({"timeout": 2, "args": ["a"]}));
        assert_eq!(typed(&["secret=x", "args=[]"], document), json!({"secret": "x", "args": []}));
        assert_eq!(typed(&["pkh(K)#x=1", "rent=may"], document), json!(["pkh(K)#x=1", "rent=may"]));
        assert_eq!(typed(&["passphrase=x"], None), json!(["passphrase=x"]));
        let named = |params: &[&str]| of(&of_kind(params, false), true, "m", document);
        assert_eq!(named(&["rent=may", "a"]), Ok(json!({"rent": "may", "args": ["a"]})));
        assert_eq!(named(&["timeout=1", "timeout=2"]), Err(ArgumentError::Twice("timeout".to_owned())));
        assert_eq!(named(&["args=[]", "a"]), Err(ArgumentError::Twice("args".to_owned())));
    }

    #[test]
    fn what_the_method_takes_as_text_is_text() {
        let document = Some(&document());
        assert_eq!(typed(&["1234", "60"], document), json!(["1234", 60]));
        assert_eq!(typed(&["true", "60", "7"], document), json!(["true", 60, 7]));
        assert_eq!(typed(&["\"12\"", "null"], document), json!(["12", null]));
        assert_eq!(typed(&["timeout=5", "passphrase=5"], document), json!({"timeout": 5, "passphrase": "5"}));
    }

    #[test]
    fn a_secret_is_text_as_it_stands() {
        let document = Some(&document());
        for secret in ["\"quoted\"", "pass=word", "passphrase=word", "null", "1234", "[1]", " a ", ""] {
            let lines = of_kind(&[secret, "60"], true);
            assert_eq!(of(&lines, false, "m", document), Ok(json!([secret, 60])));
            assert_eq!(of(&lines, false, "m", None), Ok(json!([secret, "60"])));
        }
        let named = |lines: &[&str]| of(&of_kind(lines, true), true, "m", document);
        assert_eq!(named(&["passphrase=a=\"b\"", "60"]), Ok(json!({"passphrase": "a=\"b\"", "args": ["60"]})));
        assert_eq!(named(&["timeout=60", "s3cret=word"]), Err(ArgumentError::Line(2)));
    }

    #[test]
    fn the_method_is_looked_up_where_that_decides() {
        for text in ["1", "null", "[]", "a=b"] {
            assert!(are_ambiguous(&of_kind(&["a", text], false)), "{text}");
        }
        assert!(!are_ambiguous(&of_kind(&["a", "\"b\"", "bcrt1q"], false)));
        assert!(are_ambiguous(&of_kind(&["\"b\""], true)) && !are_ambiguous(&of_kind(&["b"], true)));
    }
}
