//! The place of a key in a descriptor.

/// The index of a key in a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct KeyRef(pub usize);
