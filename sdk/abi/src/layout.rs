//! The structs and function types of the interface as data, for the C header.
//!
//! `abi_struct!` and `abi_functions!` generate this data from the Rust declarations, so the header cannot differ from them.

/// The lines of a doc comment.
pub type Docs = &'static [&'static str];

/// A struct of the interface.
#[derive(Debug)]
pub struct StructLayout {
    /// The name in Rust.
    pub name: &'static str,
    /// The documentation.
    pub docs: Docs,
    /// The alignment in bytes.
    pub align: usize,
    /// The fields in order.
    pub fields: &'static [FieldLayout],
}

/// A field of a struct.
#[derive(Debug)]
pub struct FieldLayout {
    /// The name.
    pub name: &'static str,
    /// The documentation.
    pub docs: Docs,
    /// The minor version that added it.
    pub since: u32,
    /// The type in Rust.
    pub rust_type: &'static str,
    /// The offset in bytes.
    pub offset: usize,
    /// The size in bytes.
    pub size: usize,
}

/// The type of a function that one side implements and the other calls.
#[derive(Debug)]
pub struct FunctionType {
    /// The name in Rust.
    pub name: &'static str,
    /// The documentation.
    pub docs: Docs,
    /// The minor version that added it.
    pub since: u32,
    /// The name and the Rust type of each parameter.
    pub params: &'static [(&'static str, &'static str)],
    /// The Rust type of the result; empty if none.
    pub result: &'static str,
}

/// A declaration of the interface.
#[derive(Clone, Copy, Debug)]
pub enum Declaration {
    /// A struct.
    Struct(&'static StructLayout),
    /// Function types.
    Functions(&'static [FunctionType]),
}

impl StructLayout {
    /// The size of the struct in a minor version, in bytes.
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

    /// The end of the last field that lies within the first `size` bytes, in bytes; 0 if there is none.
    pub fn whole_fields(&self, size: usize) -> usize {
        let ends = self.fields.iter().map(|field| field.offset + field.size);
        ends.filter(|end| *end <= size).max().unwrap_or(0)
    }
}

/// Declares a struct of the interface.
///
/// Fields added after minor version 0 come last, marked `#[since(MINOR)]`. For each, the macro generates a function of the same name, which
/// returns the field, or `None` if the other side's struct is too old to have it.
macro_rules! abi_struct {
    (@later $field:ident $type:ty) => {
        #[doc = concat!("`", stringify!($field), "`; `None` if the other side's struct is too old to have it.")]
        ///
        /// # Safety
        /// `this` points to a struct with `struct_size` readable bytes.
        pub unsafe fn $field(this: *const Self) -> Option<$type> {
            let end = std::mem::offset_of!(Self, $field) + size_of::<$type>();
            // SAFETY: the caller guarantees `struct_size` readable bytes, and nothing beyond them is read.
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

        impl $name {
            /// The layout of this struct.
            pub const LAYOUT: &'static $crate::layout::StructLayout = &$crate::layout::StructLayout {
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

            $($(#[doc = concat!("Since minor ", $since, ".")] $crate::layout::abi_struct!(@later $field $type);)?)*
        }
    };
}
pub(crate) use abi_struct;

/// Declares types of C functions, and a constant that describes them.
macro_rules! abi_functions {
    (const $functions:ident; $($(#[doc = $doc:literal])* $(#[since($since:literal)])?
        pub type $name:ident = fn($($param:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)*
    ) => {
        $($(#[doc = $doc])* pub type $name = unsafe extern "C" fn($($param: $type),*) $(-> $result)?;)*

        /// Describes these function types.
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
