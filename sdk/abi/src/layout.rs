//! The structs and function types of the interface as data, from which the C header and the record of frozen layouts are
//! made.
//!
//! `abi_struct!` and `abi_functions!` write it beside what they declare, so that the two cannot differ.

/// The lines of a doc comment.
pub type Docs = &'static [&'static str];

/// A struct of the interface.
#[derive(Debug)]
pub struct StructLayout {
    /// Its name in Rust.
    pub name: &'static str,
    /// What it is.
    pub docs: Docs,
    /// Its alignment in bytes.
    pub align: usize,
    /// Its fields in their order.
    pub fields: &'static [FieldLayout],
}

/// A field of a struct.
#[derive(Debug)]
pub struct FieldLayout {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub docs: Docs,
    /// The minor version that added it.
    pub since: u32,
    /// Its type as it stands in the source.
    pub rust_type: &'static str,
    /// Where it begins, in bytes.
    pub offset: usize,
    /// The bytes it takes.
    pub size: usize,
}

/// The type of a function that one side calls and the other implements.
#[derive(Debug)]
pub struct FunctionType {
    /// Its name in Rust.
    pub name: &'static str,
    /// What such a function does.
    pub docs: Docs,
    /// The minor version that added it.
    pub since: u32,
    /// Name and type of each parameter, as they stand in the source.
    pub params: &'static [(&'static str, &'static str)],
    /// The type of its result, as it stands in the source; empty for none.
    pub result: &'static str,
}

/// What the interface declares.
#[derive(Clone, Copy, Debug)]
pub enum Declaration {
    /// A struct.
    Struct(&'static StructLayout),
    /// Types of functions.
    Functions(&'static [FunctionType]),
}

/// A struct with a [`StructLayout`].
pub trait Layout {
    /// The layout.
    const LAYOUT: &'static StructLayout;
}

impl StructLayout {
    /// The bytes that the struct has in a minor version.
    pub const fn size_at(&self, minor: u32) -> usize {
        let (mut end, mut index) = (0, 0);
        while index < self.fields.len() {
            let field = &self.fields[index];
            if field.since <= minor {
                end = field.offset + field.size;
            }
            index += 1;
        }
        end.next_multiple_of(self.align)
    }

    /// How many of the first `size` bytes hold whole fields.
    pub fn whole_fields(&self, size: usize) -> usize {
        let ends = self.fields.iter().map(|field| field.offset + field.size);
        ends.filter(|end| *end <= size).max().unwrap_or(0)
    }
}

/// Declares a struct of the interface.
///
/// A field that was added after the first version stands at the end and says with `#[since(MINOR)]` which minor version has
/// it. For each such field there is a function of its name that reads it only where the other side's struct reaches so far.
macro_rules! abi_struct {
    (@later $field:ident $type:ty) => {
        #[doc = concat!("`", stringify!($field), "`, where the struct of the other side reaches so far.")]
        ///
        /// # Safety
        /// `this` points to a struct of which as much can be read as its `struct_size` says.
        pub unsafe fn $field(this: *const Self) -> Option<$type> {
            let end = std::mem::offset_of!(Self, $field) + size_of::<$type>();
            // SAFETY: the caller's promise; what `struct_size` does not cover is not read.
            unsafe { if (*this).struct_size < end { None } else { Some((*this).$field) } }
        }
    };
    ($(#[doc = $doc:literal])* $(#[derive($($derive:ident),*)])? pub struct $name:ident {
        $($(#[doc = $field_doc:literal])* $(#[since($since:literal)])? $vis:vis $field:ident: $type:ty,)*
    }) => {
        $(#[doc = $doc])*
        #[repr(C)]
        $(#[derive($($derive),*)])?
        pub struct $name {
            $($(#[doc = $field_doc])* $(#[doc = concat!("Since minor ", $since, ".")])? $vis $field: $type,)*
        }

        impl $crate::layout::Layout for $name {
            const LAYOUT: &'static $crate::layout::StructLayout = &$crate::layout::StructLayout {
                name: stringify!($name),
                docs: &[$($doc),*],
                align: align_of::<$name>(),
                fields: &[$($crate::layout::FieldLayout {
                    name: stringify!($field),
                    docs: &[$($field_doc),*],
                    since: 0 $(+ $since)?,
                    rust_type: stringify!($type),
                    offset: std::mem::offset_of!($name, $field),
                    size: size_of::<$type>(),
                }),*],
            };
        }

        impl $name {
            $($(#[doc = concat!("Since minor ", $since, ".")] $crate::layout::abi_struct!(@later $field $type);)?)*
        }
    };
}
pub(crate) use abi_struct;

/// Declares types of C functions, and a constant with their descriptions.
macro_rules! abi_functions {
    (const $functions:ident; $($(#[doc = $doc:literal])* $(#[since($since:literal)])?
        pub type $name:ident = fn($($param:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)*
    ) => {
        $($(#[doc = $doc])* pub type $name = unsafe extern "C" fn($($param: $type),*) $(-> $result)?;)*

        /// These types of functions, described.
        pub const $functions: &[$crate::layout::FunctionType] = &[$($crate::layout::FunctionType {
            name: stringify!($name),
            docs: &[$($doc),*],
            since: 0 $(+ $since)?,
            params: &[$((stringify!($param), stringify!($type))),*],
            result: concat!($(stringify!($result))?),
        }),*];
    };
}
pub(crate) use abi_functions;
