//! The record of what a minor version promises: layouts, numbers, the order of functions and fields.

use super::names::{encoding, stem};
use super::types::Types;
use super::{services_of, types};
use outrigger_abi::layout::{Declaration, StructLayout};
use outrigger_abi::{ABI_MAJOR, ABI_MINOR, DECLARATIONS, MANIFEST_HEADER_LEN, MANIFEST_MAGIC, PLUGIN_MAGIC};
use outrigger_service::ErrorKind;
use outrigger_service::events::TOPICS;
use outrigger_service::wire::{FieldShape, ServiceShape, Shape};
use outrigger_values::error::RpcErrorCode;

/// What a minor version promises, a line for each promise, without anything that was added after it.
pub fn record(minor: u32) -> String {
    let minor = minor.min(ABI_MINOR);
    let mut out = format!("abi {ABI_MAJOR}.{minor}\n");
    out += &format!("plugin magic {PLUGIN_MAGIC:#x}\n");
    out += &format!("manifest magic {}\n", String::from_utf8_lossy(&MANIFEST_MAGIC));
    out += &format!("manifest header {MANIFEST_HEADER_LEN} bytes\n");
    for declaration in DECLARATIONS {
        match declaration {
            Declaration::Struct(layout) => out += &structure(layout, minor),
            Declaration::Functions(functions) => {
                for function in functions.iter().filter(|function| function.since <= minor) {
                    let params: Vec<String> =
                        function.params.iter().map(|(name, rust)| format!("{name}: {rust}")).collect();
                    out += &format!("\nfunction {}({}) {}", function.name, params.join(", "), function.result);
                    out = out.trim_end().to_owned() + "\n";
                }
            }
        }
    }
    out += "\nstatuses\n  0 Ok\n";
    for (kind, name, _) in ErrorKind::ALL {
        out += &format!("  {} {name}\n", *kind as i32);
    }
    out += "\ncodes\n";
    for (code, name, _) in RpcErrorCode::ALL {
        out += &format!("  {} {name}\n", code.0);
    }
    out += "\nevents\n";
    for topic in TOPICS {
        out += &format!("  {topic}\n");
    }
    let types = types(minor);
    for service in services_of(minor) {
        out += &functions(service, minor);
    }
    for shape in &types.order {
        out += &message(&types, shape);
    }
    out
}

fn structure(layout: &StructLayout, minor: u32) -> String {
    let mut out = format!("\nstruct {} of {} bytes\n", layout.name, layout.size_at(minor));
    for field in layout.fields.iter().filter(|field| field.since <= minor) {
        out += &format!("  at {}, {} bytes: {} {}\n", field.offset, field.size, field.name, field.rust_type);
    }
    out
}

fn functions(service: &ServiceShape, minor: u32) -> String {
    let mut out = format!("\nservice {}\n", service.name);
    for (position, function) in service.functions.iter().enumerate().filter(|(_, known)| known.since <= minor) {
        let request: Vec<String> =
            function.request.iter().map(|field| format!("{}: {}", field.name, encoding(field.shape))).collect();
        out += &format!("  {position} {}({}) -> {}\n", function.name, request.join(", "), encoding(function.response));
    }
    out
}

fn message(types: &Types, shape: &'static Shape) -> String {
    let fields = |fields: &'static [FieldShape], indent: &str| -> String {
        types.fields(fields).map(|field| format!("{indent}{}: {}\n", field.name, encoding(field.shape))).collect()
    };
    match shape {
        Shape::Struct(known) => format!("\nmessage {}\n{}", stem(shape), fields(known.fields, "  ")),
        Shape::Enum(known) => {
            let mut out = format!("\nchoice {}\n", stem(shape));
            for case in known.variants.iter().filter(|case| case.since <= types.minor) {
                out += &format!("  {} {}\n{}", case.tag, case.name, fields(case.fields, "    "));
            }
            out
        }
        _ => String::new(),
    }
}
