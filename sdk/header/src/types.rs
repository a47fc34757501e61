//! The named message types, each after its parts.

use super::names::encoding;
use outrigger_service::wire::Shape;

/// Structs and enums of messages.
#[derive(Default)]
pub(super) struct Types {
    /// In order of declaration.
    pub order: Vec<&'static Shape>,
}

impl Types {
    pub(super) fn add(&mut self, shape: &'static Shape) {
        for part in parts(shape) {
            self.add(part);
        }
        let is_named = matches!(shape, Shape::Struct(_) | Shape::Enum(_));
        if is_named && !self.order.iter().any(|known| encoding(known) == encoding(shape)) {
            self.order.push(shape);
        }
    }
}

fn parts(shape: &'static Shape) -> Vec<&'static Shape> {
    match shape {
        Shape::Option(inner) | Shape::List(inner) | Shape::Framed(inner) => vec![inner],
        Shape::Tuple(items) => items.to_vec(),
        Shape::Struct(shape) => shape.fields.iter().map(|field| field.shape).collect(),
        Shape::Enum(shape) => {
            shape.variants.iter().flat_map(|variant| variant.fields).map(|field| field.shape).collect()
        }
        _ => Vec::new(),
    }
}
