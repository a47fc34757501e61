//! The C header of the plugin interface, `sdk/include/outrigger.h`, made from the declarations that the Rust code is compiled
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
use outrigger_service::{Chain, Described, Events, Log, Mempool, Signer, Wallet};

pub use record::record;

/// The services.
const SERVICES: [&ServiceShape; 6] = [
    <dyn Chain as Described>::SHAPE,
    <dyn Mempool as Described>::SHAPE,
    <dyn Wallet as Described>::SHAPE,
    <dyn Signer as Described>::SHAPE,
    <dyn Events as Described>::SHAPE,
    <dyn Log as Described>::SHAPE,
];

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

/// The header of a minor version, without what was added after it; of this SDK's own where it does not know the version yet.
pub fn header(minor: u32) -> String {
    let minor = minor.min(ABI_MINOR);
    let types = types(minor);
    let glossary = Glossary::new(&DECLARATIONS, &SERVICES, &types.order);
    let mut out = fill(include_str!("text/preface.h.in"), minor);
    out += &declarations::versions(minor);
    out += &declarations::declarations(&DECLARATIONS, minor, &glossary);
    out += &declarations::numbers();
    for part in [include_str!("text/export.h.in"), include_str!("text/wire.h.in"), include_str!("text/json.h.in")] {
        out += &format!("\n{}", fill(part, minor));
    }
    out += &format!("\n{}", fill(include_str!("text/host.h.in"), minor));
    if minor >= 1 {
        out += include_str!("text/wanted.h.in");
    }
    out += &heading("Messages");
    out += &messages::declarations(&types, &glossary);
    out += &heading("Reading and writing the messages");
    out += &messages::functions(&types);
    for service in SERVICES {
        out += &services::service_text(&types, &glossary, service);
    }
    out + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n"
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
