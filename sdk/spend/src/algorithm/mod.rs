//! The algorithms of coin selection: branch and bound, CoinGrinder, the knapsack solver, single random draw.
//!
//! Each selects from candidates (groups of coins, reduced to amount, fees and weight) and returns the groups to spend.
//! Sums of amounts from the node saturate.

mod branch_and_bound;
mod coin_grinder;
mod knapsack;
mod single_random_draw;

use bitcoin::SignedAmount;

use crate::coin::sum;
pub use branch_and_bound::branch_and_bound;
pub use coin_grinder::coin_grinder;
pub use knapsack::knapsack;
pub use single_random_draw::single_random_draw;

/// The most steps of a search (`TOTAL_TRIES` of Bitcoin Core).
const MAX_STEPS: usize = 100_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The value less the fee for spending the group, or the value if the recipients pay the fee.
    pub amount: SignedAmount,
    /// The fee for spending the group now.
    pub fee: SignedAmount,
    /// The fee for spending the group later, at the long-term feerate.
    pub long_term_fee: SignedAmount,
    /// The weight of its inputs.
    pub weight: i64,
    /// The group's number.
    pub group: usize,
}

/// Why an algorithm selects nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SelectionFailure {
    /// There is no solution.
    Nothing,
    /// The sets that it found are too heavy.
    TooHeavy,
}

impl SelectionFailure {
    fn of(too_heavy: bool) -> Self {
        if too_heavy { Self::TooHeavy } else { Self::Nothing }
    }
}

pub type SelectionResult = Result<Vec<usize>, SelectionFailure>;

fn groups(candidates: &[Candidate], positions: &[usize]) -> Vec<usize> {
    positions.iter().filter_map(|position| candidates.get(*position).map(|candidate| candidate.group)).collect()
}

fn total(candidates: &[Candidate]) -> SignedAmount {
    sum(candidates.iter().map(|candidate| candidate.amount))
}

#[cfg(test)]
mod tests;
