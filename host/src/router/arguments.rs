//! Turns named arguments into positional ones, and checks their number and, if the manifest requires it, their types.
//!
//! The JSON text of each value is passed on unchanged, so that amounts keep their digits.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write;

use outrigger_sdk::manifest::{MethodSpec, ParamSpec, ParamType};
use outrigger_standard::release::Rules;
use outrigger_values::RpcError;
use outrigger_values::RpcErrorCode;
use serde_json::Value;
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use outrigger_rpc::{Items, Params, items};

/// The member of named parameters that holds leading positional arguments.
const ARGS: &str = "args";

/// The arguments of a call as a JSON array in the order of the manifest.
pub enum Arguments {
    /// As the client wrote them, without a copy.
    Given(Params),
    /// Reordered, or parsed from JSON strings.
    Ordered(Zeroizing<String>),
}

impl Arguments {
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Given(params) => params.as_bytes(),
            Self::Ordered(text) => text.as_bytes(),
        }
    }
}

/// The parameters that a method has in a release.
struct Signature<'s> {
    method: &'s MethodSpec,
    rules: &'s Rules,
    /// Whether the release lacks any arguments of the method.
    narrows: bool,
    params: Vec<&'s ParamSpec>,
}

impl<'s> Signature<'s> {
    fn of(method: &'s MethodSpec, rules: &'s Rules) -> Self {
        let narrows = rules.narrows(&method.name);
        let has = |param: &&ParamSpec| !narrows || !rules.lacks(&method.name, &param.name);
        Self { method, rules, narrows, params: method.params.iter().filter(has).collect() }
    }

    /// The members of an object parameter that a client may pass as named arguments.
    fn members(&self, param: &'s ParamSpec) -> impl Iterator<Item = &'s ParamSpec> {
        param.members.iter().filter(|member| !self.narrows || !self.rules.lacks(&self.method.name, &member.name))
    }

    fn wrong_number(&self) -> RpcError {
        RpcError::misc(self.method.under(self.rules).full_help())
    }
}

/// Reads the arguments of a call.
///
/// # Errors
/// -8 for unknown names and duplicate parameters, -1 with the help text for a wrong number, and -3 for wrong types if
/// the manifest requires the check.
pub fn positional(method: &MethodSpec, rules: &Rules, params: &Params) -> Result<Arguments, RpcError> {
    let text = std::str::from_utf8(params.as_bytes()).map_err(|_| RpcError::new(RpcErrorCode::PARSE, "Parse error"))?;
    let signature = Signature::of(method, rules);
    let values: Vec<Cow<'_, str>> = if params.is_named() {
        from_names(&signature, text)?
    } else {
        listed(&signature, text)?.into_iter().map(|value| Cow::Borrowed(value.get())).collect()
    };
    if values.len() < method.required() || values.len() > signature.params.len() {
        return Err(signature.wrong_number());
    }
    let values: Vec<_> =
        values.into_iter().zip(&signature.params).map(|(value, param)| unwrap_text(param.kind, value)).collect();
    if method.check_types {
        check_types(&signature, &values)?;
    }
    for (value, param) in values.iter().zip(&signature.params) {
        match param.kind {
            ParamType::Amounts => check_addresses(value)?,
            ParamType::Outputs => check_outputs(value)?,
            _ => {}
        }
    }
    if !params.is_named() && values.iter().all(|value| matches!(value, Cow::Borrowed(_))) {
        return Ok(Arguments::Given(params.clone()));
    }
    // Allocated at full size, since a reallocation would leave a copy of a secret behind; wiped on drop.
    let room = values.iter().map(|value| value.len() + 1).sum::<usize>() + 2;
    let mut array = Zeroizing::new(String::with_capacity(room));
    array.push('[');
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            array.push(',');
        }
        array.push_str(value);
    }
    array.push(']');
    Ok(Arguments::Ordered(array))
}

/// How many members beyond the known names are kept of named parameters. A call with more members is wrong, and the kept
/// ones suffice for the error.
const SPARE_MEMBERS: usize = 64;

/// The items of an array of arguments. They are valid JSON, so only their number can be wrong.
fn listed<'a>(signature: &Signature<'_>, text: &'a str) -> Result<Vec<&'a RawValue>, RpcError> {
    match items(text, signature.params.len()) {
        Ok(Items { kept, count }) if count == kept.len() => Ok(kept.into_iter().map(|(_, value)| value).collect()),
        _ => Err(signature.wrong_number()),
    }
}

/// Orders named arguments. Missing ones become null, or are dropped at the end. Errors are in bitcoind's order: a
/// duplicate name, a parameter both by position and by name, an unknown name.
fn from_names<'a>(signature: &Signature<'_>, text: &'a str) -> Result<Vec<Cow<'a, str>>, RpcError> {
    let known: usize = signature.params.iter().map(|param| 1 + param.members.len()).sum();
    let mut members = items(text, known + SPARE_MEMBERS).map_err(|_| signature.wrong_number())?.kept;
    let refused = |message: String| Err(RpcError::invalid_parameter(message));
    let is_repeated = |(index, (name, _)): &(usize, &(String, _))| members.iter().take(*index).any(|(n, _)| n == name);
    if let Some((_, (name, _))) = members.iter().enumerate().find(is_repeated) {
        return refused(format!("Parameter {name} specified multiple times"));
    }
    let mut take = |name: &str| {
        let index = members.iter().position(|(member, _)| member == name)?;
        Some(members.remove(index).1.get())
    };
    let slots: Result<Vec<_>, _> = signature.params.iter().map(|param| slot(signature, param, &mut take)).collect();
    let mut slots = slots?;
    let is_args = |(name, value): &mut (String, &RawValue)| name == ARGS && value.get().starts_with('[');
    let args = members.extract_if(.., is_args).next();
    let leading = args.map_or(Ok(Vec::new()), |(_, args)| listed(signature, args.get()));
    let count = leading.as_ref().map_or(usize::MAX, Vec::len);
    if let Some((param, _)) = signature.params.iter().zip(&slots).take(count).find(|(_, slot)| slot.is_some()) {
        let pattern = names(param).collect::<Vec<_>>().join("|");
        return refused(format!("Parameter {pattern} specified twice both as positional and named argument"));
    }
    if let Some((name, _)) = members.iter().find(|(name, _)| name == ARGS).or(members.last()) {
        return refused(format!("Unknown named parameter {name}"));
    }
    for (slot, value) in slots.iter_mut().zip(leading?) {
        *slot = Some(Cow::Borrowed(value.get()));
    }
    while slots.last().is_some_and(Option::is_none) {
        slots.pop();
    }
    Ok(slots.into_iter().map(|slot| slot.unwrap_or(Cow::Borrowed("null"))).collect())
}

/// The named value of a parameter, or an object of its members that were named. `take` removes a member of the call. If
/// a client uses two names of a parameter, the second is left over and refused later.
fn slot<'a>(
    signature: &Signature<'_>,
    param: &ParamSpec,
    take: &mut impl FnMut(&str) -> Option<&'a str>,
) -> Result<Option<Cow<'a, str>>, RpcError> {
    let mut by_name = |spec: &ParamSpec| names(spec).find_map(|name| take(name).map(|value| (name.to_owned(), value)));
    let members: Vec<(String, &str)> = signature.members(param).filter_map(&mut by_name).collect();
    let given = by_name(param);
    match (members.first(), given) {
        (None, given) => Ok(given.map(|(_, value)| Cow::Borrowed(value))),
        (Some((member, _)), Some((name, _))) => {
            let message = format!("Parameter {name} conflicts with parameter {member}");
            Err(RpcError::invalid_parameter(message))
        }
        (Some(_), None) => {
            let members = members.iter().map(|(name, value)| format!("{}:{value}", Value::from(name.as_str())));
            Ok(Some(Cow::Owned(format!("{{{}}}", members.collect::<Vec<_>>().join(",")))))
        }
    }
}

pub fn names(param: &ParamSpec) -> impl Iterator<Item = &str> {
    std::iter::once(&*param.name).chain(param.aliases.iter().map(String::as_str))
}

/// Parses a JSON string if it contains an array or object of the declared type, since some clients send these as strings.
fn unwrap_text(kind: ParamType, value: Cow<'_, str>) -> Cow<'_, str> {
    let openings: &[char] = match kind {
        ParamType::Array => &['['],
        ParamType::Object | ParamType::Amounts => &['{'],
        ParamType::Outputs => &['[', '{'],
        _ => return value,
    };
    if !value.starts_with('"') {
        return value;
    }
    let Ok(mut inner) = serde_json::from_str::<String>(&value) else { return value };
    inner.truncate(inner.trim_end().len());
    inner.drain(..inner.len() - inner.trim_start().len());
    match inner.starts_with(openings) && serde_json::from_str::<&RawValue>(&inner).is_ok() {
        true => Cow::Owned(inner),
        false => value,
    }
}

/// bitcoind's name of a value's JSON type.
fn type_name(value: &str) -> &'static str {
    match value.as_bytes().first() {
        Some(b'"') => "string",
        Some(b'[') => "array",
        Some(b'{') => "object",
        Some(b't' | b'f') => "bool",
        Some(b'n') => "null",
        _ => "number",
    }
}

/// Checks argument types like Bitcoin Core 29: one error reports all mismatches.
fn check_types(signature: &Signature<'_>, values: &[Cow<'_, str>]) -> Result<(), RpcError> {
    let mut mismatches = String::new();
    for (index, (value, param)) in values.iter().zip(&signature.params).enumerate() {
        let (got, Some(wanted)) = (type_name(value), param.kind.expected()) else { continue };
        if got == wanted || (got == "null" && !(param.required && param.default.is_empty())) {
            continue;
        }
        if !mismatches.is_empty() {
            mismatches.push_str(",\n");
        }
        // Writing to a String cannot fail.
        let _ = write!(
            mismatches,
            "    \"Position {} ({})\": \"JSON value of type {got} is not of expected type {wanted}\"",
            index + 1,
            param.name
        );
    }
    if mismatches.is_empty() {
        return Ok(());
    }
    Err(RpcError::type_error(format!("Wrong type passed:\n{{\n{mismatches}\n}}")))
}

/// Refuses an object of amounts with a duplicate key, in bitcoind's words.
fn check_addresses(amounts: &str) -> Result<(), RpcError> {
    if !amounts.starts_with('{') {
        return Ok(());
    }
    let keys = keys(amounts);
    let mut seen = HashSet::new();
    match keys.iter().find(|(key, _)| !seen.insert(key)) {
        Some((key, _)) if key == "data" => Err(RpcError::invalid_parameter("Invalid parameter, duplicate key: data")),
        Some((key, _)) => Err(RpcError::invalid_parameter(format!("Invalid parameter, duplicated address: {key}"))),
        None => Ok(()),
    }
}

/// Like [`check_addresses`], and refuses an object with two keys in an array of outputs, since the second would be lost.
fn check_outputs(outputs: &str) -> Result<(), RpcError> {
    let entries: Vec<&RawValue> = serde_json::from_str(outputs).unwrap_or_default();
    match entries.iter().find(|entry| entry.get().starts_with('{') && keys(entry.get()).len() > 1) {
        Some(_) => Err(RpcError::invalid_parameter("Invalid parameter, key-value pair must contain exactly one key")),
        None => check_addresses(outputs),
    }
}

/// The members of an object, including duplicates.
fn keys(object: &str) -> Vec<(String, &RawValue)> {
    items(object, usize::MAX).unwrap_or_default().kept
}

#[cfg(test)]
mod tests {
    use outrigger_standard::release::rules;
    use serde_json::json;

    use super::*;

    fn positional(method: &MethodSpec, params: &Params) -> Result<Arguments, RpcError> {
        super::positional(method, &rules(None), params)
    }

    fn method(check_types: bool) -> MethodSpec {
        serde_json::from_value(json!({"name": "m", "category": "Test", "help": "Does.", "check_types": check_types,
            "params": [{"name": "a", "type": "string", "required": true, "help": ""},
                {"name": "b", "type": "array", "help": "", "aliases": ["old"]},
                {"name": "c", "type": "numeric", "help": ""}]}))
        .unwrap()
    }

    #[track_caller]
    fn check(params: &str, expected: Result<&str, (i32, &str)>) {
        match (positional(&method(true), &Params::from_text(params)), expected) {
            (Ok(got), Ok(want)) => assert_eq!(got.as_bytes(), want.as_bytes()),
            (Err(error), Err((code, text))) => {
                assert_eq!(error.code.0, code, "{error}");
                assert!(error.message.contains(text), "{error}");
            }
            (got, want) => panic!("{params}: got {:?}, wanted {want:?}", got.map(|_| "arguments")),
        }
    }

    #[test]
    fn arguments_by_name_become_positions() {
        check(r#"{"c":1e-8,"a":"x"}"#, Ok(r#"["x",null,1e-8]"#));
        check(r#"{"a":"x","old":[1]}"#, Ok(r#"["x",[1]]"#));
        check(r#"{"args":["x",[]],"c":3}"#, Ok(r#"["x",[],3]"#));
        check(r#"{"args":["x"],"a":"y"}"#, Err((-8, "Parameter a specified twice both as positional and named")));
        check(r#"{"nope":1}"#, Err((-8, "Unknown named parameter nope")));
        check(r#"{"args":[1,2,3,4]}"#, Err((-1, "m \"a\"")));
    }

    #[test]
    fn a_required_argument_with_a_default_may_be_null() {
        let method: MethodSpec = serde_json::from_value(json!({"name": "m", "category": "Test", "help": "Does.",
            "check_types": true, "params": [{"name": "a", "type": "numeric", "required": true, "default": "0", "help": ""},
                {"name": "b", "type": "numeric", "required": true, "help": ""}]}))
        .unwrap();
        let got = |params| {
            positional(&method, &Params::from_text(params))
                .map(|got| String::from_utf8(got.as_bytes().to_vec()).unwrap())
        };
        assert_eq!(got("[null,1]"), Ok("[null,1]".into()));
        assert_eq!(got(r#"{"b":1}"#), Ok("[null,1]".into()));
        let refused = got(r#"["0",null]"#).unwrap_err().message;
        let of = |place, got| {
            format!("    \"Position {place}\": \"JSON value of type {got} is not of expected type number\"")
        };
        assert_eq!(refused, format!("Wrong type passed:\n{{\n{},\n{}\n}}", of("1 (a)", "string"), of("2 (b)", "null")));
    }

    #[test]
    fn arguments_by_name_are_refused_in_bitcoinds_order() {
        let twice = "Parameter b|old specified twice both as positional and named argument";
        check(r#"{"a":"x","a":"y"}"#, Err((-8, "Parameter a specified multiple times")));
        check(r#"{"args":["x"],"args":[]}"#, Err((-8, "Parameter args specified multiple times")));
        check(r#"{"a":"x","b":[],"old":[]}"#, Err((-8, "Unknown named parameter old")));
        check(r#"{"a":"x","old":[],"b":null}"#, Err((-8, "Unknown named parameter old")));
        check(r#"{"args":["x",[]],"old":[]}"#, Err((-8, twice)));
        check(r#"{"args":["x",null],"b":[],"nope":1}"#, Err((-8, twice)));
        check(r#"{"args":["x",[]],"b":[],"old":[]}"#, Err((-8, twice)));
        check(r#"{"args":["x",1,2,3],"c":3}"#, Err((-8, "Parameter c specified twice")));
        check(r#"{"args":["x",1,2,3],"nope":3}"#, Err((-8, "Unknown named parameter nope")));
        check(r#"{"nope":1,"args":["x"],"nix":1}"#, Err((-8, "Unknown named parameter nix")));
        check(r#"{"args":5,"nope":1}"#, Err((-8, "Unknown named parameter args")));
        let many: Vec<String> = (0..1000).map(|name| format!(r#""x{name}":1"#)).collect();
        check(&format!("{{{}}}", many.join(",")), Err((-8, "Unknown named parameter x")));
        check(&format!("{{{}}}", vec![r#""a":1"#; 1000].join(",")), Err((-8, "Parameter a specified multiple times")));
    }

    #[track_caller]
    fn check_options(params: &str, expected: Result<&str, &str>) {
        let method: MethodSpec = serde_json::from_value(json!({"name": "m", "category": "Test", "help": "Does.",
            "check_types": true, "params": [{"name": "a", "type": "string", "help": ""},
                {"name": "mode", "type": "string", "help": ""},
                {"name": "options", "type": "object", "help": "", "aliases": ["query"], "members": [
                    {"name": "rate", "type": "amount", "help": ""}, {"name": "mode", "type": "string", "help": ""},
                    {"name": "inputs", "type": "array", "help": "", "aliases": ["coins"]}]},
                {"name": "version", "type": "numeric", "help": ""}]}))
        .unwrap();
        let got = positional(&method, &Params::from_text(params));
        match (&got, expected) {
            (Ok(got), Ok(want)) => assert_eq!(got.as_bytes(), want.as_bytes()),
            (Err(error), Err(message)) => assert_eq!((error.code.0, &*error.message), (-8, message), "{params}"),
            _ => panic!("{params}: got {:?}, wanted {expected:?}", got.err()),
        }
    }

    #[test]
    fn options_by_name_are_put_into_their_object() {
        check_options(r#"{"a":"x","rate":1e-8}"#, Ok(r#"["x",null,{"rate":1e-8}]"#));
        check_options(r#"{"coins":[ 1 ],"rate":2}"#, Ok(r#"[null,null,{"rate":2,"coins":[ 1 ]}]"#));
        check_options(r#"{"rate":null,"version":3}"#, Ok(r#"[null,null,{"rate":null},3]"#));
        check_options(r#"{"query":{"rate":2}}"#, Ok(r#"[null,null,{"rate":2}]"#));
        check_options(r#"{"args":["x"],"rate":2}"#, Ok(r#"["x",null,{"rate":2}]"#));
        // A name of both a parameter and a member means the parameter.
        check_options(r#"{"mode":"m","rate":2}"#, Ok(r#"[null,"m",{"rate":2}]"#));
        check_options(r#"{"mode":"m","options":{}}"#, Ok(r#"[null,"m",{}]"#));
    }

    #[test]
    fn an_option_by_name_beside_the_object_is_refused() {
        let conflict = "Parameter options conflicts with parameter rate";
        check_options(r#"{"options":{},"rate":2}"#, Err(conflict));
        check_options(r#"{"rate":2,"options":null,"nope":1}"#, Err(conflict));
        check_options(r#"{"coins":[],"query":{}}"#, Err("Parameter query conflicts with parameter coins"));
        let twice = "Parameter options|query specified twice both as positional and named argument";
        check_options(r#"{"args":["x",null,{"rate":1}],"rate":2}"#, Err(twice));
        check_options(r#"{"args":["x","m",{}],"rate":2,"version":1}"#, Err(twice));
        check_options(r#"{"rate":2,"rate":3}"#, Err("Parameter rate specified multiple times"));
        check_options(r#"{"inputs":[],"coins":[]}"#, Err("Unknown named parameter coins"));
        check_options(r#"{"rate":2,"nope":3}"#, Err("Unknown named parameter nope"));
    }

    #[test]
    fn arguments_are_counted_and_typed() {
        check("[]", Err((-1, "m \"a\" ( [...] c )")));
        check(r#"["a",[],1,2]"#, Err((-1, "m \"a\"")));
        check(
            r#"[1,{}]"#,
            Err((
                -3,
                "Wrong type passed:\n{\n    \"Position 1 (a)\": \"JSON value of type number is not of expected type string\",\n    \"Position 2 (b)\": \"JSON value of type object is not of expected type array\"\n}",
            )),
        );
        check(r#"[null]"#, Err((-3, "JSON value of type null is not of expected type string")));
        check(r#"["a",null,null]"#, Ok(r#"["a",null,null]"#));
    }

    #[test]
    fn arguments_of_outputs_name_no_address_twice() {
        let mut method = method(true);
        method.params[0].kind = ParamType::Amounts;
        let refusal = |params: &str| positional(&method, &Params::from_text(params)).err().unwrap().message;
        assert!(positional(&method, &Params::from_text(r#"[{"x":1,"y":1}]"#)).is_ok());
        assert_eq!(refusal(r#"[{"x":1,"y":2,"x":1}]"#), "Invalid parameter, duplicated address: x");
        assert_eq!(refusal(r#"["{\"x\":1,\"\\u0078\":2}"]"#), "Invalid parameter, duplicated address: x");
        assert_eq!(refusal(r#"{"a":{"data":"00","data":"00"}}"#), "Invalid parameter, duplicate key: data");
        assert!(refusal("[[]]").contains("type array is not of expected type object"));
        let mut method = method.clone();
        method.params[0].kind = ParamType::Outputs;
        let refusal = |params: &str| positional(&method, &Params::from_text(params)).err().unwrap().message;
        assert!(positional(&method, &Params::from_text(r#"[[{"x":1},{"y":1}]]"#)).is_ok());
        assert_eq!(refusal(r#"[{"x":1,"x":1}]"#), "Invalid parameter, duplicated address: x");
        let one_key = "Invalid parameter, key-value pair must contain exactly one key";
        assert_eq!(refusal(r#"["[{\"x\":1,\"x\":1}]"]"#), one_key);
    }

    #[test]
    fn text_that_holds_the_declared_type_is_unwrapped() {
        check(r#"["a","[\"k\"]"]"#, Ok(r#"["a",["k"]]"#));
        check(r#"["a","{}"]"#, Err((-3, "type string is not of expected type array")));
        check(r#"["a","[1"]"#, Err((-3, "type string is not of expected type array")));
        check(r#"["[1]"]"#, Ok(r#"["[1]"]"#));
    }
}
