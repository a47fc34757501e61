//! The wildcard at the end of a key expression (BIP 380).

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wildcard {
    None,
    /// `/*`
    Normal,
    /// `/*h`
    Hardened,
}
