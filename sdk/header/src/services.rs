//! The services: the indexes of their functions, and a typed function for each.

use super::comment::{Glossary, comment, heading, since, with_parameters};
use super::messages::{by_value, put_call};
use super::names::{argument, encoding, index, message_type, service, stem};
use super::types::{Types, borrows, is_secret};
use outrigger_service::wire::{FieldShape, FunctionShape, ServiceShape, Shape};

/// The functions of a service that there are in this minor version, with their positions.
fn functions(types: &Types, shape: &ServiceShape) -> impl Iterator<Item = (usize, &'static FunctionShape)> {
    let minor = types.minor;
    shape.functions.iter().enumerate().filter(move |(_, function)| function.since <= minor)
}

/// The name of a service, and the positions of its functions.
pub(super) fn positions(types: &Types, glossary: &Glossary, shape: &'static ServiceShape) -> String {
    let name = service(shape);
    let mut out = heading(&format!("The service {}", shape.name));
    let docs = comment(0, &glossary.paragraphs(shape.docs));
    out += &format!("\n{docs}#define OUTRIGGER_SERVICE_{} \"{}\"\n", name.to_ascii_uppercase(), shape.name);
    out += &format!("\n/** The positions of the functions of `{}` in its table. */\nenum {{\n", shape.name);
    for (position, function) in functions(types, shape) {
        let mut paragraphs = glossary.paragraphs(function.docs);
        if let Some(first) = paragraphs.first_mut() {
            *first += &since(function.since);
        }
        paragraphs.push(messages_of(function));
        out += &comment(4, &paragraphs);
        out += &format!("    {} = {position},\n", index(shape, function.name));
    }
    out + "};\n"
}

/// What a function's request and response are encoded as.
fn messages_of(function: &FunctionShape) -> String {
    let request: Vec<String> =
        function.request.iter().map(|field| format!("{} [{}]", field.name, encoding(field.shape))).collect();
    let request = if request.is_empty() { "nothing".to_owned() } else { request.join(", ") };
    format!("Request: {request}. Response: [{}].", encoding(function.response))
}

/// The typed functions of a service.
pub(super) fn typed_functions(types: &Types, glossary: &Glossary, shape: &'static ServiceShape) -> String {
    let mut out = heading(&format!("The service {}", shape.name));
    for (_, function) in functions(types, shape) {
        out += &wrapper(types, glossary, shape, function);
    }
    out
}

/// The parameters that one argument of a request becomes.
fn parameters(types: &Types, field: &FieldShape) -> Vec<String> {
    let name = argument(field.name);
    match field.shape {
        Shape::List(item) => {
            vec![format!("const {} *{name}", message_type(item)), format!("size_t {}_count", field.name)]
        }
        shape if by_value(types, shape) => vec![format!("{} {name}", message_type(shape))],
        shape => vec![format!("const {} *{name}", message_type(shape))],
    }
}

/// The statement that writes an argument.
fn put_argument(types: &Types, field: &FieldShape) -> String {
    let name = argument(field.name);
    match field.shape {
        Shape::List(item) => {
            format!("    outrigger_put_list_of_{}(&request, {name}, {}_count);\n", stem(item), field.name)
        }
        shape if by_value(types, shape) => format!("    {}\n", put_call(types, shape, &name, "&request")),
        shape => format!("    outrigger_put_{}(&request, {name});\n", stem(shape)),
    }
}

/// What stands before a function.
fn documentation(glossary: &Glossary, function: &FunctionShape, answers: bool, lends: bool) -> String {
    let mut paragraphs = glossary.paragraphs(function.docs);
    if let Some(first) = paragraphs.first_mut() {
        *first += &since(function.since);
    }
    paragraphs.push(messages_of(function));
    paragraphs.push("Threads: any, from `init` until `stop` has returned; of one scope, one at a time.".to_owned());
    paragraphs.push(if lends {
        "Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.".to_owned()
    } else {
        "Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be null: nothing but the detail of a failure is lost then.".to_owned()
    });
    paragraphs.push(match (answers, lends) {
        (true, true) => "Lifetime: what `*out` points to ends with `*response`; the arguments are copied.".to_owned(),
        (true, false) => "Lifetime: `*out` is a copy, and the arguments are copied.".to_owned(),
        _ => "Lifetime: the arguments are copied.".to_owned(),
    });
    comment(0, &paragraphs)
}

/// The typed function.
fn wrapper(
    types: &Types,
    glossary: &Glossary,
    shape: &'static ServiceShape,
    function: &'static FunctionShape,
) -> String {
    let handle = service(shape);
    let (answers, lends) = (*function.response != Shape::Tuple(&[]), borrows(function.response));
    let mut all = vec![format!("const outrigger_service_t *{handle}"), "uint64_t scope".to_owned()];
    all.extend(function.request.iter().flat_map(|field| parameters(types, field)));
    all.push("outrigger_owned_bytes_t *response".to_owned());
    if answers {
        all.push(format!("{} *out", message_type(function.response)));
    }
    let secret = function.request.iter().any(|field| is_secret(field.shape));
    let mut out = format!("\n{}", documentation(glossary, function, answers, lends));
    out += &with_parameters(&format!("static inline int32_t outrigger_{handle}_{}", function.name), &all);
    out += "\n{\n";
    let writer = if secret { "OUTRIGGER_SECRET_WRITER" } else { "OUTRIGGER_WRITER" };
    out +=
        &format!("    outrigger_writer_t request = {writer};\n    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;\n");
    if answers {
        out += "    outrigger_reader_t reader;\n";
    }
    out += "    int32_t status = OUTRIGGER_STATUS_OK;\n";
    if answers {
        out += "    bool read = false;\n    memset(out, 0, sizeof *out);\n";
    }
    if lends {
        out += "    if (response == NULL) {\n        return OUTRIGGER_STATUS_MALFORMED;\n    }\n";
    }
    out += &function.request.iter().map(|field| put_argument(types, field)).collect::<String>();
    out += &format!(
        "    status = outrigger_ask_written({handle}, {}, scope, &request, &own);\n",
        index(shape, function.name)
    );
    if answers {
        out += "    reader = outrigger_read(outrigger_lend(&own));\n";
        out += &format!(
            "    read = status == OUTRIGGER_STATUS_OK && outrigger_get_{}(&reader, out);\n",
            stem(function.response)
        );
        out += "    if (!read) {\n        memset(out, 0, sizeof *out);\n    }\n";
        out += "    return outrigger_answered(status, read, &own, response);\n}\n";
    } else {
        out += "    return outrigger_answered(status, true, &own, response);\n}\n";
    }
    out
}
