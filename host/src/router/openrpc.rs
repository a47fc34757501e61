//! `rpc.discover`: an OpenRPC document of the methods of a running host, generated from the manifests.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use outrigger_passthrough::NodeHelp;
use outrigger_sdk::manifest::{MethodSpec, ParamSpec, ParamType};
use serde_json::{Value, json};

const OPENRPC: &str = "1.3.2";

/// The extension for a method's category, in lower case. Like the next one it is Bitcoin Core's.
const CATEGORY: &str = "x-bitcoin-category";

/// The extension that lists a parameter's other names.
pub const ALIASES: &str = "x-bitcoin-aliases";

/// The extension that lists an object's members that a client may pass as named arguments.
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

/// Describes the methods of a node without an OpenRPC document: Bitcoin Core before 31. `rows` are the arguments of its methods, each
/// as method, position, name, and whether it is text. They do not say which arguments are required.
pub fn of_help(help: &NodeHelp, rows: &[Value]) -> Value {
    let describe = |row: &Value| {
        let schema = if row[3] == true { json!({"type": "string"}) } else { json!({}) };
        let name = row[2].as_str().unwrap_or_default().split('|').next();
        json!({"name": name, "description": "", "required": false, "schema": schema})
    };
    let params = |name: &str| {
        let mut params = BTreeMap::<u64, Value>::new();
        for row in rows.iter().filter(|row| row[0] == name) {
            match params.entry(row[1].as_u64().unwrap_or_default()) {
                Entry::Vacant(vacant) => drop(vacant.insert(describe(row))),
                // A second row for a position is a member of the object there, which a client may pass as a named argument.
                Entry::Occupied(mut object) => match &mut object.get_mut()[MEMBERS] {
                    Value::Array(members) => members.push(describe(row)),
                    none => *none = json!([describe(row)]),
                },
            }
        }
        params.into_values().collect::<Value>()
    };
    let methods = help.iter().map(|(name, known)| {
        json!({
            "name": name,
            "summary": known.usage,
            "description": known.usage,
            CATEGORY: known.category.to_lowercase(),
            "paramStructure": "either",
            "params": params(name),
            "result": {"name": "result", "description": "", "schema": {}},
        })
    });
    json!({"methods": methods.collect::<Vec<_>>()})
}

fn method(spec: &MethodSpec) -> Value {
    let summary = spec.help.lines().next().unwrap_or_default();
    json!({
        "name": spec.name,
        "summary": summary,
        "description": spec.help,
        CATEGORY: spec.category.to_lowercase(),
        "paramStructure": "either",
        "params": spec.params.iter().map(param).collect::<Vec<_>>(),
        "result": {"name": "result", "description": spec.result, "schema": result(&spec.result)},
    })
}

/// The types of a result, taken from its description, such as `n    (numeric) The height.`
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
    // As in Bitcoin Core: a value, or words.
    match serde_json::from_str::<Value>(&spec.default) {
        Ok(value) => described["schema"]["default"] = value,
        Err(_) if spec.default.is_empty() => {}
        Err(_) => described["schema"]["x-bitcoin-default-hint"] = json!(spec.default),
    }
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
    fn a_node_without_a_document_is_described_by_its_help() {
        let help = NodeHelp::parse("== Wallet ==\nsend [{\"address\":amount,...},...] ( options )\nping\n");
        let rows = json!([
            ["send", 0, "outputs", false],
            ["send", 1, "options", false],
            ["send", 1, "change|change_address", true],
            ["other", 0, "x", true]
        ]);
        let document = of_help(&help, rows.as_array().unwrap());
        let param =
            |name: &str, schema: Value| json!({"name": name, "description": "", "required": false, "schema": schema});
        let mut options = param("options", json!({}));
        options[MEMBERS] = json!([param("change", json!({"type": "string"}))]);
        assert_eq!(document["methods"][0]["params"], json!([]));
        assert_eq!(document["methods"][1]["params"], json!([param("outputs", json!({})), options]));
        assert_eq!(document["methods"][1]["x-bitcoin-category"], json!("wallet"));
    }

    #[test]
    fn methods_are_listed_by_name_with_their_parameters() {
        let specs: Vec<MethodSpec> = serde_json::from_value(json!([
            {"name": "b", "category": "C", "help": "Does.\nMore.", "params": [
                {"name": "x", "type": "verbosity", "required": true, "help": "How much.", "default": "1",
                    "aliases": ["y"]},
                {"name": "o", "type": "object", "help": "More.", "members": [
                    {"name": "z", "type": "string", "help": "What.", "default": "that of x"}]}]},
            {"name": "a", "category": "C", "help": "Is."}
        ]))
        .unwrap();
        let document = document(specs.iter());
        assert_eq!(document["methods"][0]["name"], json!("a"));
        let b = &document["methods"][1];
        assert_eq!((&b["summary"], &b["description"]), (&json!("Does."), &json!("Does.\nMore.")));
        let param = json!({"name": "x", "description": "How much.", "required": true,
            "schema": {"type": ["number", "boolean"], "default": 1}, "x-bitcoin-aliases": ["y"]});
        let member = json!({"name": "z", "description": "What.", "required": false,
            "schema": {"type": "string", "x-bitcoin-default-hint": "that of x"}});
        let options = json!({"name": "o", "description": "More.", "required": false, "schema": {"type": "object"},
            "x-members": [member]});
        assert_eq!(b["params"], json!([param, options]));
    }
}
