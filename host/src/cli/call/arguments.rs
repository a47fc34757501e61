//! What was typed, as the arguments of a call.

use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

/// The arguments: those with a name go into an object, the others by position; with both, the positions go under `args`.
///
/// An argument is JSON where it reads as JSON, else text. Where the method wants a text, it is text also if it reads as
/// something else: a passphrase may be digits. What the method wants is asked of the host by `discover`, if need be.
pub fn of(params: &[Zeroizing<String>], discover: impl FnOnce() -> Option<Value>, method: &str) -> Value {
    let is_ambiguous = |param: &Zeroizing<String>| {
        let text = split(param).map_or(param.as_str(), |(_, text)| text);
        serde_json::from_str::<Value>(text).is_ok_and(|value| !value.is_string())
    };
    let wanted = if params.iter().any(is_ambiguous) { discover() } else { None };
    let specs = wanted.as_ref().and_then(|document| specs(document, method));
    let is_text = |found: Option<&Value>| found.is_some_and(|spec| spec["schema"]["type"] == "string");
    let mut positions = Vec::new();
    let mut names = Map::new();
    for param in params {
        match split(param) {
            Some((name, text)) => {
                let spec = specs.and_then(|specs| specs.iter().find(|spec| spec["name"] == name));
                names.insert(name.to_owned(), value(text, is_text(spec)));
            }
            None => {
                let spec = specs.and_then(|specs| specs.get(positions.len()));
                positions.push(value(param, is_text(spec)));
            }
        }
    }
    if names.is_empty() {
        return Value::Array(positions);
    }
    if !positions.is_empty() {
        names.insert("args".to_owned(), Value::Array(positions));
    }
    Value::Object(names)
}

/// The parameters of a method in the document of `rpc.discover`.
fn specs<'a>(document: &'a Value, method: &str) -> Option<&'a Vec<Value>> {
    let methods = document["result"]["methods"].as_array()?;
    methods.iter().find(|spec| spec["name"] == method)?["params"].as_array()
}

/// The name and the text of an argument by name.
fn split(param: &str) -> Option<(&str, &str)> {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b == b'-');
    param.split_once('=').filter(|(name, _)| is_name(name))
}

fn value(text: &str, is_text: bool) -> Value {
    match serde_json::from_str(text) {
        Ok(value) if !is_text || matches!(value, Value::String(_) | Value::Null) => value,
        _ => json!(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(params: &[&str], document: Option<Value>) -> Value {
        let params: Vec<_> = params.iter().map(|param| Zeroizing::new((*param).to_owned())).collect();
        of(&params, || document, "m")
    }

    #[test]
    fn arguments_are_json_or_text_by_position_or_name() {
        assert_eq!(typed(&["1", "abc", "[1]", "\"2\""], None), json!([1, "abc", [1], "2"]));
        assert_eq!(typed(&["label=x", "count=2"], None), json!({"label": "x", "count": 2}));
        assert_eq!(typed(&["a", "count=2"], None), json!({"count": 2, "args": ["a"]}));
        assert_eq!(typed(&["pkh(K)#x=1"], None), json!(["pkh(K)#x=1"]));
    }

    #[test]
    fn what_the_method_takes_as_text_is_text() {
        let document = json!({"result": {"methods": [
            {"name": "other", "params": []},
            {"name": "m", "params": [
                {"name": "passphrase", "schema": {"type": "string"}}, {"name": "timeout", "schema": {"type": "number"}}
            ]},
        ]}});
        assert_eq!(typed(&["1234", "60"], Some(document.clone())), json!(["1234", 60]));
        assert_eq!(typed(&["true", "60", "7"], Some(document.clone())), json!(["true", 60, 7]));
        assert_eq!(typed(&["\"12\"", "null"], Some(document.clone())), json!(["12", null]));
        assert_eq!(typed(&["timeout=5", "passphrase=5"], Some(document)), json!({"timeout": 5, "passphrase": "5"}));
    }
}
