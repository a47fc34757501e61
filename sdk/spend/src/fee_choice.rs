//! How the sender chooses the feerate.

use outrigger_values::FeeRate;

/// The sender's choice of the feerate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FeeChoice {
    /// Use the node's estimate.
    Within {
        /// The confirmation target in blocks; `None`: the wallet's setting.
        target: Option<u32>,
        /// The estimate mode.
        mode: EstimateMode,
    },
    /// Use this feerate.
    Exact {
        /// The feerate.
        feerate: FeeRate,
        /// Whether it may be below the minimum feerate.
        below_minimum: bool,
    },
}

impl Default for FeeChoice {
    fn default() -> Self {
        Self::Within { target: None, mode: EstimateMode::Unset }
    }
}

/// The mode of fee estimation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum EstimateMode {
    /// Economical for a replaceable payment, since its fee can be bumped; else conservative.
    #[default]
    Unset,
    /// Follows falling fees quickly.
    Economical,
    /// Also considers a longer history.
    Conservative,
}

impl EstimateMode {
    /// The mode of this name, compared without case.
    pub fn named(name: &str) -> Option<Self> {
        let modes = [("unset", Self::Unset), ("economical", Self::Economical), ("conservative", Self::Conservative)];
        modes.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, mode)| mode)
    }

    /// Whether to use the conservative estimate. `replaceable`: whether the payment is.
    pub fn is_conservative(self, replaceable: bool) -> bool {
        match self {
            Self::Unset => !replaceable,
            Self::Economical => false,
            Self::Conservative => true,
        }
    }
}
