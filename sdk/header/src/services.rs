//! The services: their names, and the positions of their functions with their requests and responses.

use super::comment::{Glossary, comment, heading, since};
use super::messages::fields;
use super::names::{encoding, index, service};
use outrigger_service::wire::{FunctionShape, ServiceShape};

/// The name of a service, and the positions of its functions.
pub(super) fn positions(glossary: &Glossary, shape: &'static ServiceShape) -> String {
    let name = service(shape);
    let mut out = heading(&format!("The service {}", shape.name));
    let docs = comment(0, &glossary.paragraphs(shape.docs));
    out += &format!("\n{docs}#define OUTRIGGER_SERVICE_{} \"{}\"\n\nenum {{\n", name.to_ascii_uppercase(), shape.name);
    for (position, function) in shape.functions.iter().enumerate() {
        let text = glossary.sentence(function.docs) + &since(function.since) + &messages_of(function);
        out += &comment(4, &[text]);
        out += &format!("    {} = {position},\n", index(shape, function.name));
    }
    out + "};\n"
}

/// The encodings of a function's request and response.
fn messages_of(function: &FunctionShape) -> String {
    let request = if function.request.is_empty() { "nothing".to_owned() } else { fields(function.request) };
    format!(" Request: {request}. Response: {}.", encoding(function.response))
}
