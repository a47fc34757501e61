//! The services: names, and function indexes with requests and responses.

use super::comment::{Glossary, first_sentence, heading, note, noted, since};
use super::messages::fields;
use super::names::{encoding, index, service};
use outrigger_service::wire::{FunctionShape, ServiceShape};

pub(super) fn positions(glossary: &Glossary, shape: &'static ServiceShape) -> String {
    let name = service(shape);
    let mut out = heading(&format!("The service {}", shape.name));
    let about = glossary.sentence(shape.docs);
    out += &format!("\n{}", note(0, &format!("{}.", first_sentence(&about))));
    out += &format!("#define OUTRIGGER_SERVICE_{} \"{}\"\nenum {{\n", name.to_ascii_uppercase(), shape.name);
    for (position, function) in shape.functions.iter().enumerate() {
        let about = glossary.sentence(function.docs);
        let text = format!("{}: {}.{}", messages_of(function), first_sentence(&about), since(function.since));
        out += &noted(4, &format!("{} = {position},", index(shape, function.name)), &text);
    }
    out + "};\n"
}

fn messages_of(function: &FunctionShape) -> String {
    format!("({}) -> {}", fields(function.request), encoding(function.response))
}
