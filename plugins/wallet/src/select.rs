//! Coin selection: which of some values to take to come to a target.
//!
//! The values are effective ones: what a coin is worth less the fee for spending it. First a bounded search (branch and
//! bound, after Erhardt, "An Evaluation of Coin Selection Strategies") looks for coins that come so close to the target that
//! change is not worth its cost. Where it finds none, the smallest single coin that suffices is taken, or else as few as
//! possible, the largest first.

use bitcoin::Weight;

/// The most steps of the search.
const MAX_STEPS: usize = 100_000;

/// What to come to, in the unit of the values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Goal {
    /// The least sum of effective values.
    pub target: u64,
    /// How much more there may be without change.
    pub tolerance: u64,
    /// The least sum that leaves change worth having, at least `target`.
    pub with_change: u64,
}

/// The positions of the values to take, in rising order; none when all together do not suffice.
pub fn select(values: &[u64], goal: Goal) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by_key(|position| std::cmp::Reverse(values.get(*position).copied()));
    let sorted: Vec<u64> = order.iter().filter_map(|position| values.get(*position).copied()).collect();
    let chosen = without_change(&sorted, goal).or_else(|| fewest(&sorted, goal))?;
    let mut positions: Vec<usize> = chosen.into_iter().filter_map(|index| order.get(index).copied()).collect();
    positions.sort_unstable();
    Some(positions)
}

/// Positions to take where what [`select`] chose is too heavy: the fewest values, then those with the most value for their
/// weight; each with change, then where it must be without. None when all together do not suffice.
pub fn select_lighter(values: &[u64], weights: &[Weight], goal: Goal) -> Vec<Vec<usize>> {
    let coin = |position: usize| Some((*values.get(position)?, *weights.get(position)?));
    let coins: Vec<(usize, u64, Weight)> =
        (0..values.len()).filter_map(|at| coin(at).map(|(value, weight)| (at, value, weight))).collect();
    let mut by_value = coins.clone();
    by_value.sort_by_key(|(_, value, _)| std::cmp::Reverse(*value));
    let mut by_density = coins;
    by_density.sort_by_key(|(_, value, weight)| {
        std::cmp::Reverse(u128::from(*value) * DENSITY / u128::from(weight.to_wu()).max(1))
    });
    let wanted = [goal.with_change.max(goal.target), goal.target];
    let choices = wanted.into_iter().flat_map(|sum| [leading(&by_value, sum), leading(&by_density, sum)]);
    choices.flatten().collect()
}

/// The finest difference of value for weight that counts.
const DENSITY: u128 = 1 << 40;

/// The first of these coins (position, value, weight) that come to a sum, without those that it does without; none when all
/// do not suffice. The positions are in rising order.
fn leading(coins: &[(usize, u64, Weight)], wanted: u64) -> Option<Vec<usize>> {
    let (mut taken, mut sum) = (Vec::new(), 0_u64);
    for coin in coins {
        if sum >= wanted {
            break;
        }
        taken.push(*coin);
        sum = sum.saturating_add(coin.1);
    }
    if sum < wanted {
        return None;
    }
    // The last one may have made others needless, the heaviest of which is the greatest loss.
    taken.sort_by_key(|(_, _, weight)| std::cmp::Reverse(*weight));
    taken.retain(|(_, value, _)| {
        let needless = sum - value >= wanted;
        if needless {
            sum -= value;
        }
        !needless
    });
    let mut positions: Vec<usize> = taken.into_iter().map(|(position, ..)| position).collect();
    positions.sort_unstable();
    Some(positions)
}

/// The indexes of falling `values` whose sum exceeds the target by the least, within the tolerance; of equal ones the
/// first found, which takes the larger coins.
fn without_change(values: &[u64], goal: Goal) -> Option<Vec<usize>> {
    let limit = goal.target.saturating_add(goal.tolerance);
    // What all values from an index on come to.
    let mut rest = vec![0_u64; values.len() + 1];
    let mut sum_of_rest = 0_u64;
    for (slot, value) in rest.iter_mut().rev().skip(1).zip(values.iter().rev()) {
        sum_of_rest = sum_of_rest.saturating_add(*value);
        *slot = sum_of_rest;
    }
    let value = |index: usize| values.get(index).copied();
    let (mut taken, mut sum, mut next) = (Vec::new(), 0_u64, 0_usize);
    let mut best: Option<(u64, Vec<usize>)> = None;
    for _ in 0..MAX_STEPS {
        if (goal.target..=limit).contains(&sum) && best.as_ref().is_none_or(|(least, _)| sum < *least) {
            best = Some((sum, taken.clone()));
            if sum == goal.target {
                break;
            }
        }
        let reachable = sum.saturating_add(rest.get(next).copied().unwrap_or(0)) >= goal.target;
        match value(next).filter(|_| sum < goal.target && reachable) {
            Some(candidate) => {
                // The twin of a value that was left out leads to the same sums again.
                let previous = next.checked_sub(1);
                let twin =
                    previous.is_some_and(|index| value(index) == Some(candidate)) && taken.last() != previous.as_ref();
                if !twin {
                    taken.push(next);
                    sum = sum.saturating_add(candidate);
                }
                next += 1;
            }
            None => {
                let Some(last) = taken.pop() else { break };
                sum -= value(last).unwrap_or(0);
                next = last + 1;
            }
        }
    }
    best.map(|(_, taken)| taken)
}

/// The smallest of the falling `values` that leaves change, or suffices where there is not enough for change; else the
/// largest ones.
fn fewest(values: &[u64], goal: Goal) -> Option<Vec<usize>> {
    let total = values.iter().fold(0_u64, |sum, value| sum.saturating_add(*value));
    if total < goal.target {
        return None;
    }
    let needed = if total >= goal.with_change { goal.with_change } else { goal.target };
    if let Some(single) = values.iter().rposition(|value| *value >= needed) {
        return Some(vec![single]);
    }
    let mut sum = 0_u64;
    let mut count = 0;
    for value in values {
        if sum >= needed {
            break;
        }
        sum = sum.saturating_add(*value);
        count += 1;
    }
    Some((0..count).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn goal(target: u64, tolerance: u64, with_change: u64) -> Goal {
        Goal { target, tolerance, with_change }
    }

    fn wu(weights: &[u64]) -> Vec<Weight> {
        weights.iter().copied().map(Weight::from_wu).collect()
    }

    #[track_caller]
    fn check(values: &[u64], goal: Goal, expect: Option<&[usize]>) {
        assert_eq!(select(values, goal).as_deref(), expect);
    }

    #[test]
    fn coin_selection_finds_an_exact_sum_among_many() {
        check(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], goal(55, 0, 70), Some(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
        check(&[100, 33, 21, 8], goal(41, 0, 60), Some(&[1, 3]));
        check(&[100, 33, 21, 8], goal(40, 1, 60), Some(&[1, 3]));
        check(&[8, 8, 8], goal(16, 0, 30), Some(&[0, 1]));
    }

    #[test]
    fn coin_selection_takes_the_closest_sum_within_the_tolerance() {
        check(&[50, 46, 45], goal(44, 10, 80), Some(&[2]));
    }

    #[test]
    fn coin_selection_takes_the_smallest_sufficient_coin_without_a_close_sum() {
        check(&[500, 90, 120, 1000], goal(100, 1, 110), Some(&[2]));
        check(&[500, 90, 1000], goal(100, 1, 110), Some(&[0]));
    }

    #[test]
    fn coin_selection_takes_the_largest_coins_where_nothing_else_will_do() {
        check(&[10, 40, 30, 20], goal(65, 0, 68), Some(&[1, 2]));
        // Not enough for change: the target is enough.
        check(&[10, 40], goal(45, 0, 60), Some(&[0, 1]));
    }

    #[test]
    fn coin_selection_of_too_little_is_none() {
        check(&[], goal(1, 0, 2), None);
        check(&[1, 2, 3], goal(7, 100, 8), None);
    }

    #[test]
    fn coin_selection_ends_on_hard_input() {
        // Values whose subsets have ever different sums, and none near the target.
        let values: Vec<u64> = (0..40).map(|index| (1_u64 << 40) + (1 << index)).collect();
        let goal = goal((1_u64 << 45) + 1, 0, 1 << 45 | 2);
        let chosen = select(&values, goal).unwrap();
        assert!(chosen.iter().map(|index| values[*index]).sum::<u64>() >= goal.target);
    }

    #[test]
    fn coin_selection_lighter_choice_leaves_change_where_it_can() {
        let lighter = |values: &[u64], weights: &[u64], goal| select_lighter(values, &wu(weights), goal);
        assert_eq!(lighter(&[60, 50, 40, 10], &[1; 4], goal(100, 5, 105))[0], [0, 1]);
        // Not enough for change: the target is enough.
        assert_eq!(lighter(&[60, 41], &[1; 2], goal(100, 5, 105)), [[0, 1], [0, 1]]);
        assert_eq!(lighter(&[60, 39], &[1; 2], goal(100, 5, 105)), [[0; 0]; 0]);
    }

    #[test]
    fn coin_selection_lightest_choice_takes_the_most_value_for_its_weight() {
        // Two heavy coins are fewest, three light ones lightest.
        let choices = select_lighter(&[60, 60, 40, 40, 40], &wu(&[100, 100, 10, 10, 10]), goal(110, 0, 115));
        assert_eq!(choices, [vec![0, 1], vec![2, 3, 4], vec![0, 1], vec![2, 3, 4]]);
        // What the last coin makes needless is left out.
        assert_eq!(select_lighter(&[5, 100], &wu(&[1, 30]), goal(100, 0, 100))[1], [1]);
    }

    proptest! {
        #[test]
        fn coin_selection_suffices_whenever_the_coins_do(
            values in prop::collection::vec(1_u64..1000, 0..14),
            target in 1_u64..4000,
            tolerance in 0_u64..50,
            change in 0_u64..200,
        ) {
            let goal = goal(target, tolerance, target + change);
            let total: u64 = values.iter().sum();
            let chosen = select(&values, goal);
            prop_assert_eq!(chosen.is_some(), total >= target);
            if let Some(chosen) = chosen {
                prop_assert!(chosen.is_sorted_by(|a, b| a < b));
                let sum: u64 = chosen.iter().map(|index| values[*index]).sum();
                prop_assert!(sum >= target);
                // The search must find the best sum within the tolerance, as trying all subsets does.
                let best = (0..1_u32 << values.len())
                    .map(|set| (0..values.len()).filter(|i| set >> i & 1 == 1).map(|i| values[i]).sum::<u64>())
                    .filter(|sum| (target..=target + tolerance).contains(sum))
                    .min();
                if let Some(best) = best {
                    prop_assert_eq!(sum, best);
                }
            }
        }
    }
}
