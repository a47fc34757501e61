//! The C types of messages, and the functions that read and write them.

use super::comment::{Glossary, comment, since, with_parameters};
use super::names::{any_encoding, encoding, member, message_type, stem, variant};
use super::types::{Types, borrows};
use outrigger_service::wire::{EnumShape, FieldShape, Shape, VariantShape};

/// What the members of a tuple are called.
const ORDINALS: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];

/// Declares all types.
pub(super) fn declarations(types: &Types, glossary: &Glossary) -> String {
    types.order.iter().map(|shape| declaration(types, glossary, shape)).collect()
}

/// The functions that read, pass over, and write values of each type.
pub(super) fn functions(types: &Types) -> String {
    let mut out = String::new();
    for shape in types.order.iter().filter(|shape| !is_built_in(shape)) {
        let uses = types.uses(shape);
        if uses.read {
            out += &get(types, shape);
        }
        if uses.skip {
            out += &skip(types, shape);
        }
        if uses.write {
            out += &put(types, shape);
        }
    }
    out
}

/// Whether the header has the type and its functions without having to make them.
fn is_built_in(shape: &Shape) -> bool {
    let composed = matches!(shape, Shape::Option(_) | Shape::List(_) | Shape::Framed(_) | Shape::Tuple(_));
    !composed && !matches!(shape, Shape::Array(_) | Shape::Struct(_) | Shape::Enum(_))
}

/// Whether a list in this type is an array of its items, and not a part of a message: in what is only ever written.
fn has_arrays(types: &Types, shape: &Shape) -> bool {
    !types.uses(shape).read
}

/// A member of a C struct, or the two that are an array.
fn members(glossary: &Glossary, field: &FieldShape, arrays: bool, indent: usize) -> String {
    let margin = " ".repeat(indent);
    let name = member(field.name);
    let text = format!("{}{} [{}]", glossary.sentence(field.docs), since(field.since), encoding(field.shape));
    let comment = comment(indent, &[text.trim().to_owned()]);
    match field.shape {
        Shape::List(item) if arrays => format!(
            "{comment}{margin}const {} *{name};\n{margin}/** How many there are. */\n{margin}size_t {}_count;\n",
            message_type(item),
            field.name
        ),
        shape => format!("{comment}{margin}{} {name};\n", message_type(shape)),
    }
}

fn declaration(types: &Types, glossary: &Glossary, shape: &'static Shape) -> String {
    let name = message_type(shape);
    let head = |text: String| format!("\n{}typedef struct {name} {{\n", comment(0, &[text]));
    match shape {
        Shape::Array(len) => {
            let text = format!("{len} bytes. [array {len}]");
            format!("{}    /** They. */\n    uint8_t bytes[{len}];\n}} {name};\n", head(text))
        }
        Shape::Option(inner) => format!(
            "{}    /** Whether there is a value. */\n    bool present;\n    /** It; zero where there is none. */\n    {} value;\n}} {name};\n",
            head(format!("Perhaps a value. [{}]", any_encoding(shape))),
            message_type(inner)
        ),
        Shape::Tuple(items) => {
            let mut out = head(format!("Several values. [{}]", any_encoding(shape)));
            for (item, ordinal) in items.iter().zip(ORDINALS) {
                out += &format!("    /** [{}] */\n    {} {ordinal};\n", any_encoding(item), message_type(item));
            }
            out + &format!("}} {name};\n")
        }
        Shape::Struct(known) => {
            let mut out = format!("\n{}typedef struct {name} {{\n", comment(0, &glossary.paragraphs(known.docs)));
            for field in types.fields(known.fields) {
                out += &members(glossary, field, has_arrays(types, shape), 4);
            }
            out + &format!("}} {name};\n")
        }
        Shape::Enum(known) => choice(types, glossary, shape, known),
        _ => String::new(),
    }
}

/// The variants of this minor version.
fn variants<'a>(types: &Types, shape: &'a EnumShape) -> impl Iterator<Item = &'a VariantShape> {
    let minor = types.minor;
    shape.variants.iter().filter(move |variant| variant.since <= minor)
}

fn choice(types: &Types, glossary: &Glossary, shape: &'static Shape, known: &'static EnumShape) -> String {
    let name = message_type(shape);
    let comment_of = |docs, since_minor, indent| {
        comment(indent, &[(glossary.sentence(docs) + &since(since_minor)).trim().to_owned()])
    };
    let mut constants = String::new();
    for case in variants(types, known) {
        constants += &comment_of(case.docs, case.since, 4);
        constants += &format!("    {} = {},\n", variant(known.name, case.name), case.tag);
    }
    let constants = format!("\n/** What an {name} can be. */\nenum {{\n{constants}}};\n");
    let docs = comment(0, &glossary.paragraphs(known.docs));
    if types.fixed_size(shape).is_some() {
        return format!("\n{docs}typedef uint8_t {name};\n{constants}");
    }
    let mut out = format!("\n{docs}typedef struct {name} {{\n");
    out += "    /** Which it is: one of the constants below. */\n    uint8_t tag;\n";
    out += "    /** More of it: the member that is named as the tag is, where it has one. */\n    union {\n";
    for case in variants(types, known).filter(|case| !case.fields.is_empty()) {
        out += &comment_of(case.docs, case.since, 8);
        out += "        struct {\n";
        for field in types.fields(case.fields) {
            out += &members(glossary, field, has_arrays(types, shape), 12);
        }
        out += &format!("        }} {};\n", member(&super::names::snake(case.name)));
    }
    out + &format!("    }} as;\n}} {name};\n{constants}")
}

/// The comment and the beginning of a function that reads.
fn get_head(shape: &'static Shape) -> String {
    let lifetime = if borrows(shape) {
        "Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes."
    } else {
        "Ownership: nothing changes hands. Lifetime: `*out` is a copy."
    };
    let text = format!("[{}] Threads: any. {lifetime}", any_encoding(shape));
    let parameters = ["outrigger_reader_t *reader".to_owned(), format!("{} *out", message_type(shape))];
    let head = format!("static inline bool outrigger_get_{}", stem(shape));
    format!("\n{}{}\n{{\n", comment(0, &[text]), with_parameters(&head, &parameters))
}

fn get(types: &Types, shape: &'static Shape) -> String {
    let head = get_head(shape);
    let zero = "    memset(out, 0, sizeof *out);\n";
    match shape {
        Shape::Array(_) => head + "    return outrigger_get_fixed(reader, out->bytes, sizeof out->bytes);\n}\n",
        Shape::Option(inner) => {
            let inner = stem(inner);
            head + zero
                + &format!(
                    "    return outrigger_get_bool(reader, &out->present)\n        && (!out->present || outrigger_get_{inner}(reader, &out->value));\n}}\n"
                )
        }
        Shape::List(item) => match types.fixed_size(item) {
            Some(size) => head + &format!("    return outrigger_get_list_of_fixed(reader, {size}, out);\n}}\n"),
            None => {
                let item = stem(item);
                head + &format!(
                    "    uint32_t at = 0;\n    outrigger_begin_list(reader, out);\n    for (at = 0; at < out->count && !reader->failed; at++) {{\n        outrigger_skip_{item}(reader);\n    }}\n    return outrigger_end_list(reader, out);\n}}\n"
                )
            }
        },
        Shape::Framed(inner) => head + zero + &framed(inner),
        Shape::Tuple(items) => {
            let reads = items.iter().zip(ORDINALS).map(|(item, ordinal)| get_call(item, &format!("out->{ordinal}"), 0));
            head + zero + &conjunction(reads)
        }
        Shape::Struct(known) => {
            let reads = types
                .fields(known.fields)
                .map(|field| get_call(field.shape, &format!("out->{}", member(field.name)), field.since));
            head + zero + &conjunction(reads)
        }
        Shape::Enum(known) => head + zero + &get_choice(types, shape, known),
        _ => String::new(),
    }
}

fn framed(inner: &Shape) -> String {
    format!(
        "    outrigger_bytes_t frame;
    outrigger_reader_t framed;
    if (!outrigger_get_bytes(reader, &frame)) {{
        return false;
    }}
    framed = outrigger_read(frame);
    return outrigger_get_{}(&framed, out) || outrigger_fail(reader);
}}
",
        stem(inner)
    )
}

/// An expression that reads a member. What was added later is not there where an older writer's message ends.
fn get_call(shape: &Shape, target: &str, since: u32) -> String {
    let call = format!("outrigger_get_{}(reader, &{target})", stem(shape));
    if since == 0 { call } else { format!("((!reader->failed && reader->left == 0) || {call})") }
}

/// The end of a function that does one thing after the other as long as they succeed.
fn conjunction(steps: impl Iterator<Item = String>) -> String {
    let steps: Vec<String> = steps.collect();
    if steps.is_empty() {
        return "    return !reader->failed;\n}\n".to_owned();
    }
    format!("    return {};\n}}\n", steps.join("\n        && "))
}

/// The cases of a switch over the variants: first those without fields, which share `empty`, then each of the others.
fn cases(
    types: &Types,
    known: &'static EnumShape,
    empty: &str,
    full: impl Fn(&'static VariantShape) -> String,
) -> String {
    let mut out = String::new();
    for case in variants(types, known).filter(|case| case.fields.is_empty()) {
        out += &format!("    case {}:\n", variant(known.name, case.name));
    }
    if !out.is_empty() {
        out += &format!("        {empty}\n");
    }
    for case in variants(types, known).filter(|case| !case.fields.is_empty()) {
        out += &format!("    case {}:\n{}", variant(known.name, case.name), full(case));
    }
    out
}

/// Where a variant's field stands.
fn case_member(owner: &str, case: &VariantShape, field: &FieldShape) -> String {
    format!("{owner}as.{}.{}", member(&super::names::snake(case.name)), member(field.name))
}

fn get_choice(types: &Types, shape: &'static Shape, known: &'static EnumShape) -> String {
    let (target, tag) = if types.fixed_size(shape).is_some() { ("out", "*out") } else { ("&out->tag", "out->tag") };
    let full = |case: &'static VariantShape| {
        let reads: Vec<String> = types
            .fields(case.fields)
            .map(|field| get_call(field.shape, &case_member("out->", case, field), field.since))
            .collect();
        format!("        return {};\n", reads.join("\n            && "))
    };
    format!(
        "    if (!outrigger_get_u8(reader, {target})) {{\n        return false;\n    }}\n    switch ({tag}) {{\n{}    default:\n        return outrigger_fail(reader);\n    }}\n}}\n",
        cases(types, known, "return true;", full)
    )
}

/// An expression that passes over a value.
fn skip_call(types: &Types, shape: &Shape) -> String {
    match types.fixed_size(shape) {
        Some(size) => format!("outrigger_skip(reader, {size})"),
        None => format!("outrigger_skip_{}(reader)", stem(shape)),
    }
}

fn skip(types: &Types, shape: &'static Shape) -> String {
    let text = "Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept.";
    let text = format!("Goes on behind [{}]. {text}", any_encoding(shape));
    let head = format!(
        "\n{}static inline bool outrigger_skip_{}(outrigger_reader_t *reader)\n{{\n",
        comment(0, &[text]),
        stem(shape)
    );
    match shape {
        Shape::Option(inner) => {
            head + &format!(
                "    bool present = false;\n    return outrigger_get_bool(reader, &present) && (!present || {});\n}}\n",
                skip_call(types, inner)
            )
        }
        Shape::List(_) => {
            let list = stem(shape);
            head + &format!("    outrigger_list_t skipped;\n    return outrigger_get_{list}(reader, &skipped);\n}}\n")
        }
        Shape::Framed(_) => head + "    return outrigger_skip_bytes(reader);\n}\n",
        Shape::Tuple(items) => head + &conjunction(items.iter().map(|item| skip_call(types, item))),
        Shape::Struct(known) => {
            head + &conjunction(types.fields(known.fields).map(|field| skip_call(types, field.shape)))
        }
        Shape::Enum(known) => {
            let full = |case: &'static VariantShape| {
                let steps: Vec<String> = types.fields(case.fields).map(|field| skip_call(types, field.shape)).collect();
                format!("        return {};\n", steps.join("\n            && "))
            };
            head + &format!(
                "    uint8_t tag = 0;\n    if (!outrigger_get_u8(reader, &tag)) {{\n        return false;\n    }}\n    switch (tag) {{\n{}    default:\n        return outrigger_fail(reader);\n    }}\n}}\n",
                cases(types, known, "return true;", full)
            )
        }
        _ => String::new(),
    }
}

/// Whether a value is passed to functions as it is, and not by a pointer to it.
pub(super) fn by_value(types: &Types, shape: &Shape) -> bool {
    match shape {
        Shape::Enum(_) => types.fixed_size(shape).is_some(),
        Shape::Text | Shape::Secret | Shape::ByteString => true,
        Shape::Hash => false,
        shape => is_built_in(shape),
    }
}

/// A statement that writes a value.
pub(super) fn put_call(types: &Types, shape: &Shape, source: &str, writer: &str) -> String {
    let reference = if by_value(types, shape) { "" } else { "&" };
    format!("outrigger_put_{}({writer}, {reference}{source});", stem(shape))
}

/// A statement that writes a field of a struct.
fn put_field(types: &Types, field: &FieldShape, owner: &str, arrays: bool) -> String {
    let source = format!("{owner}{}", member(field.name));
    match field.shape {
        Shape::List(item) if arrays => {
            let count = format!("{owner}{}_count", field.name);
            format!("outrigger_put_list_of_{}(writer, {source}, {count});", stem(item))
        }
        Shape::List(_) => format!("outrigger_put_list(writer, &{source});"),
        shape => put_call(types, shape, &source, "writer"),
    }
}

fn put(types: &Types, shape: &'static Shape) -> String {
    let text = "Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied.";
    let text = format!("[{}] {text}", any_encoding(shape));
    let (kind, name) = (message_type(shape), stem(shape));
    let mut parameters = vec!["outrigger_writer_t *writer".to_owned()];
    match shape {
        Shape::List(item) => {
            parameters.extend([format!("const {} *value", message_type(item)), "size_t count".to_owned()]);
        }
        shape if by_value(types, shape) => parameters.push(format!("{kind} value")),
        _ => parameters.push(format!("const {kind} *value")),
    }
    let head = with_parameters(&format!("static inline void outrigger_put_{name}"), &parameters);
    let head = format!("\n{}{head}\n{{\n", comment(0, &[text]));
    let arrays = has_arrays(types, shape);
    let body: Vec<String> = match shape {
        Shape::Array(_) => vec!["outrigger_append(writer, value->bytes, sizeof value->bytes);".to_owned()],
        Shape::Option(inner) => vec![
            "bool present = value != NULL && value->present;".to_owned(),
            "outrigger_put_bool(writer, present);".to_owned(),
            format!("if (present) {{\n        {}\n    }}", put_call(types, inner, "value->value", "writer")),
        ],
        Shape::List(item) => vec![
            "size_t at = 0;".to_owned(),
            "outrigger_put_count(writer, count);".to_owned(),
            format!(
                "for (at = 0; at < count; at++) {{\n        {}\n    }}",
                put_call(types, item, "value[at]", "writer")
            ),
        ],
        Shape::Framed(inner) => vec![
            "outrigger_writer_t framed = OUTRIGGER_SECRET_WRITER;".to_owned(),
            put_call(types, inner, "(*value)", "&framed"),
            "writer->failed = writer->failed || framed.failed;".to_owned(),
            "outrigger_put_bytes(writer, outrigger_written(&framed));".to_owned(),
            "outrigger_writer_free(&framed);".to_owned(),
        ],
        Shape::Tuple(items) => {
            let put = |(item, ordinal): (&&'static Shape, &str)| {
                put_call(types, item, &format!("value->{ordinal}"), "writer")
            };
            items.iter().zip(ORDINALS).map(put).collect()
        }
        Shape::Struct(known) => {
            types.fields(known.fields).map(|field| put_field(types, field, "value->", arrays)).collect()
        }
        Shape::Enum(known) => put_choice(types, shape, known),
        _ => Vec::new(),
    };
    let body: String = body.iter().map(|line| format!("    {line}\n")).collect();
    format!("{head}{body}}}\n")
}

fn put_choice(types: &Types, shape: &'static Shape, known: &'static EnumShape) -> Vec<String> {
    if types.fixed_size(shape).is_some() {
        return vec!["outrigger_put_u8(writer, value);".to_owned()];
    }
    let full = |case: &'static VariantShape| {
        let owner = format!("value->as.{}.", member(&super::names::snake(case.name)));
        let puts: String = types
            .fields(case.fields)
            .map(|field| format!("        {}\n", put_field(types, field, &owner, has_arrays(types, shape))))
            .collect();
        puts + "        break;\n"
    };
    let cases = cases(types, known, "break;", full);
    vec![
        "outrigger_put_u8(writer, value->tag);".to_owned(),
        format!("switch (value->tag) {{\n{cases}    default:\n        writer->failed = true;\n        break;\n    }}"),
    ]
}
