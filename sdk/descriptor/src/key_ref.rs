//! The place of a key in a descriptor.

/// A key of the descriptor, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct KeyRef(pub usize);
