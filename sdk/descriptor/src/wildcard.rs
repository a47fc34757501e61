//! The wildcard at the end of a key expression (BIP 380).

/// The steps that a wildcard stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wildcard {
    /// There is none.
    None,
    /// `/*`
    Normal,
    /// `/*h`
    Hardened,
}
