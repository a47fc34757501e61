//! Which types of messages there are, in an order in which each comes after what it is made of, and what is done with each.

use std::collections::HashMap;

use super::names::stem;
use outrigger_service::wire::{FieldShape, Shape};

/// What functions a type needs.
#[derive(Clone, Copy, Default)]
pub(super) struct Use {
    /// It is read.
    pub read: bool,
    /// It is passed over, as an item of a list.
    pub skip: bool,
    /// It is written.
    pub write: bool,
}

/// The types of messages of one minor version.
pub(super) struct Types {
    /// The minor version.
    pub minor: u32,
    /// The types in their order.
    pub order: Vec<&'static Shape>,
    uses: HashMap<String, Use>,
}

impl Types {
    /// No types yet.
    pub(super) fn new(minor: u32) -> Self {
        Self { minor, order: Vec::new(), uses: HashMap::new() }
    }

    /// What is done with a type.
    pub(super) fn uses(&self, shape: &Shape) -> Use {
        self.uses.get(&stem(shape)).copied().unwrap_or_default()
    }

    /// Adds a type that is read, with all that it is made of.
    pub(super) fn read(&mut self, shape: &'static Shape) {
        self.add(shape, |uses| &mut uses.read, Self::read);
        if let Shape::List(item) = shape
            && self.fixed_size(item).is_none()
        {
            self.skip(item);
        }
    }

    /// Adds a type that is written, with all that it is made of.
    pub(super) fn write(&mut self, shape: &'static Shape) {
        self.add(shape, |uses| &mut uses.write, Self::write);
    }

    fn skip(&mut self, shape: &'static Shape) {
        // What has a length in bytes is passed over without a look at what it is made of.
        let inner = |types: &mut Self, part: &'static Shape| match types.fixed_size(part) {
            None if !matches!(shape, Shape::Framed(_)) => types.skip(part),
            _ => {}
        };
        self.add(shape, |uses| &mut uses.skip, inner);
    }

    fn add(
        &mut self,
        shape: &'static Shape,
        mark: impl Fn(&mut Use) -> &mut bool,
        part: impl Fn(&mut Self, &'static Shape),
    ) {
        if *mark(&mut self.uses(shape)) {
            return;
        }
        for inner in parts(shape, self.minor) {
            part(self, inner);
        }
        let known = self.uses.contains_key(&stem(shape));
        *mark(self.uses.entry(stem(shape)).or_default()) = true;
        if !known {
            self.order.push(shape);
        }
    }

    /// The fields that there are in this minor version.
    pub(super) fn fields(&self, fields: &'static [FieldShape]) -> impl Iterator<Item = &'static FieldShape> {
        let minor = self.minor;
        fields.iter().filter(move |field| field.since <= minor)
    }

    /// The length of every encoding of a type, in bytes, where all have the same.
    pub(super) fn fixed_size(&self, shape: &Shape) -> Option<usize> {
        match shape {
            Shape::Bool | Shape::U8 => Some(1),
            Shape::U16 => Some(2),
            Shape::U32 | Shape::I32 => Some(4),
            Shape::U64 | Shape::I64 => Some(8),
            Shape::Hash => Some(32),
            Shape::Array(len) => Some(*len),
            Shape::Tuple(items) => items.iter().map(|item| self.fixed_size(item)).sum(),
            Shape::Struct(shape) => self.fields(shape.fields).map(|field| self.fixed_size(field.shape)).sum(),
            Shape::Enum(shape) => {
                let mut there = shape.variants.iter().filter(|variant| variant.since <= self.minor);
                there.all(|variant| variant.fields.is_empty()).then_some(1)
            }
            Shape::Text | Shape::Secret | Shape::ByteString => None,
            Shape::Option(_) | Shape::List(_) | Shape::Framed(_) => None,
        }
    }
}

/// What a type is made of.
pub(super) fn parts(shape: &'static Shape, minor: u32) -> Vec<&'static Shape> {
    let there = |fields: &'static [FieldShape]| fields.iter().filter(move |field| field.since <= minor);
    match shape {
        Shape::Option(inner) | Shape::List(inner) | Shape::Framed(inner) => vec![inner],
        Shape::Tuple(items) => items.to_vec(),
        Shape::Struct(shape) => there(shape.fields).map(|field| field.shape).collect(),
        Shape::Enum(shape) => {
            let variants = shape.variants.iter().filter(|variant| variant.since <= minor);
            variants.flat_map(|variant| there(variant.fields)).map(|field| field.shape).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a value that was read points into the message.
pub(super) fn borrows(shape: &'static Shape) -> bool {
    match shape {
        Shape::Text | Shape::Secret | Shape::ByteString | Shape::List(_) => true,
        _ => parts(shape, u32::MAX).into_iter().any(borrows),
    }
}

/// Whether a message holds something to be wiped.
pub(super) fn is_secret(shape: &'static Shape) -> bool {
    matches!(shape, Shape::Secret) || parts(shape, u32::MAX).into_iter().any(is_secret)
}
