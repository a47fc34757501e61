//! The structs and functions of the ABI, and its numeric constants.

use super::comment::{Glossary, WIDTH, comment, noted, since, with_parameters, wrap};
use super::names::{abi_type, c_type, upper};
use outrigger_abi::layout::{Declaration, FunctionType, StructLayout};
use outrigger_abi::{ABI_MINOR, DECLARATIONS, ErrorKind};
use outrigger_values::error::RpcErrorCode;

pub(super) fn statuses() -> String {
    let status = |(kind, name, docs): &(ErrorKind, &str, &str)| {
        noted(&format!("OUTRIGGER_STATUS_{} = {},", upper(name), *kind as i32), docs.trim())
    };
    ErrorKind::ALL.iter().map(status).collect::<String>().trim_end().to_owned()
}

pub(super) fn codes() -> String {
    let codes = RpcErrorCode::ALL.iter().map(|(code, name, _)| format!("OUTRIGGER_CODE_{name} = {}", code.0));
    format!("    {},", wrap(&codes.collect::<Vec<_>>().join(", "), ", ", WIDTH - 5).join(",\n    "))
}

/// The structs, with assertions of their sizes. Each function type is declared at its field.
pub(super) fn structs() -> String {
    let glossary = Glossary::new();
    let layouts = DECLARATIONS.iter().filter_map(|declaration| match declaration {
        Declaration::Struct(layout) => Some(layout),
        Declaration::Functions(_) => None,
    });
    layouts.map(|layout| structure(layout, &glossary)).collect()
}

fn structure(layout: &StructLayout, glossary: &Glossary) -> String {
    let name = abi_type(layout.name);
    let mut out = format!("\n{}typedef struct {name} {{\n", comment("", &glossary.paragraphs(layout.docs)));
    for field in layout.fields {
        out += &match function_type(field.rust_type) {
            Some(function) => member(field.name, function, glossary),
            None => {
                let about = glossary.paragraphs(field.docs).join(" ") + &since(field.since);
                noted(&format!("{}{};", c_type(field.rust_type), field.name), &about)
            }
        };
    }
    out + &format!("}} {name};\nOUTRIGGER_SIZE_IS({name}, {});\n", layout.size_at(ABI_MINOR))
}

fn function_type(rust: &str) -> Option<&'static FunctionType> {
    let name = rust.strip_prefix("Option<").and_then(|rest| rest.strip_suffix('>')).unwrap_or(rust);
    let functions = DECLARATIONS.iter().flat_map(|declaration| match declaration {
        Declaration::Struct(_) => &[],
        Declaration::Functions(functions) => *functions,
    });
    functions.into_iter().find(|function| function.name == name)
}

/// A pointer to a function in a struct.
fn member(name: &str, function: &FunctionType, glossary: &Glossary) -> String {
    let is_rule = |text: &String| ["Threads:", "Ownership:", "Lifetime:"].iter().any(|label| text.starts_with(label));
    let (rules, mut docs): (Vec<_>, Vec<_>) = glossary.paragraphs(function.docs).into_iter().partition(is_rule);
    if let Some(first) = docs.first_mut() {
        *first += &since(function.since);
    }
    docs.push(rules.join(" "));
    let params: Vec<String> = function.params.iter().map(|(name, rust)| format!("{}{name}", c_type(rust))).collect();
    let head = format!("    {}(*{name})", c_type(function.result));
    format!("{}{};\n", comment("    ", &docs), with_parameters(&head, &params))
}
