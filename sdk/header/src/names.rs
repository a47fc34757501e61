//! C names of Rust names.

use outrigger_service::wire::{ServiceShape, Shape};

/// The keywords of C11 and C++17.
const KEYWORDS: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "asm",
    "auto",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "continue",
    "default",
    "delete",
    "do",
    "double",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "operator",
    "or",
    "private",
    "protected",
    "public",
    "register",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "while",
    "xor",
];

/// `BlockInfo` as `block_info`.
pub(super) fn snake(name: &str) -> String {
    let mut out = String::new();
    let mut previous = '_';
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && previous != '_' && !previous.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
        previous = letter;
    }
    out
}

/// `BlockInfo` as `BLOCK_INFO`.
pub(super) fn upper(name: &str) -> String {
    snake(name).to_ascii_uppercase()
}

pub(super) fn member(name: &str) -> String {
    if KEYWORDS.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// The C type of an ABI struct or function: `outrigger_host_t` for `HostTable`.
pub(super) fn abi_type(name: &str) -> String {
    let name = name.strip_suffix("Table").or_else(|| name.strip_suffix("Frame")).unwrap_or(name);
    format!("outrigger_{}_t", snake(name))
}

/// The C type of a Rust type in the ABI, with a space after it if a name needs one.
pub(super) fn c_type(rust: &str) -> String {
    if let Some(target) = rust.strip_prefix("*const ") {
        return format!("const {}*", c_type(target));
    }
    if let Some(target) = rust.strip_prefix("*mut ") {
        return format!("{}*", c_type(target));
    }
    if let Some(function) = rust.strip_prefix("Option<").and_then(|rest| rest.strip_suffix('>')) {
        return c_type(function);
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

/// The encoding of a type, in the terms of the header's preface.
pub(super) fn encoding(shape: &Shape) -> String {
    match shape {
        Shape::Bool => "bool".to_owned(),
        Shape::U8 => "u8".to_owned(),
        Shape::U16 => "u16".to_owned(),
        Shape::U32 => "u32".to_owned(),
        Shape::U64 => "u64".to_owned(),
        Shape::I32 => "i32".to_owned(),
        Shape::I64 => "i64".to_owned(),
        Shape::Array(len) => format!("array {len}"),
        Shape::Hash => "hash".to_owned(),
        Shape::Text => "text".to_owned(),
        Shape::Secret => "secret".to_owned(),
        Shape::ByteString => "bytes".to_owned(),
        Shape::Option(inner) => format!("optional {}", encoding(inner)),
        Shape::List(item) => format!("list of {}", encoding(item)),
        Shape::Framed(inner) => format!("framed {}", encoding(inner)),
        Shape::Tuple([]) => "nothing".to_owned(),
        Shape::Tuple(items) => {
            format!("({})", items.iter().map(|item| encoding(item)).collect::<Vec<_>>().join(", "))
        }
        Shape::Struct(shape) => snake(shape.name),
        Shape::Enum(shape) => snake(shape.name),
    }
}

/// `chain` for `chain/1`.
pub(super) fn service(shape: &ServiceShape) -> String {
    shape.name.split('/').next().unwrap_or(shape.name).replace('-', "_")
}

/// The constant of an enum variant.
pub(super) fn variant(name: &str, variant: &str) -> String {
    format!("OUTRIGGER_{}_{}", upper(name), upper(variant))
}

/// The constant of a service function's index.
pub(super) fn index(shape: &ServiceShape, function: &str) -> String {
    format!("OUTRIGGER_FN_{}_{}", service(shape).to_ascii_uppercase(), function.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_c() {
        for (rust, c) in [("BlockInfo", "block_info"), ("P2shSegwit", "p2sh_segwit"), ("Bech32m", "bech32m")] {
            assert_eq!(snake(rust), c);
        }
        for (rust, c) in [
            ("*const HostTable", "const outrigger_host_t *"),
            ("*mut OwnedBytes", "outrigger_owned_bytes_t *"),
            ("Option<CallFn>", "outrigger_call_fn_t "),
            ("*mut c_void", "void *"),
            ("u64", "uint64_t "),
        ] {
            assert_eq!(c_type(rust), c);
        }
        assert_eq!((member("private"), member("label")), ("private_".to_owned(), "label".to_owned()));
    }
}
