//! Converts typed arguments to the parameters of a call.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::router::openrpc::{ALIASES, MEMBERS};

/// The member of a named call that holds the arguments by position.
const ARGS: &str = "args";

pub struct TypedArgument {
    pub text: Zeroizing<String>,
    /// Whether it came from standard input. It may be a secret then, and is never shown.
    pub is_secret: bool,
}

/// An argument that is not JSON, for a parameter that is not a string. `what` is the argument, or only its line number on
/// standard input, since the line may be a secret.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("Error parsing JSON: {what} ({name} is not a string)")]
pub struct ArgumentError {
    what: String,
    name: String,
}

/// The arguments as JSON: an array, or an object if any is named, which has the unnamed ones under `args`. If a name is given more
/// than once, the last argument counts, as in bitcoin-cli.
///
/// On the command line, `NAME=VALUE` is named if the method has a parameter of that name. A line of standard input never is.
///
/// `document` is the reply of `rpc.discover`, with the types of the parameters. The command passes an argument of a string parameter on
/// unchanged, with any quotes: a passphrase may be digits. An argument of another type must be JSON. If the parameter is unknown or has
/// no type, the command parses the argument as JSON, and passes a string if that fails; a secret for an unknown parameter is a string.
pub fn of(typed: &[TypedArgument], method: &str, document: Option<&Value>) -> Result<Zeroizing<String>, ArgumentError> {
    let specs = document.and_then(|document| specs(document, method));
    let mut positions = Vec::new();
    let mut names: Vec<(&str, Zeroizing<String>)> = Vec::new();
    let mut lines = 0;
    for TypedArgument { text, is_secret } in typed {
        lines += usize::from(*is_secret);
        let line = is_secret.then_some(lines);
        let named = text.split_once('=').filter(|(name, _)| !is_secret && spec_named(specs, name).is_some());
        match named {
            Some((name, text)) => {
                let value = value(text, spec_named(specs, name), line)?;
                match names.iter_mut().find(|(given, _)| *given == name) {
                    Some((_, earlier)) => *earlier = value,
                    None => names.push((name, value)),
                }
            }
            None => {
                let spec = specs.and_then(|specs| specs.get(positions.len()));
                positions.push(value(text, spec, line)?);
            }
        }
    }
    if names.is_empty() {
        return Ok(array(&positions));
    }
    if !positions.is_empty() {
        names.push((ARGS, array(&positions)));
    }
    Ok(object(&names))
}

/// The parameters of a method in the document of `rpc.discover`.
fn specs<'a>(document: &'a Value, method: &str) -> Option<&'a Vec<Value>> {
    let methods = document["result"]["methods"].as_array()?;
    methods.iter().find(|spec| spec["name"] == method)?["params"].as_array()
}

/// The parameter with this name or alias, or else the member of a parameter with it.
fn spec_named<'a>(specs: Option<&'a Vec<Value>>, name: &str) -> Option<&'a Value> {
    let has_alias = |spec: &Value| spec[ALIASES].as_array().is_some_and(|aliases| aliases.iter().any(|a| a == name));
    let answers = |spec: &&Value| spec["name"] == name || has_alias(spec);
    let members = |spec: &'a Value| spec[MEMBERS].as_array().into_iter().flatten();
    specs?.iter().find(answers).or_else(|| specs?.iter().flat_map(members).find(answers))
}

/// The JSON of an argument for the parameter that `spec` describes; `line` is its line number on standard input.
fn value(text: &str, spec: Option<&Value>, line: Option<usize>) -> Result<Zeroizing<String>, ArgumentError> {
    let quoted = || Zeroizing::new(json!(text).to_string());
    // Numbers keep their digits, and objects all members: the host refuses duplicate keys.
    let json = || serde_json::from_str::<&RawValue>(text).ok().map(|json| Zeroizing::new(json.get().to_owned()));
    let not_json = || {
        let what = line.map_or_else(|| text.to_owned(), |line| format!("line {line} of standard input"));
        let name = spec.and_then(|spec| spec["name"].as_str()).unwrap_or_default().to_owned();
        ArgumentError { what, name }
    };
    match spec.map(|spec| &spec["schema"]["type"]) {
        // A secret for an unknown parameter is a string, never JSON.
        None if line.is_some() => Ok(quoted()),
        None | Some(Value::Null) => Ok(json().unwrap_or_else(quoted)),
        Some(Value::String(kind)) if kind == "string" => Ok(quoted()),
        // This includes amounts: numbers, optionally in quotes.
        Some(_) => json().ok_or_else(not_json),
    }
}

fn array(values: &[Zeroizing<String>]) -> Zeroizing<String> {
    let values: Vec<&str> = values.iter().map(|value| value.as_str()).collect();
    Zeroizing::new(format!("[{}]", values.join(",")))
}

fn object(members: &[(&str, Zeroizing<String>)]) -> Zeroizing<String> {
    let members: Vec<String> = members.iter().map(|(name, value)| format!("{}:{}", json!(name), **value)).collect();
    Zeroizing::new(format!("{{{}}}", members.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_kind(params: &[&str], is_secret: bool) -> Vec<TypedArgument> {
        params.iter().map(|param| TypedArgument { text: Zeroizing::new((*param).to_owned()), is_secret }).collect()
    }

    fn document() -> Value {
        json!({"result": {"methods": [
            {"name": "other", "params": []},
            {"name": "m", "params": [
                {"name": "passphrase", "schema": {"type": "string"}, "x-bitcoin-aliases": ["secret"]},
                {"name": "timeout", "schema": {"type": "number"}},
                {"name": "amount", "schema": {"type": ["number", "string"]}},
                {"name": "range", "schema": {}, "x-members": [{"name": "from", "schema": {"type": "string"}}]}
            ]},
        ]}})
    }

    fn made(typed: &[TypedArgument], document: Option<&Value>) -> Result<Value, ArgumentError> {
        of(typed, "m", document).map(|text| serde_json::from_str(&text).unwrap())
    }

    fn typed(params: &[&str], document: Option<&Value>) -> Value {
        made(&of_kind(params, false), document).unwrap()
    }

    #[test]
    fn arguments_are_by_position_or_name() {
        let document = Some(&document());
        assert_eq!(typed(&["passphrase=x", "timeout=2"], document), json!({"passphrase": "x", "timeout": 2}));
        assert_eq!(typed(&["a", "timeout=2"], document), json!({"timeout": 2, "args": ["a"]}));
        assert_eq!(typed(&["from=2", "timeout=2"], document), json!({"from": "2", "timeout": 2}));
        assert_eq!(typed(&["rent=may", "1", "2", "K#x=1"], document), json!(["rent=may", 1, 2, "K#x=1"]));
        assert_eq!(typed(&["passphrase=x"], None), json!(["passphrase=x"]));
        let twice = ["timeout=1", "secret=a", "timeout=2"];
        assert_eq!(typed(&twice, document), json!({"timeout": 2, "secret": "a"}));
    }

    #[test]
    fn call_arguments_of_other_types_are_json_as_typed() {
        let document = Some(&document());
        let sent = |params: &[&str]| of(&of_kind(params, false), "m", document).map(|text| text.to_string());
        assert_eq!(
            sent(&["a", " 1e2 ", "0.10", "{\"a\": 1, \"a\": 2}"]).unwrap(),
            r#"["a",1e2,0.10,{"a": 1, "a": 2}]"#
        );
        assert_eq!(sent(&["a", "null", "\"0.1\""]).unwrap(), r#"["a",null,"0.1"]"#);
        for text in ["x", "", "01", "[", "True", "\"", "1 2"] {
            let not_json = |name: &str| Err(ArgumentError { what: text.to_owned(), name: name.to_owned() });
            assert_eq!(sent(&["a", text]), not_json("timeout"));
            assert_eq!(sent(&[&format!("amount={text}")]), not_json("amount"));
        }
        let lines = of_kind(&["a", "s3cret"], true);
        let refused = made(&lines, document).unwrap_err();
        assert_eq!(refused.to_string(), "Error parsing JSON: line 2 of standard input (timeout is not a string)");
    }

    #[test]
    fn call_arguments_of_unknown_methods_are_json_or_strings() {
        let either = ["1", "abc", "[1]", "\"2\"", "null", ""];
        assert_eq!(typed(&either, None), json!([1, "abc", [1], "2", null, ""]));
        for text in either {
            let range = typed(&[text], None)[0].clone();
            assert_eq!(typed(&["a", "1", "2", text, text], Some(&document())), json!(["a", 1, 2, range, range]));
        }
    }

    #[test]
    fn a_secret_is_taken_literally() {
        let document = Some(&document());
        for secret in ["\"quoted\"", "pass=word", "passphrase=word", "null", "1234", "[1]", " a ", ""] {
            let lines = of_kind(&[secret, "60"], true);
            assert_eq!(made(&lines, document), Ok(json!([secret, 60])));
            assert_eq!(made(&lines, None), Ok(json!([secret, "60"])));
        }
    }
}
