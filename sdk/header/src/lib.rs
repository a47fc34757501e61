//! Generates the C header of the plugin interface from the Rust declarations, for `outrigger plugin header`.

#![warn(missing_docs)]

mod comment;
mod declarations;
mod messages;
mod names;
mod services;
#[cfg(test)]
mod tests;
mod types;

use comment::{Glossary, heading};
use types::Types;

use outrigger_abi::{ABI_MAJOR, ABI_MINOR, DECLARATIONS, MANIFEST_HEADER_LEN, MANIFEST_MAGIC};
use outrigger_service::events::Event;
use outrigger_service::wire::{ServiceShape, Shape, Wire};
use outrigger_service::{
    Chain, Described, Events, Log, Mempool, Rpc, Signer, WalletAdmin, WalletBook, WalletImport, WalletKeys, WalletPay,
    WalletRead,
};

const SERVICES: [&ServiceShape; 12] = [
    <dyn Chain as Described>::SHAPE,
    <dyn Mempool as Described>::SHAPE,
    <dyn WalletRead as Described>::SHAPE,
    <dyn WalletBook as Described>::SHAPE,
    <dyn WalletPay as Described>::SHAPE,
    <dyn WalletImport as Described>::SHAPE,
    <dyn WalletAdmin as Described>::SHAPE,
    <dyn WalletKeys as Described>::SHAPE,
    <dyn Signer as Described>::SHAPE,
    <dyn Events as Described>::SHAPE,
    <dyn Log as Described>::SHAPE,
    <dyn Rpc as Described>::SHAPE,
];

const EVENT: &Shape = Event::SHAPE;

fn types() -> Types {
    let mut types = Types::default();
    for function in SERVICES.iter().flat_map(|service| service.functions) {
        function.request.iter().for_each(|field| types.add(field.shape));
        types.add(function.response);
    }
    types.add(EVENT);
    types
}

/// A file of the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// For every plugin: layouts, bytes, replies.
    Core,
    /// Parses arguments and prints answers, for plugins without a JSON library.
    Json,
    /// The services with their function indexes, and the messages.
    Services,
}

impl Part {
    /// All files.
    pub const ALL: [Self; 3] = [Self::Core, Self::Json, Self::Services];

    /// The file name.
    pub fn file(self) -> &'static str {
        match self {
            Self::Core => "outrigger.h",
            Self::Json => "outrigger_json.h",
            Self::Services => "outrigger_services.h",
        }
    }
}

/// The text of a file.
pub fn header(part: Part) -> String {
    let types = types();
    let glossary = Glossary::new(&DECLARATIONS, &SERVICES, &types.order);
    match part {
        Part::Core => core(&glossary),
        Part::Json => optional(part, "JSON: arguments and answers", include_str!("text/json.h.in")),
        Part::Services => {
            let services: String =
                SERVICES.into_iter().map(|service| services::positions(&glossary, service)).collect();
            let text = services + &heading("Messages") + "\n" + &messages::messages(&types.order);
            optional(part, "The services, the positions of their functions, and the messages", text.trim_start())
        }
    }
}

fn core(glossary: &Glossary) -> String {
    let mut out = fill(include_str!("text/preface.h.in"));
    out += &declarations::versions();
    out += &declarations::declarations(&DECLARATIONS, glossary);
    out += &declarations::numbers();
    for part in [
        include_str!("text/export.h.in"),
        include_str!("text/wire.h.in"),
        include_str!("text/host.h.in"),
        include_str!("text/wanted.h.in"),
    ] {
        out += &format!("\n{}", fill(part));
    }
    out + END
}

const END: &str = "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";

/// A file beside `outrigger.h`.
fn optional(part: Part, what: &str, text: &str) -> String {
    let (file, guard) = (part.file(), part.file().replace('.', "_").to_ascii_uppercase());
    format!(
        "/* {file}: {what}. outrigger.h says what holds everywhere. */\n#ifndef {guard}\n#define {guard}\n\n#include \
         \"outrigger.h\"\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n{text}{END}"
    )
}

/// Fills in a template's blanks.
fn fill(text: &str) -> String {
    let magic: Vec<String> = MANIFEST_MAGIC.iter().map(|byte| format!("'{}'", char::from(*byte))).collect();
    text.replace("{{major}}", &ABI_MAJOR.to_string())
        .replace("{{minor}}", &ABI_MINOR.to_string())
        .replace("{{manifest_header_len}}", &MANIFEST_HEADER_LEN.to_string())
        .replace("{{manifest_magic}}", &format!("`{}`", String::from_utf8_lossy(&MANIFEST_MAGIC)))
        .replace("{{manifest_magic_bytes}}", &magic.join(", "))
        .replace("{{failures}}", &declarations::failures())
}
