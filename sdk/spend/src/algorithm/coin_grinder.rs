//! CoinGrinder: a bounded search for the lightest set that pays the target and change, for high feerates.

use bitcoin::SignedAmount;
use outrigger_values::amount::Saturating;

use super::{Candidate, MAX_STEPS, SelectionFailure, SelectionResult, groups};

struct Search<'a> {
    candidates: &'a [Candidate],
    taken: Vec<usize>,
    amount: SignedAmount,
    weight: i64,
    best: Vec<usize>,
    best_weight: i64,
    best_amount: SignedAmount,
}

impl Search<'_> {
    fn at(&self, position: usize) -> Option<Candidate> {
        self.candidates.get(position).copied()
    }

    fn take(&mut self, position: usize, candidate: Candidate) {
        self.taken.push(position);
        self.amount += candidate.amount;
        self.weight += candidate.weight;
    }

    /// Removes the last candidate. Returns its position.
    fn leave_last(&mut self) -> Option<usize> {
        let last = self.taken.pop()?;
        let candidate = self.at(last)?;
        self.amount -= candidate.amount;
        self.weight -= candidate.weight;
        Some(last)
    }

    /// Removes the last candidate. Returns the next position with another amount, since equal amounts give the same set
    /// or a heavier one; `None` at the end of the search.
    fn shift(&mut self) -> Option<usize> {
        loop {
            let left = self.leave_last()?;
            let amount = self.at(left)?.amount;
            let behind = self.candidates.get(left + 1..).unwrap_or_default();
            if let Some(other) = behind.iter().position(|candidate| candidate.amount != amount) {
                return Some(left + 1 + other);
            }
        }
    }
}

/// Searches for the lightest set that pays the target and the change. Sorts the candidates, whose amounts are positive.
pub fn coin_grinder(
    candidates: &mut [Candidate],
    target: SignedAmount,
    change: SignedAmount,
    max_weight: i64,
) -> SelectionResult {
    candidates.sort_by_key(|candidate| (std::cmp::Reverse(candidate.amount), candidate.weight));
    let candidates = &*candidates;
    // For each position: the total amount and the least weight of the candidates behind it.
    let mut behind = vec![(SignedAmount::ZERO, i64::MAX); candidates.len()];
    let (mut rest, mut lightest) = (SignedAmount::ZERO, i64::MAX);
    for (slot, candidate) in behind.iter_mut().zip(candidates).rev() {
        *slot = (rest, lightest);
        rest = rest.saturating_add(candidate.amount);
        lightest = lightest.min(candidate.weight);
    }
    let wanted = target.saturating_add(change);
    if rest < wanted || candidates.is_empty() {
        return Err(SelectionFailure::Nothing);
    }
    let mut search = Search {
        candidates,
        taken: Vec::new(),
        amount: SignedAmount::ZERO,
        weight: 0,
        best: Vec::new(),
        best_weight: max_weight,
        best_amount: SignedAmount::MAX,
    };
    let (mut next, mut too_heavy) = (0, false);
    for _ in 0..MAX_STEPS {
        let (Some(tail), Some((rest, lightest))) = (search.at(next), behind.get(next).copied()) else { break };
        search.take(next, tail);
        next += 1;
        let can_be_cut = tail.weight <= lightest;
        let (mut cut, mut shift) = (false, false);
        if search.amount + rest < wanted {
            cut = true;
        } else if search.weight > search.best_weight {
            too_heavy |= search.weight > max_weight;
            (cut, shift) = (can_be_cut, !can_be_cut);
        } else if search.amount >= wanted {
            shift = true;
            if (search.weight, search.amount) < (search.best_weight, search.best_amount) {
                search.best = search.taken.clone();
                (search.best_weight, search.best_amount) = (search.weight, search.amount);
            }
        } else if !search.best.is_empty() {
            // The missing amount needs at least this many more candidates.
            let more = ((wanted - search.amount + tail.amount).to_sat() - 1) / tail.amount.to_sat();
            if search.weight.saturating_add(lightest.saturating_mul(more)) > search.best_weight {
                (cut, shift) = (can_be_cut, !can_be_cut);
            }
        }
        if next == candidates.len() || cut {
            search.leave_last();
            shift = true;
        }
        if shift {
            let Some(position) = search.shift() else { break };
            next = position;
        }
    }
    if search.best.is_empty() { Err(SelectionFailure::of(too_heavy)) } else { Ok(groups(candidates, &search.best)) }
}
