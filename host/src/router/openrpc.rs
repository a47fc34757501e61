//! `rpc.discover`: an OpenRPC document of all methods of a running host, made of the manifests.

use outrigger_sdk::manifest::{MethodSpec, ParamSpec, ParamType};
use serde_json::{Value, json};

const OPENRPC: &str = "1.3.2";

/// The extension with a parameter's other names.
pub const ALIASES: &str = "x-aliases";

/// The extension with an object's members that a named call may give as arguments.
pub const MEMBERS: &str = "x-members";

pub fn document<'a>(methods: impl Iterator<Item = &'a MethodSpec>) -> Value {
    let mut methods: Vec<&MethodSpec> = methods.collect();
    methods.sort_by(|a, b| a.name.cmp(&b.name));
    json!({
        "openrpc": OPENRPC,
        "info": {
            "title": "Outrigger",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Bitcoin's JSON-RPC operations, as the loaded plugins answer them.",
        },
        "methods": methods.into_iter().map(method).collect::<Vec<_>>(),
    })
}

/// Adds the methods of `other` that `shows` accepts, and sorts all by name.
pub fn add(document: &mut Value, mut other: Value, shows: impl Fn(&str) -> bool) {
    let name = |method: &Value| method["name"].as_str().unwrap_or_default().to_owned();
    if let (Some(methods), Some(others)) = (document["methods"].as_array_mut(), other["methods"].as_array_mut()) {
        methods.extend(others.drain(..).filter(|method| shows(&name(method))));
        methods.sort_by_key(name);
    }
}

fn method(spec: &MethodSpec) -> Value {
    let summary = spec.help.lines().next().unwrap_or_default();
    json!({
        "name": spec.name,
        "summary": summary,
        "description": spec.help,
        "tags": [{"name": spec.category}],
        "paramStructure": "either",
        "params": spec.params.iter().map(param).collect::<Vec<_>>(),
        "result": {"name": "result", "description": spec.result, "schema": result(&spec.result)},
    })
}

/// The types of a result, which its description names: `n    (numeric) The height.`
fn result(description: &str) -> Value {
    const TYPES: [(&str, &str); 7] = [
        ("(json object)", "object"),
        ("(json array)", "array"),
        ("(string)", "string"),
        ("(numeric)", "number"),
        ("(boolean)", "boolean"),
        ("(json boolean)", "boolean"),
        ("(json null)", "null"),
    ];
    let named: Vec<&str> =
        TYPES.iter().filter(|(words, _)| description.contains(words)).map(|(_, name)| *name).collect();
    match named.as_slice() {
        [] => json!({}),
        [one] => json!({"type": one}),
        several => json!({"type": several}),
    }
}

fn param(spec: &ParamSpec) -> Value {
    let mut described = json!({
        "name": spec.name,
        "description": spec.help,
        "required": spec.required,
        "schema": schema(spec.kind),
    });
    if !spec.aliases.is_empty() {
        described[ALIASES] = json!(spec.aliases);
    }
    if !spec.members.is_empty() {
        described[MEMBERS] = spec.members.iter().map(param).collect();
    }
    described
}

fn schema(kind: ParamType) -> Value {
    match kind {
        ParamType::String => json!({"type": "string"}),
        ParamType::Hex => json!({"type": "string", "pattern": "^([0-9a-fA-F]{2})*$"}),
        ParamType::Numeric => json!({"type": "number"}),
        ParamType::Amount => json!({"type": ["number", "string"]}),
        ParamType::Boolean => json!({"type": "boolean"}),
        ParamType::Array => json!({"type": "array"}),
        ParamType::Object | ParamType::Amounts => json!({"type": "object"}),
        ParamType::Outputs => json!({"type": ["array", "object"]}),
        ParamType::Verbosity => json!({"type": ["number", "boolean"]}),
        ParamType::Any => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_a_result_is_that_of_its_description() {
        assert_eq!(result("n    (numeric) The height."), json!({"type": "number"}));
        let both = "\"hex\"    (string) The block.\n{...}    (json object) With verbosity 1.";
        assert_eq!(result(both), json!({"type": ["object", "string"]}));
        assert_eq!(result("What it finds."), json!({}));
    }

    #[test]
    fn methods_are_listed_by_name_with_their_parameters() {
        let specs: Vec<MethodSpec> = serde_json::from_value(json!([
            {"name": "b", "category": "C", "help": "Does.\nMore.", "params": [
                {"name": "x", "type": "verbosity", "required": true, "help": "How much.", "aliases": ["y"]},
                {"name": "o", "type": "object", "help": "More.", "members": [
                    {"name": "z", "type": "string", "help": "What."}]}]},
            {"name": "a", "category": "C", "help": "Is."}
        ]))
        .unwrap();
        let document = document(specs.iter());
        assert_eq!(document["methods"][0]["name"], json!("a"));
        let b = &document["methods"][1];
        assert_eq!((&b["summary"], &b["description"]), (&json!("Does."), &json!("Does.\nMore.")));
        let param = json!({"name": "x", "description": "How much.", "required": true,
            "schema": {"type": ["number", "boolean"]}, "x-aliases": ["y"]});
        let member = json!({"name": "z", "description": "What.", "required": false, "schema": {"type": "string"}});
        let options = json!({"name": "o", "description": "More.", "required": false, "schema": {"type": "object"},
            "x-members": [member]});
        assert_eq!(b["params"], json!([param, options]));
    }
}
