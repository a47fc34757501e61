//! Converts Rust names to C names.

/// Converts `BlockInfo` to `block_info`.
pub(super) use outrigger_service::json::snake;

/// Converts `BlockInfo` to `BLOCK_INFO`.
pub(super) fn upper(name: &str) -> String {
    snake(name).to_ascii_uppercase()
}

/// The C type of an ABI struct: `outrigger_host_t` for `HostTable`.
pub(super) fn abi_type(name: &str) -> String {
    let name = name.strip_suffix("Table").or_else(|| name.strip_suffix("Frame")).unwrap_or(name);
    format!("outrigger_{}_t", snake(name))
}

/// The C type of a Rust type in the ABI, ready to be followed by a name: with a trailing space where C needs one.
pub(super) fn c_type(rust: &str) -> String {
    if let Some(target) = rust.strip_prefix("*const ") {
        return format!("const {}*", c_type(target));
    }
    if let Some(target) = rust.strip_prefix("*mut ") {
        return format!("{}*", c_type(target));
    }
    match rust {
        "" | "c_void" => "void ".to_owned(),
        "Instance" => "void *".to_owned(),
        "usize" => "size_t ".to_owned(),
        "u8" | "u32" | "u64" => format!("uint{}_t ", &rust[1..]),
        "i32" => "int32_t ".to_owned(),
        name => format!("{} ", abi_type(name)),
    }
}
