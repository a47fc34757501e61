//! The macros that declare a message: its type, its encoding, and the description of the encoding.

/// Declares a struct whose encoding is its fields in order.
///
/// A field added after the first version of the ABI comes last. Its `#[since(MINOR)]` names the first minor version with
/// the field. A reader uses the field's default if an older writer omits the field.
///
/// The macro accepts doc comments, one `derive`, and no other attributes. The JSON form of messages and the services page
/// are generated from the description.
///
/// ```
/// outrigger_service::wire_struct! {
///     /// A point.
///     #[derive(Debug, PartialEq)]
///     pub struct Point {
///         /// To the right.
///         pub x: u32,
///         /// Upwards.
///         pub y: u32,
///         /// Towards the reader.
///         #[since(1)]
///         pub z: u8,
///     }
/// }
/// use outrigger_service::wire::{from_bytes, to_bytes};
///
/// let point = Point { x: 1, y: 2, z: 3 };
/// assert_eq!(to_bytes(&point), [1, 0, 0, 0, 2, 0, 0, 0, 3]);
/// assert_eq!(from_bytes(&[1, 0, 0, 0, 2, 0, 0, 0]), Ok(Point { z: 0, ..point }));
/// ```
#[macro_export]
macro_rules! wire_struct {
    (@get $reader:ident) => { $crate::wire::Wire::get($reader)? };
    (@get $reader:ident $since:literal) => { $reader.rest_or(Default::default())? };
    ($(#[doc = $doc:literal])* $(#[derive($($derive:ident),* $(,)?)])? pub struct $name:ident {
        $($(#[doc = $field_doc:literal])* $(#[since($since:literal)])? pub $field:ident: $type:ty,)*
    }) => {
        $(#[doc = $doc])*
        $(#[derive($($derive),*)])?
        pub struct $name {
            $($(#[doc = $field_doc])* pub $field: $type,)*
        }
        $crate::wire_struct!(@of $(#[doc = $doc])* $name { $($(#[doc = $field_doc])* $(#[since($since)])? $field: $type,)* });
    };
    // A struct that is declared elsewhere.
    (@of $(#[doc = $doc:literal])* $name:ident {
        $($(#[doc = $field_doc:literal])* $(#[since($since:literal)])? $field:ident: $type:ty,)*
    }) => {
        impl $crate::wire::Wire for $name {
            const SECRET: bool = $(<$type as $crate::wire::Wire>::SECRET ||)* false;
            const SHAPE: &'static $crate::wire::Shape = &$crate::wire::Shape::Struct(&$crate::wire::StructShape {
                name: stringify!($name),
                docs: &[$($doc),*],
                fields: &[$($crate::wire::FieldShape::of::<$type>(
                    stringify!($field), &[$($field_doc),*], 0 $(+ $since)?
                )),*],
            });
            fn put(&self, out: &mut $crate::wire::Writer) {
                $($crate::wire::Wire::put(&self.$field, out);)*
                let _ = out;
            }
            fn get(reader: &mut $crate::wire::Reader<'_>) -> std::result::Result<Self, $crate::wire::WireError> {
                let _ = &reader;
                Ok(Self { $($field: $crate::wire_struct!(@get reader $($since)?),)* })
            }
        }
    };
}

/// Declares an enum whose encoding is a `u8` tag followed by the fields of the variant.
///
/// `#[since(MINOR)]` on a variant names the first minor version with the variant. A field takes the attribute as in
/// [`wire_struct`].
#[macro_export]
macro_rules! wire_enum {
    ($(#[doc = $doc:literal])* $(#[derive($($derive:ident),* $(,)?)])? pub enum $name:ident {
        $($(#[doc = $variant_doc:literal])* $(#[since($since:literal)])?
        $variant:ident $({
            $($(#[doc = $field_doc:literal])* $(#[since($field_since:literal)])? $field:ident: $type:ty,)*
        })? = $tag:literal,)*
    }) => {
        $(#[doc = $doc])*
        $(#[derive($($derive),*)])?
        pub enum $name {
            $($(#[doc = $variant_doc])* $variant $({ $($(#[doc = $field_doc])* $field: $type,)* })?,)*
        }
        $crate::wire_enum!(@of $(#[doc = $doc])* $name { $(
            $(#[doc = $variant_doc])* $(#[since($since)])?
            $variant $({ $($(#[doc = $field_doc])* $(#[since($field_since)])? $field: $type,)* })? = $tag,
        )* });
    };
    // An enum that is declared elsewhere.
    (@of $(#[doc = $doc:literal])* $name:ident { $(
        $(#[doc = $variant_doc:literal])* $(#[since($since:literal)])?
        $variant:ident $({
            $($(#[doc = $field_doc:literal])* $(#[since($field_since:literal)])? $field:ident: $type:ty,)*
        })? = $tag:literal,
    )* }) => {
        impl $crate::wire::Wire for $name {
            const SECRET: bool = $($($(<$type as $crate::wire::Wire>::SECRET ||)*)?)* false;
            const SHAPE: &'static $crate::wire::Shape = &$crate::wire::Shape::Enum(&$crate::wire::EnumShape {
                name: stringify!($name),
                docs: &[$($doc),*],
                variants: &[$($crate::wire::VariantShape {
                    name: stringify!($variant),
                    docs: &[$($variant_doc),*],
                    since: 0 $(+ $since)?,
                    tag: $tag,
                    fields: &[$($($crate::wire::FieldShape::of::<$type>(
                        stringify!($field), &[$($field_doc),*], 0 $(+ $field_since)?
                    )),*)?],
                }),*],
            });
            fn put(&self, out: &mut $crate::wire::Writer) {
                match self {
                    $(Self::$variant $({ $($field,)* })? => {
                        out.push($tag);
                        $($($crate::wire::Wire::put($field, out);)*)?
                    })*
                }
            }
            fn get(reader: &mut $crate::wire::Reader<'_>) -> std::result::Result<Self, $crate::wire::WireError> {
                let error = reader.error();
                match <u8 as $crate::wire::Wire>::get(reader)? {
                    $($tag => Ok(Self::$variant $({ $($field: $crate::wire_struct!(@get reader $($field_since)?),)* })?),)*
                    _ => Err(error),
                }
            }
        }
    };
}
pub use {wire_enum, wire_struct};
