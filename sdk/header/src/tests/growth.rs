//! Messages grow only where older readers skip the rest.

use super::super::names::encoding;
use super::super::{EVENT, SERVICES};
use outrigger_service::wire::{FieldShape, Shape};

#[test]
fn messages_grow_only_where_nothing_follows() {
    assert_eq!(misplaced_growth(), Vec::<String>::new(), "these are read by older plugins as they were");
}

/// The types with later fields in a place where something follows. Only a whole message or a frame may grow, at its
/// end. Elsewhere an older reader would read the new field as the next one.
fn misplaced_growth() -> Vec<String> {
    let mut found = Vec::new();
    for function in SERVICES.iter().flat_map(|service| service.functions) {
        look(function.response, true, &mut found);
        for (at, field) in function.request.iter().enumerate() {
            look(field.shape, at + 1 == function.request.len(), &mut found);
        }
    }
    look(EVENT, true, &mut found);
    found
}

/// Visits a type. `last`: nothing follows it in the message or frame.
fn look(shape: &'static Shape, last: bool, found: &mut Vec<String>) {
    match shape {
        Shape::Option(inner) => look(inner, last, found),
        Shape::List(item) => look(item, false, found),
        Shape::Framed(inner) => look(inner, true, found),
        Shape::Tuple(items) => {
            for (at, item) in items.iter().enumerate() {
                look(item, last && at + 1 == items.len(), found);
            }
        }
        Shape::Struct(known) => look_at_fields(shape, known.fields, last, found),
        Shape::Enum(known) => known.variants.iter().for_each(|case| look_at_fields(shape, case.fields, last, found)),
        _ => {}
    }
}

fn look_at_fields(shape: &'static Shape, fields: &'static [FieldShape], last: bool, found: &mut Vec<String>) {
    if !last && fields.iter().any(|field| field.since > 0) {
        found.push(encoding(shape));
    }
    for (at, field) in fields.iter().enumerate() {
        look(field.shape, last && at + 1 == fields.len(), found);
    }
}
