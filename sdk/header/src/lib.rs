//! The C header of the plugin interface, `sdk/include/outrigger*.h`, made from the declarations that the Rust code is compiled
//! from, and the record of what has been promised.
//!
//! After a change to the interface,
//!
//! ```text
//! OUTRIGGER_FREEZE=1 cargo test -p outrigger-sdk --lib header::
//! ```
//!
//! writes the header anew, and the record of every minor version that is not released yet. What is released is not written
//! any more: a change to it fails the tests, and the way out is a new minor version.

mod comment;
mod declarations;
mod messages;
mod names;
mod record;
mod services;
#[cfg(test)]
mod tests;
mod types;

use comment::{Glossary, heading};
use types::Types;

use outrigger_abi::{ABI_MAJOR, ABI_MINOR, DECLARATIONS, MANIFEST_HEADER_LEN, MANIFEST_MAGIC};
use outrigger_service::events::Event;
use outrigger_service::wire::{ServiceShape, Shape, Wire};
use outrigger_service::{Chain, Described, Events, Log, Mempool, NodeRpc, Signer, Wallet};

pub use record::record;

/// The services.
const SERVICES: [&ServiceShape; 7] = [
    <dyn Chain as Described>::SHAPE,
    <dyn Mempool as Described>::SHAPE,
    <dyn Wallet as Described>::SHAPE,
    <dyn Signer as Described>::SHAPE,
    <dyn Events as Described>::SHAPE,
    <dyn Log as Described>::SHAPE,
    <dyn NodeRpc as Described>::SHAPE,
];

/// The services of a minor version.
fn services_of(minor: u32) -> impl Iterator<Item = &'static ServiceShape> {
    SERVICES.into_iter().filter(move |service| service.functions.iter().any(|function| function.since <= minor))
}

/// What is told beside the services' functions.
const EVENT: &Shape = Event::SHAPE;

/// The types of messages of a minor version.
fn types(minor: u32) -> Types {
    let mut types = Types::new(minor);
    for function in SERVICES.iter().flat_map(|service| service.functions).filter(|function| function.since <= minor) {
        if *function.response != Shape::Tuple(&[]) {
            types.read(function.response);
        }
        for field in function.request {
            types.write(field.shape);
        }
    }
    types.read(EVENT);
    types
}

/// The files that the header consists of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// What every plugin needs: layouts, the services with the positions of their functions, bytes, answers.
    Core,
    /// Reading arguments and writing answers, for a plugin without a JSON library.
    Json,
    /// The messages of the services as C types, and a typed function for each function of a service.
    Services,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Core, Self::Json, Self::Services];

    /// The name of its file.
    pub fn file(self) -> &'static str {
        match self {
            Self::Core => "outrigger.h",
            Self::Json => "outrigger_json.h",
            Self::Services => "outrigger_services.h",
        }
    }
}

/// A file of the header of a minor version, without what was added after it; of this SDK's own where it does not know the
/// version yet.
pub fn header(part: Part, minor: u32) -> String {
    let minor = minor.min(ABI_MINOR);
    match part {
        Part::Core => core(minor),
        Part::Json => optional(part, "JSON: arguments and answers", include_str!("text/json.h.in")),
        Part::Services => {
            let types = types(minor);
            let glossary = Glossary::new(&DECLARATIONS, &SERVICES, &types.order);
            let mut text = heading("Messages").trim_start().to_owned();
            text += &messages::declarations(&types, &glossary);
            text += &heading("Reading and writing the messages");
            text += &messages::functions(&types);
            for service in services_of(minor) {
                text += &services::typed_functions(&types, &glossary, service);
            }
            optional(part, "The messages of the services, and a typed function for each function of a service", &text)
        }
    }
}

fn core(minor: u32) -> String {
    let types = types(minor);
    let glossary = Glossary::new(&DECLARATIONS, &SERVICES, &types.order);
    let mut out = fill(include_str!("text/preface.h.in"), minor);
    out += &declarations::versions(minor);
    out += &declarations::declarations(&DECLARATIONS, minor, &glossary);
    out += &declarations::numbers();
    for part in [include_str!("text/export.h.in"), include_str!("text/wire.h.in"), include_str!("text/host.h.in")] {
        out += &format!("\n{}", fill(part, minor));
    }
    if minor >= 1 {
        out += include_str!("text/wanted.h.in");
    }
    for service in services_of(minor) {
        out += &services::positions(&types, &glossary, service);
    }
    out + END
}

/// Ends each file.
const END: &str = "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";

/// A file that a plugin may do without.
fn optional(part: Part, what: &str, text: &str) -> String {
    let (file, guard) = (part.file(), part.file().replace('.', "_").to_ascii_uppercase());
    format!(
        "/*\n * {file}: {what}. Optional; outrigger.h says what holds everywhere.\n *\n * Generated from the Rust sources of the \
         SDK by `outrigger plugin header`. Change those, not this file.\n */\n#ifndef {guard}\n#define {guard}\n\n#include \
         \"outrigger.h\"\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n{text}{END}"
    )
}

/// A part of the header with its blanks filled in.
fn fill(text: &str, minor: u32) -> String {
    let magic: Vec<String> = MANIFEST_MAGIC.iter().map(|byte| format!("'{}'", char::from(*byte))).collect();
    text.replace("{{major}}", &ABI_MAJOR.to_string())
        .replace("{{minor}}", &minor.to_string())
        .replace("{{manifest_header_len}}", &MANIFEST_HEADER_LEN.to_string())
        .replace("{{manifest_magic}}", &format!("`{}`", String::from_utf8_lossy(&MANIFEST_MAGIC)))
        .replace("{{manifest_magic_bytes}}", &magic.join(", "))
        .replace("{{failures}}", &declarations::failures())
}
