//! The structs and functions of the ABI, and its numeric constants.

use super::comment::{Glossary, comment, heading, noted, since, with_parameters};
use super::names::{abi_type, c_type, member, upper};
use outrigger_abi::layout::{Declaration, FieldLayout, FunctionType, StructLayout};
use outrigger_abi::{ABI_MAJOR, ABI_MINOR, PLUGIN_MAGIC};
use outrigger_service::{ErrorKind, ServiceError};
use outrigger_values::error::{RpcError, RpcErrorCode};

pub(super) fn versions() -> String {
    let magic: String = PLUGIN_MAGIC.to_le_bytes().iter().map(|byte| char::from(*byte)).collect();
    format!(
        "{}
/** The major version of the interface. Host and plugin must have the same. */
#define OUTRIGGER_ABI_MAJOR {ABI_MAJOR}u
/** The minor version of this header: what has been added since the major version began. */
#define OUTRIGGER_ABI_MINOR {ABI_MINOR}u
/** Begins an outrigger_plugin_t: `{magic}`. */
#define OUTRIGGER_PLUGIN_MAGIC UINT64_C({PLUGIN_MAGIC:#x})
",
        heading("Versions")
    )
}

pub(super) fn numbers() -> String {
    let entry = |name: String, number: i32, docs: &str| noted(4, &format!("{name} = {number},"), docs.trim());
    let mut out = heading("Statuses and codes");
    out += "\n/** What functions answer: 0, or which kind of trouble there was. One that is not listed here is a newer host's, and means\n *  as much as OUTRIGGER_STATUS_INTERNAL. */\nenum {\n";
    out += &entry("OUTRIGGER_STATUS_OK".to_owned(), 0, "Success.");
    for (kind, name, docs) in ErrorKind::ALL {
        out += &entry(format!("OUTRIGGER_STATUS_{}", upper(name)), *kind as i32, docs);
    }
    out += "};\n\n/** The codes of JSON-RPC errors, as bitcoind uses them. A plugin may answer with one of its own. */\nenum {\n";
    for (code, name, docs) in RpcErrorCode::ALL {
        out += &entry(format!("OUTRIGGER_CODE_{name}"), code.0, docs);
    }
    out + "};\n"
}

/// The JSON-RPC error of each service status: its code, whether the service's detail is ignored, and its message.
pub(super) fn failures() -> String {
    let mut out = String::new();
    for (kind, name, _) in ErrorKind::ALL {
        let bare = RpcError::from(ServiceError::from(*kind));
        let told = RpcError::from(ServiceError::new(*kind, "told"));
        let code =
            RpcErrorCode::ALL.iter().find(|(code, ..)| *code == bare.code).map_or("INTERNAL", |(_, name, _)| name);
        let (fixed, text) = (told.message != "told", literal(&bare.message));
        out += &format!("        {{ OUTRIGGER_STATUS_{}, OUTRIGGER_CODE_{code}, {fixed}, {text} }},\n", upper(name));
    }
    out.trim_end().to_owned()
}

fn literal(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The declarations, with assertions of sizes and offsets.
pub(super) fn declarations(all: &[Declaration], glossary: &Glossary) -> String {
    let mut out = heading("Structs and functions");
    for declaration in all {
        match declaration {
            Declaration::Struct(layout) => out += &structure(layout, glossary),
            Declaration::Functions(functions) => {
                for function in *functions {
                    out += &function_type(function, glossary);
                }
            }
        }
    }
    out
}

fn with_since(mut paragraphs: Vec<String>, minor: u32) -> Vec<String> {
    if let Some(first) = paragraphs.first_mut() {
        *first += &since(minor);
    }
    paragraphs
}

fn function_type(function: &FunctionType, glossary: &Glossary) -> String {
    let params: Vec<String> =
        function.params.iter().map(|(name, rust)| format!("{}{}", c_type(rust), member(name))).collect();
    let docs = with_since(glossary.paragraphs(function.docs), function.since);
    let head = format!("typedef {}(*{})", c_type(function.result), abi_type(function.name));
    format!("\n{}{};\n", comment(0, &docs), with_parameters(&head, &params))
}

fn structure(layout: &StructLayout, glossary: &Glossary) -> String {
    let name = abi_type(layout.name);
    let mut out = format!("\n{}typedef struct {name} {{\n", comment(0, &glossary.paragraphs(layout.docs)));
    // A field without size marks an offset beyond the struct's fields.
    let there = |field: &&FieldLayout| field.size > 0;
    for field in layout.fields.iter().filter(there) {
        out += &comment(4, &with_since(vec![glossary.sentence(field.docs)], field.since));
        out += &format!("    {}{};\n", c_type(field.rust_type), member(field.name));
    }
    out += &format!("}} {name};\n\n");
    out += &format!("OUTRIGGER_SIZE_IS({name}, {});\n", layout.size_at(ABI_MINOR));
    for field in layout.fields.iter().filter(there) {
        out += &format!("OUTRIGGER_OFFSET_IS({name}, {}, {});\n", member(field.name), field.offset);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_header_has_an_error_for_every_kind_of_service_error() {
        let errors = failures();
        let locked = "{ OUTRIGGER_STATUS_WALLET_LOCKED, OUTRIGGER_CODE_WALLET_UNLOCK_NEEDED, true, ";
        assert!(errors.contains(locked), "{errors}");
        assert_eq!(errors.lines().count(), ErrorKind::ALL.len());
        // Their message is fixed; the service's detail is dropped.
        assert_eq!(errors.matches(", true, ").count(), 5);
    }
}
