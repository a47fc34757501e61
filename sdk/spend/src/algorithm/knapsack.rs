//! The knapsack solver (`KnapsackSolver` of Bitcoin Core): the best of many random subsets.

use bitcoin::SignedAmount;
use bitcoin::secp256k1::rand::Rng;
use bitcoin::secp256k1::rand::seq::SliceRandom;

use outrigger_values::amount::Saturating;

use super::{Candidate, SelectionFailure, SelectionResult, groups};

/// The number of random subsets per target.
const ITERATIONS: usize = 1000;

/// A random bit source that draws 64 bits at a time.
struct Coins<'a, R> {
    random: &'a mut R,
    bits: u64,
    left: u32,
}

impl<R: Rng> Coins<'_, R> {
    fn flip(&mut self) -> bool {
        if self.left == 0 {
            (self.bits, self.left) = (self.random.next_u64(), u64::BITS);
        }
        self.left -= 1;
        let bit = self.bits & 1 == 1;
        self.bits >>= 1;
        bit
    }
}

/// Selects a group that matches the target, or a random subset close to it, or the smallest group that pays target and
/// change. Amounts may be negative; the function reorders the candidates.
pub fn knapsack(
    candidates: &mut [Candidate],
    target: SignedAmount,
    change: SignedAmount,
    max_weight: i64,
    random: &mut impl Rng,
) -> SelectionResult {
    candidates.shuffle(random);
    let enough = target.saturating_add(change);
    let mut too_heavy = false;
    let mut smaller: Vec<Candidate> = Vec::new();
    let mut larger: Option<Candidate> = None;
    for candidate in candidates.iter() {
        if candidate.weight > max_weight {
            too_heavy = true;
        } else if candidate.amount == target {
            return Ok(vec![candidate.group]);
        } else if candidate.amount < enough {
            smaller.push(*candidate);
        } else if larger.is_none_or(|least| candidate.amount < least.amount) {
            larger = Some(*candidate);
        }
    }
    let sum = super::total(&smaller);
    if sum == target {
        if smaller.iter().map(|candidate| candidate.weight).sum::<i64>() <= max_weight {
            return Ok(smaller.iter().map(|candidate| candidate.group).collect());
        }
        too_heavy = true;
    }
    let single = larger.map(|candidate| vec![candidate.group]);
    if sum < target {
        return single.ok_or(SelectionFailure::of(too_heavy));
    }
    smaller.sort_by_key(|candidate| (std::cmp::Reverse(candidate.amount), candidate.fee - candidate.long_term_fee));
    let subsets = Subsets::new(&smaller, max_weight);
    let (mut best, mut subset) = subsets.closest(sum, target, random);
    if best != target && sum >= enough {
        (best, subset) = subsets.closest(sum, enough, random);
    }
    let single_is_closer = (best != target && best < enough) || larger.is_some_and(|larger| larger.amount <= best);
    let weight: i64 = subset.iter().filter_map(|position| smaller.get(*position)).map(|taken| taken.weight).sum();
    match single {
        Some(single) if single_is_closer || weight > max_weight => Ok(single),
        None if weight > max_weight => Err(SelectionFailure::TooHeavy),
        _ => Ok(groups(&smaller, &subset)),
    }
}

/// A subset: its total amount and the positions of its members.
type Best = (SignedAmount, Vec<usize>);

/// The candidates for subsets, largest amount first.
struct Subsets<'a> {
    candidates: &'a [Candidate],
    max_weight: i64,
    /// The greatest weight of a candidate.
    heaviest: i64,
}

impl<'a> Subsets<'a> {
    fn new(candidates: &'a [Candidate], max_weight: i64) -> Self {
        let heaviest = candidates.iter().map(|candidate| candidate.weight).max().unwrap_or(0);
        Self { candidates, max_weight, heaviest }
    }

    /// The random subset with the least total of at least `target`; all candidates if no subset is better
    /// (`ApproximateBestSubset` of Bitcoin Core).
    fn closest(&self, sum: SignedAmount, target: SignedAmount, random: &mut impl Rng) -> Best {
        let mut best = (sum, (0..self.candidates.len()).collect());
        let mut coins = Coins { random, bits: 0, left: 0 };
        let mut members = Vec::new();
        for _ in 0..ITERATIONS {
            if best.0 == target {
                break;
            }
            members.clear();
            if let Some(state) = self.draw(target, &mut best, &mut members, &mut coins) {
                self.fill(target, &mut best, members.clone(), state);
            }
        }
        best
    }

    /// First pass: each candidate becomes a member with probability 1/2. A candidate that reaches the target completes
    /// a subset, which is compared with the best, and leaves again. Returns the members' amount and weight if no
    /// candidate reached the target. Amounts descend, so the candidates that reach the target are adjacent. The smallest
    /// drawn one of them gives the best subset, and the others can be skipped.
    fn draw(
        &self,
        target: SignedAmount,
        best: &mut Best,
        members: &mut Vec<usize>,
        coins: &mut Coins<'_, impl Rng>,
    ) -> Option<(SignedAmount, i64)> {
        let (mut sum, mut weight, mut reached) = (SignedAmount::ZERO, 0_i64, false);
        let mut position = 0;
        while let Some(candidate) = self.candidates.get(position) {
            let fits = weight + self.heaviest <= self.max_weight;
            if fits && sum + candidate.amount >= target {
                let rest = self.candidates.get(position..).unwrap_or_default();
                let end = position + rest.partition_point(|other| sum + other.amount >= target);
                if let Some(drawn) = (position..end).rev().find(|_| coins.flip()) {
                    reached = true;
                    self.compare(sum, drawn, best, members);
                }
                position = end;
                continue;
            }
            if coins.flip() {
                if sum + candidate.amount >= target && weight + candidate.weight <= self.max_weight {
                    reached = true;
                    self.compare(sum, position, best, members);
                } else {
                    sum += candidate.amount;
                    weight += candidate.weight;
                    members.push(position);
                }
            }
            position += 1;
        }
        (!reached).then_some((sum, weight))
    }

    /// Second pass: adds the candidates that were not drawn, one after the other. A candidate that reaches the target
    /// completes a subset, which is compared with the best, and leaves again.
    fn fill(
        &self,
        target: SignedAmount,
        best: &mut Best,
        mut members: Vec<usize>,
        (mut sum, mut weight): (SignedAmount, i64),
    ) {
        let drawn = members.clone();
        let mut drawn = drawn.iter().peekable();
        for (position, candidate) in self.candidates.iter().enumerate() {
            if drawn.next_if_eq(&&position).is_some() {
                continue;
            }
            if sum + candidate.amount >= target && weight + candidate.weight <= self.max_weight {
                self.compare(sum, position, best, &members);
            } else {
                sum += candidate.amount;
                weight += candidate.weight;
                members.push(position);
            }
        }
    }

    /// Keeps the members with this candidate if their total is less than the best.
    fn compare(&self, sum: SignedAmount, position: usize, best: &mut Best, members: &[usize]) {
        let with = sum + self.candidates.get(position).map_or(SignedAmount::ZERO, |candidate| candidate.amount);
        if with < best.0 {
            best.0 = with;
            best.1.clear();
            best.1.extend_from_slice(members);
            best.1.push(position);
        }
    }
}
