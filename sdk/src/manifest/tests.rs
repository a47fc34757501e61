use super::help::words;
use outrigger_values::text::is_control;

use super::*;
use serde_json::json;

fn manifest(methods: Value) -> Result<Manifest, ManifestError> {
    let json = json!({"id": "x", "version": "1", "summary": "s", "methods": methods,
        "options": [{"name": "depth", "type": "integer", "default": 6, "help": "h"}]});
    Manifest::parse(json.to_string().as_bytes())
}

#[test]
fn usage_shows_what_may_be_left_out() {
    let manifest = manifest(json!([{"name": "m", "category": "c", "help": "Does.", "params": [
        {"name": "a", "type": "string", "required": true, "help": "First."},
        {"name": "b", "type": "numeric", "help": "Second.", "default": "6"},
        {"name": "c", "type": "object", "help": "Third."}]}]))
    .unwrap();
    assert_eq!(manifest.methods[0].usage(), "m \"a\" ( b {...} )");
    assert_eq!(manifest.methods[0].required(), 1);
}

#[test]
fn help_is_laid_out_as_bitcoinds() {
    let manifest = manifest(json!([
        {"name": "getblockhash", "category": "c", "help": "Returns a hash.", "example": "1000",
            "params": [{"name": "height", "type": "numeric", "required": true, "help": "The height index"}],
            "result": "\"hex\"    (string) The block hash"},
        {"name": "m", "category": "c", "help": "Does.", "example": r#"'it'\''s "1"' "[\"k\"]" nix"#, "params": [
            {"name": "a", "type": "hex", "help": "First."},
            {"name": "longest", "type": "array", "help": "Second,\nin two lines.", "default": "[]"},
            {"name": "c", "type": "any", "help": "Third."}]}
    ]))
    .unwrap();
    let curl = "> curl --user myusername --data-binary '{\"jsonrpc\": \"2.0\", \"id\": \"curltest\", \"method\":";
    let end = "}' -H 'content-type: application/json' http://127.0.0.1:18443/\n";
    let expected = format!(
        "getblockhash height\n\nReturns a hash.\n\nArguments:\n1. height    (numeric, required) The height index\n\n\
         Result:\n\"hex\"    (string) The block hash\n\n\
         Examples:\n> outrigger call getblockhash 1000\n{curl} \"getblockhash\", \"params\": [1000]{end}"
    );
    assert_eq!(manifest.methods[0].full_help(), expected);
    let help = manifest.methods[1].full_help();
    let arguments = "1. a          (string, optional) First.\n\
                     2. longest    (json array, optional, default=[]) Second,\n              in two lines.\n\
                     3. c          (any, optional) Third.\n";
    assert!(help.contains(arguments), "{help}");
    let example = format!("{curl} \"m\", \"params\": [\"it'\\''s \\\"1\\\"\", [\"k\"], \"nix\"]{end}");
    assert!(help.ends_with(&example), "{help}");
}

#[test]
fn help_without_an_example_has_samples_of_the_required_arguments() {
    let manifest = manifest(json!([{"name": "m", "category": "c", "help": "Does.", "params": [
        {"name": "label", "type": "string", "required": true, "help": "First."},
        {"name": "other", "type": "numeric", "required": true, "help": "Second."},
        {"name": "address", "type": "string", "help": "Third."}]}]))
    .unwrap();
    assert_eq!(manifest.methods[0].example_arguments(), "rent OTHER");
}

#[test]
fn an_example_that_no_shell_reads_has_no_json() {
    assert_eq!(words(r#"a 'b c' "d\"\e" "" f\ g"#).unwrap(), ["a", "b c", "d\"\\e", "", "f g"]);
    assert_eq!(words("").unwrap(), [""; 0]);
    for open in ["'", "a \"b", "a\\"] {
        assert_eq!(words(open), None, "{open}");
    }
}

#[test]
fn inconsistent_manifests_are_refused_by_name() {
    let twice = json!([{"name": "m", "category": "c", "help": ""}, {"name": "m", "category": "c", "help": ""}]);
    assert_eq!(manifest(twice).unwrap_err().to_string(), "the manifest lists the method 'm' twice");
    let order = json!([{"name": "m", "category": "c", "help": "", "params": [
        {"name": "a", "type": "string", "help": ""}, {"name": "b", "type": "string", "required": true, "help": ""}]}]);
    assert!(manifest(order).unwrap_err().to_string().contains("requires 'b' after an optional"));
    assert!(manifest(json!([{"name": "m"}])).unwrap_err().to_string().contains("category"));
}

#[test]
fn options_are_checked_and_completed() {
    let manifest = manifest(json!([])).unwrap();
    assert_eq!(manifest.options(&Map::new()).unwrap()["depth"], json!(6));
    let wrong = json!({"depth": "six"}).as_object().unwrap().clone();
    assert_eq!(manifest.options(&wrong).unwrap_err().to_string(), "option 'depth' must be of type integer");
    let unknown = json!({"dept": 1}).as_object().unwrap().clone();
    assert_eq!(manifest.options(&unknown), Err(OptionError::Unknown("dept".into())));
}

#[test]
fn unknown_networks_and_calls_without_their_service_are_refused() {
    let read = |more: Value| {
        let mut json = json!({"id": "a", "version": "1", "summary": "", "methods": []});
        json.as_object_mut().unwrap().append(&mut more.as_object().unwrap().clone());
        Manifest::parse(json.to_string().as_bytes()).map_err(|error| error.to_string())
    };
    assert!(read(json!({"requires": {"network": "main"}})).is_ok());
    let refused = read(json!({"requires": {"network": "mainnet"}})).unwrap_err();
    assert!(refused.ends_with("'mainnet': it may be main, test, testnet4, signet or regtest"), "{refused}");
    assert!(read(json!({"calls": ["getblock"], "optional": ["rpc/1"]})).is_ok());
    let refused = read(json!({"calls": ["getblock"]})).unwrap_err();
    assert_eq!(refused, "the manifest has `calls` without 'rpc/1' in `services` or `optional`");
}

#[test]
fn a_method_name_that_is_not_plain_is_refused() {
    let named = |name: &str| manifest(json!([{"name": name, "category": "c", "help": ""}]));
    for name in ["getblock", "rpc.discover", "a-b_c.D9", &"x".repeat(64)] {
        assert!(named(name).is_ok(), "{name}");
    }
    for name in ["", "a b", "a/b", "a\"b", "a{b}", "grün", &"x".repeat(65)] {
        let refusal = named(name).unwrap_err().to_string();
        assert!(refusal.contains(&format!("'{name}' is not plain")), "{refusal}");
    }
    let refusal = named("a\nb\u{1b}c").unwrap_err().to_string();
    assert!(!refusal.contains(is_control), "{refusal:?}");
}

#[test]
fn no_control_character_of_a_manifest_gets_past_its_reader() {
    let with = |place: &str, text: &str| {
        let mut json = json!({"id": "x", "version": "1", "summary": "s", "services": ["chain/1"], "optional": ["log/1"],
            "events": ["tip"], "options": [{"name": "depth", "type": "string", "default": "6", "help": "h"}],
            "methods": [{"name": "m", "category": "c", "help": "h", "result": "r", "example": "e",
                "params": [{"name": "a", "type": "string", "default": "d", "help": "h", "aliases": ["b"]}]}]});
        *json.pointer_mut(place).unwrap() = json!(text);
        Manifest::parse(json.to_string().as_bytes())
    };
    let single = ["/version", "/summary", "/services/0", "/optional/0", "/options/0/name", "/options/0/default"];
    let methods =
        ["/methods/0/category", "/methods/0/example", "/methods/0/params/0/name", "/methods/0/params/0/aliases/0"];
    let several = ["/options/0/help", "/methods/0/help", "/methods/0/result", "/methods/0/params/0/help"];
    for place in single.iter().chain(&methods).chain(&several) {
        for bad in ["a\u{1b}[2J", "a\r", "a\u{9b}1m", "a\u{202e}", "a\t", "a\0"] {
            let refusal = with(place, bad).unwrap_err().to_string();
            assert!(refusal.starts_with("the manifest has a control character in "), "{place} {bad:?}");
        }
        assert_eq!(with(place, "two\nlines").is_ok(), several.contains(place), "{place}");
    }
    let refusal = with("/methods/0/params/0/name", "a\n").unwrap_err().to_string();
    assert_eq!(refusal, "the manifest has a control character in methods[0].params[0].name");
    for json in [r#"{"\u001b[31m": 1}"#, r#"{"id": "\u001b[31m", "version": "1", "summary": "", "methods": []}"#] {
        let refusal = Manifest::parse(json.as_bytes()).unwrap_err().to_string();
        assert!(!refusal.contains(is_control), "{refusal:?}");
    }
}

#[test]
fn what_a_plugin_asks_to_reach_follows_its_options() {
    let read = |to: &str| {
        let json = json!({"id": "x", "version": "1", "summary": "s", "methods": [],
            "reach": [{"to": to, "help": "The vault."}],
            "options": [{"name": "socket", "type": "string", "default": "/run/a", "help": "h"},
                {"name": "port", "type": "integer", "default": 7, "help": "h"}]});
        Manifest::parse(json.to_string().as_bytes())
    };
    let asked = |to: &str, given: Value| {
        let manifest = read(to).unwrap();
        manifest.reach[0].with(&manifest.options(given.as_object().unwrap()).unwrap())
    };
    assert_eq!(asked("read:/etc/acme", json!({})).as_deref(), Some("read:/etc/acme"));
    assert_eq!(asked("connect:unix:{socket}", json!({})).as_deref(), Some("connect:unix:/run/a"));
    assert_eq!(asked("connect:unix:{socket}", json!({"socket": ""})), None);
    let both = asked("read:{socket}/{port}.key", json!({"port": 8}));
    assert_eq!(both.as_deref(), Some("read:/run/a/8.key"));
    let error = read("connect:unix:{sock}").unwrap_err().to_string();
    assert_eq!(error, "the manifest asks to reach 'connect:unix:{sock}', and has no option 'sock'");
    let error = read("/etc/acme").unwrap_err().to_string();
    assert!(error.starts_with("the manifest asks to reach '/etc/acme', which does not begin with read:, "), "{error}");
}
