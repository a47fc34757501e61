//! Branch and bound (Erhardt, "An Evaluation of Coin Selection Strategies"): a set that needs no change.

use bitcoin::SignedAmount;
use outrigger_values::amount::Saturating;

use super::{Candidate, MAX_STEPS, SelectionFailure, SelectionResult, groups, total};

/// Searches for the set with the least waste whose amount exceeds the target by at most `cost_of_change`. The
/// candidates have positive amounts; the function sorts them. It goes depth first, tries to include the largest amount
/// first, and stops after [`MAX_STEPS`].
pub fn branch_and_bound(
    candidates: &mut [Candidate],
    target: SignedAmount,
    cost_of_change: SignedAmount,
    max_weight: i64,
) -> SelectionResult {
    let mut available = total(candidates);
    if available < target || candidates.is_empty() {
        return Err(SelectionFailure::Nothing);
    }
    candidates.sort_by_key(|candidate| (std::cmp::Reverse(candidate.amount), candidate.fee - candidate.long_term_fee));
    let candidates = &*candidates;
    let limit = target.saturating_add(cost_of_change);
    // If spending costs more now than later, each further input adds waste.
    let is_expensive = candidates.first().is_some_and(|first| first.fee > first.long_term_fee);
    let (mut amount, mut waste, mut weight, mut too_heavy) = (SignedAmount::ZERO, SignedAmount::ZERO, 0_i64, false);
    let mut taken: Vec<usize> = Vec::new();
    let mut best: Option<(SignedAmount, Vec<usize>)> = None;
    let mut next = 0;
    for _ in 0..MAX_STEPS {
        let worse = is_expensive && best.as_ref().is_some_and(|(least, _)| waste > *least);
        let mut back = true;
        if amount + available < target || amount > limit || worse {
        } else if weight > max_weight {
            too_heavy = true;
        } else if amount >= target {
            let whole = waste + (amount - target);
            if best.as_ref().is_none_or(|(least, _)| whole <= *least) {
                best = Some((whole, taken.clone()));
            }
        } else {
            back = false;
        }
        if back {
            let Some(last) = taken.pop() else { break };
            // Backtrack: skip the last included candidate, and make the skipped candidates after it available again.
            let passed = candidates.get(last + 1..next).unwrap_or_default();
            available += passed.iter().map(|candidate| candidate.amount).sum::<SignedAmount>();
            let Some(candidate) = candidates.get(last) else { break };
            amount -= candidate.amount;
            waste -= candidate.fee - candidate.long_term_fee;
            weight -= candidate.weight;
            next = last + 1;
            continue;
        }
        let Some(candidate) = candidates.get(next) else { break };
        available -= candidate.amount;
        // A candidate equal to the skipped one before it would lead to the same sums.
        let previous = next.checked_sub(1);
        let twin = taken.last() != previous.as_ref()
            && previous
                .and_then(|index| candidates.get(index))
                .is_some_and(|left| left.amount == candidate.amount && left.fee == candidate.fee);
        if taken.is_empty() || !twin {
            taken.push(next);
            amount += candidate.amount;
            waste += candidate.fee - candidate.long_term_fee;
            weight += candidate.weight;
        }
        next += 1;
    }
    best.map(|(_, taken)| groups(candidates, &taken)).ok_or(SelectionFailure::of(too_heavy))
}
