//! Describes the encoding of messages. The JSON form of messages, their schema and the services page are made from it.
//!
//! The macros that declare messages also generate their descriptions, so that the two cannot differ.

pub use outrigger_abi::layout::Docs;

use super::Wire;

/// How a value is encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// One byte, 0 or 1.
    Bool,
    /// One byte.
    U8,
    /// Two bytes, little-endian.
    U16,
    /// Four bytes, little-endian.
    U32,
    /// Eight bytes, little-endian.
    U64,
    /// Four bytes, little-endian, in two's complement.
    I32,
    /// Eight bytes, little-endian, in two's complement.
    I64,
    /// This many bytes.
    Array(usize),
    /// A hash: 32 bytes in internal order, which is the reverse of how it is printed.
    Hash,
    /// A `u32` length and as many bytes of UTF-8.
    Text,
    /// As [`Shape::Text`]. The reader wipes it from memory.
    Secret,
    /// A `u32` length and as many bytes.
    ByteString,
    /// One byte, 0 or 1, and with 1 the value.
    Option(&'static Shape),
    /// A `u32` count and as many values.
    List(&'static Shape),
    /// A `u32` length in bytes, and a value of that length; a newer writer may have appended to it.
    Framed(&'static Shape),
    /// The values one after the other.
    Tuple(&'static [&'static Shape]),
    /// The fields one after the other.
    Struct(&'static StructShape),
    /// One byte that names the variant, and the variant's fields.
    Enum(&'static EnumShape),
}

/// A message, or a part of one, with named fields.
#[derive(PartialEq, Eq, Debug)]
pub struct StructShape {
    /// Its name.
    pub name: &'static str,
    /// Its documentation; none for a type of another crate.
    pub docs: Docs,
    /// Its fields in their order.
    pub fields: &'static [FieldShape],
}

/// A field.
#[derive(PartialEq, Eq, Debug)]
pub struct FieldShape {
    /// Its name.
    pub name: &'static str,
    /// Its documentation; none for a type of another crate.
    pub docs: Docs,
    /// The minor version of the ABI that added it.
    pub since: u32,
    /// How it is encoded.
    pub shape: &'static Shape,
}

impl FieldShape {
    /// A field of this type.
    pub const fn of<T: Wire>(name: &'static str, docs: Docs, since: u32) -> Self {
        Self { name, docs, since, shape: T::SHAPE }
    }
}

/// One of several variants.
#[derive(PartialEq, Eq, Debug)]
pub struct EnumShape {
    /// Its name.
    pub name: &'static str,
    /// Its documentation; none for a type of another crate.
    pub docs: Docs,
    /// Its variants.
    pub variants: &'static [VariantShape],
}

/// A variant of an enum.
#[derive(PartialEq, Eq, Debug)]
pub struct VariantShape {
    /// Its name.
    pub name: &'static str,
    /// Its documentation; none for a type of another crate.
    pub docs: Docs,
    /// The minor version of the ABI that added it.
    pub since: u32,
    /// The byte that names it.
    pub tag: u8,
    /// Its fields in their order.
    pub fields: &'static [FieldShape],
}

/// A service.
#[derive(PartialEq, Eq, Debug)]
pub struct ServiceShape {
    /// Name and revision, as `chain/1`.
    pub name: &'static str,
    /// Its documentation.
    pub docs: Docs,
    /// Its functions in the order of its table.
    pub functions: &'static [FunctionShape],
}

/// A function of a service.
#[derive(PartialEq, Eq, Debug)]
pub struct FunctionShape {
    /// Its name.
    pub name: &'static str,
    /// Its documentation.
    pub docs: Docs,
    /// The minor version of the ABI that added it.
    pub since: u32,
    /// Its arguments, encoded one after the other.
    pub request: &'static [FieldShape],
    /// Its result.
    pub response: &'static Shape,
}
