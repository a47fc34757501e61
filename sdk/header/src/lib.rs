//! Generates the C header of the plugin interface for `outrigger plugin header` from a template and the declarations of the ABI.

#![warn(missing_docs)]

mod comment;
mod declarations;
mod names;
#[cfg(test)]
mod tests;
use outrigger_abi::{ABI_MAJOR, ABI_MINOR, MANIFEST_HEADER_LEN, MANIFEST_MAGIC, PLUGIN_MAGIC};

/// The name of the header's file.
pub const FILE: &str = "outrigger.h";

/// The text of the header.
pub fn header() -> String {
    let magic: Vec<String> = MANIFEST_MAGIC.iter().map(|byte| format!("'{}'", char::from(*byte))).collect();
    let blanks = [
        ("major", ABI_MAJOR.to_string()),
        ("minor", ABI_MINOR.to_string()),
        ("plugin_magic", format!("{PLUGIN_MAGIC:#x}")),
        ("manifest_header_len", MANIFEST_HEADER_LEN.to_string()),
        ("manifest_magic", format!("`{}`", String::from_utf8_lossy(&MANIFEST_MAGIC))),
        ("manifest_magic_bytes", magic.join(", ")),
        ("structs", declarations::structs()),
        ("statuses", declarations::statuses()),
        ("codes", declarations::codes()),
    ];
    let template = include_str!("outrigger.h.in").to_owned();
    blanks.iter().fold(template, |text, (name, value)| text.replace(&format!("{{{{{name}}}}}"), value))
}
