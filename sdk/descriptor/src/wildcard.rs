//! The wildcard at the end of a key expression (BIP 380).

use bitcoin::bip32::ChildNumber;

use super::error::ExpandError;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wildcard {
    None,
    /// `/*`
    Normal,
    /// `/*h`
    Hardened,
}

impl Wildcard {
    /// The step at an index; `None` without a wildcard.
    pub fn step(self, index: u32) -> Result<Option<ChildNumber>, ExpandError> {
        let step = match self {
            Self::None => return Ok(None),
            Self::Normal => ChildNumber::from_normal_idx(index),
            Self::Hardened => ChildNumber::from_hardened_idx(index),
        };
        step.map(Some).map_err(|_| ExpandError::Index(index))
    }
}
