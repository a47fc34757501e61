//! What a sender says of the feerate.

use outrigger_values::FeeRate;

/// What the sender says of the feerate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FeeChoice {
    /// The estimate.
    Within {
        /// For so many blocks; none: what the settings say.
        target: Option<u32>,
        /// Of this kind.
        mode: EstimateMode,
    },
    /// This feerate.
    Exact {
        /// It.
        feerate: FeeRate,
        /// Whether it may be below the least feerate.
        below_minimum: bool,
    },
}

impl Default for FeeChoice {
    fn default() -> Self {
        Self::Within { target: None, mode: EstimateMode::Unset }
    }
}

/// Which of the node's estimates is taken.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum EstimateMode {
    /// Economical for a payment that can be replaced, since its fee can be raised; else conservative.
    #[default]
    Unset,
    /// The one that falls soon when fees fall.
    Economical,
    /// The one that also looks further back.
    Conservative,
}

impl EstimateMode {
    /// The mode of this name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        let modes = [("unset", Self::Unset), ("economical", Self::Economical), ("conservative", Self::Conservative)];
        modes.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, mode)| mode)
    }

    /// Whether that is the conservative one, for a payment of which it is known whether it can be replaced.
    pub fn is_conservative(self, replaceable: bool) -> bool {
        match self {
            Self::Unset => !replaceable,
            Self::Economical => false,
            Self::Conservative => true,
        }
    }
}
