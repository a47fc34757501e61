//! Single random draw: draws random groups until they pay target and change.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bitcoin::SignedAmount;
use bitcoin::secp256k1::rand::Rng;

use super::{Candidate, SelectionFailure, SelectionResult, groups};

/// Draws groups until their amount reaches `target`, which includes change. While they are too heavy, it removes the
/// smallest. The candidates have positive amounts; the function reorders them.
pub fn single_random_draw(
    candidates: &mut [Candidate],
    target: SignedAmount,
    max_weight: i64,
    random: &mut impl Rng,
) -> SelectionResult {
    // Ordered by amount, so that the smallest is removed first.
    let mut drawn: BinaryHeap<Reverse<(SignedAmount, usize)>> = BinaryHeap::new();
    let (mut amount, mut weight, mut too_heavy) = (SignedAmount::ZERO, 0_i64, false);
    for position in 0..candidates.len() {
        candidates.swap(position, random.gen_range(position..candidates.len()));
        let Some(candidate) = candidates.get(position) else { break };
        drawn.push(Reverse((candidate.amount, position)));
        amount += candidate.amount;
        weight += candidate.weight;
        too_heavy |= weight > max_weight;
        while weight > max_weight {
            let Some(Reverse((least, position))) = drawn.pop() else { break };
            amount -= least;
            weight -= candidates.get(position).map_or(0, |candidate| candidate.weight);
        }
        if amount >= target {
            let positions: Vec<usize> = drawn.into_iter().map(|Reverse((_, position))| position).collect();
            return Ok(groups(candidates, &positions));
        }
    }
    Err(SelectionFailure::of(too_heavy))
}
