//! The messages: how each is encoded, and a constant for each tag of a choice.

use super::comment::{Glossary, comment, since};
use super::names::{encoding, variant};
use outrigger_service::wire::{FieldShape, Shape};

/// All messages, in this order.
pub(super) fn messages(order: &[&'static Shape], glossary: &Glossary) -> String {
    order.iter().map(|shape| message(shape, glossary)).collect()
}

fn message(shape: &'static Shape, glossary: &Glossary) -> String {
    match shape {
        Shape::Struct(known) => {
            let text = format!("`{}`: {}. {}", encoding(shape), fields(known.fields), glossary.sentence(known.docs));
            format!("\n{}", comment(0, &[text]))
        }
        Shape::Enum(known) => {
            let text = format!("`{}`: one of these tags. {}", encoding(shape), glossary.sentence(known.docs));
            let mut out = format!("\n{}enum {{\n", comment(0, &[text]));
            for case in known.variants {
                let more = if case.fields.is_empty() { String::new() } else { format!(" {}.", fields(case.fields)) };
                let text = glossary.sentence(case.docs) + &more + &since(case.since);
                out += &comment(4, &[text]);
                out += &format!("    {} = {},\n", variant(known.name, case.name), case.tag);
            }
            out + "};\n"
        }
        _ => String::new(),
    }
}

/// Fields in their order, each with its encoding.
pub(super) fn fields(fields: &[FieldShape]) -> String {
    let text = |field: &FieldShape| {
        let later = if field.since == 0 { String::new() } else { format!(" since minor {}", field.since) };
        format!("{} [{}{later}]", field.name, encoding(field.shape))
    };
    fields.iter().map(text).collect::<Vec<_>>().join(", ")
}
