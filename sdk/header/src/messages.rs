//! The messages: their encodings, and a constant for each enum tag.

use super::comment::{note, noted, since};
use super::names::{encoding, variant};
use outrigger_service::wire::{FieldShape, Shape};

pub(super) fn messages(order: &[&'static Shape]) -> String {
    order.iter().map(|shape| message(shape)).collect()
}

fn message(shape: &'static Shape) -> String {
    match shape {
        Shape::Struct(known) => note(0, &format!("{}: {}", encoding(shape), fields(known.fields))),
        Shape::Enum(known) => {
            let mut out = format!("enum {{ /* {} */\n", encoding(shape));
            for case in known.variants {
                let code = format!("{} = {},", variant(known.name, case.name), case.tag);
                let text = fields(case.fields) + &since(case.since);
                out += &if text.is_empty() { format!("    {code}\n") } else { noted(4, &code, text.trim()) };
            }
            out + "};\n"
        }
        _ => String::new(),
    }
}

pub(super) fn fields(fields: &[FieldShape]) -> String {
    let text = |field: &FieldShape| {
        let later = if field.since == 0 { String::new() } else { format!(" since minor {}", field.since) };
        format!("{} [{}{later}]", field.name, encoding(field.shape))
    };
    fields.iter().map(text).collect::<Vec<_>>().join(", ")
}
