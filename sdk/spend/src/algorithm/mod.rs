//! The algorithms that look for coins: branch and bound, CoinGrinder, the knapsack solver, single random draw.
//!
//! Each is given candidates, that is groups of coins reduced to four numbers, and gives the positions of those to take. Sums of
//! amounts that a node could make larger stop at their bounds.

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

/// A group of coins as the algorithms see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// What it counts for: the value less the fee for spending it, or the value where the recipients pay the fee.
    pub amount: SignedAmount,
    /// The fee for spending it now.
    pub fee: SignedAmount,
    /// The fee for spending it later, at the long-term feerate.
    pub long_term_fee: SignedAmount,
    /// The weight of its inputs, in weight units.
    pub weight: i64,
    /// Which group it is.
    pub group: usize,
}

/// Why an algorithm takes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missed {
    /// It found nothing.
    Nothing,
    /// All that it found is too heavy.
    TooHeavy,
}

impl Missed {
    fn of(too_heavy: bool) -> Self {
        if too_heavy { Self::TooHeavy } else { Self::Nothing }
    }
}

/// The groups to take, or why there are none.
pub type Taken = Result<Vec<usize>, Missed>;

/// The groups of the candidates at these positions.
fn groups(candidates: &[Candidate], positions: &[usize]) -> Vec<usize> {
    positions.iter().filter_map(|position| candidates.get(*position).map(|candidate| candidate.group)).collect()
}

/// The sum of all amounts.
fn total(candidates: &[Candidate]) -> SignedAmount {
    sum(candidates.iter().map(|candidate| candidate.amount))
}

#[cfg(test)]
mod tests;
