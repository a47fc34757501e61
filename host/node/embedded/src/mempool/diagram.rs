//! Feerate diagrams: a miner's revenue by block space. A package that replaces entries must earn more than they do at some
//! size, and less at none (bitcoind's `ImprovesFeerateDiagram`).

use std::collections::BTreeSet;

use bitcoin::{SignedAmount, Txid};
use outrigger_values::FeeFrac;
use outrigger_values::amount::Saturating;

use super::entry::Entry;
use super::graph::Graph;

/// Sets of transactions that are mined together, the highest feerate first.
type Chunks = Vec<FeeFrac>;

/// Checks that a package improves the diagram of the entries that it replaces.
///
/// # Errors
/// bitcoind's reasons: the diagram does not improve, or a replaced entry is in a cluster of more than two.
pub fn check_improvement(graph: &Graph, replaced: &BTreeSet<Txid>, package: FeeFrac) -> Result<(), String> {
    let gone: Vec<&Entry> = replaced.iter().filter_map(|txid| graph.get(txid)).collect();
    gone.iter().try_for_each(|entry| check_topology(graph, entry))?;
    let mut old = Chunks::new();
    let mut new = vec![package];
    for entry in gone {
        let parent = entry.parents.first().and_then(|parent| graph.get(parent));
        if let Some(parent) = parent.filter(|parent| !replaced.contains(&parent.txid)) {
            new.push(parent.own().feefrac());
        }
        // An entry with a child is counted when the loop reaches the child.
        if entry.descendants.count == 1 {
            let (own, both) = (entry.own().feefrac(), entry.ancestors.feefrac());
            match parent {
                Some(parent) if own <= both => old.extend([parent.own().feefrac(), own]),
                _ => old.push(both),
            }
        }
    }
    for chunks in [&mut old, &mut new] {
        chunks.sort_unstable_by(|one, other| other.cmp(one));
    }
    if is_better(&new, &old) {
        return Ok(());
    }
    Err("insufficient feerate: does not improve feerate diagram".to_owned())
}

/// Checks that a replaced entry is alone or in a cluster of two.
fn check_topology(graph: &Graph, entry: &Entry) -> Result<(), String> {
    let (txid, ancestors, descendants) = (entry.txid, entry.ancestors.count, entry.descendants.count);
    if ancestors > 2 {
        return Err(format!("{txid} has {} ancestors, max 1 allowed", ancestors - 1));
    }
    if descendants > 2 {
        return Err(format!("{txid} has {} descendants, max 1 allowed", descendants - 1));
    }
    if ancestors > 1 && descendants > 1 {
        return Err(format!("{txid} has both ancestor and descendant, exceeding cluster limit of 2"));
    }
    if let Some(child) =
        entry.children.first().filter(|child| graph.get(child).is_some_and(|one| one.ancestors.count > 2))
    {
        return Err(format!("{txid} is not the only parent of child {child}"));
    }
    let has_more = |parent: &&Txid| graph.get(parent).is_some_and(|one| one.descendants.count > 2);
    match entry.parents.first().filter(has_more) {
        Some(parent) => Err(format!("{txid} is not the only child of parent {parent}")),
        None => Ok(()),
    }
}

/// Whether `new` earns more than `old` at some size, and less at none. Both are linear between the ends of their
/// chunks, so it suffices to compare them there.
fn is_better(new: &Chunks, old: &Chunks) -> bool {
    let ends = |chunks: &Chunks| {
        chunks
            .iter()
            .scan(0, |end, chunk| {
                *end += chunk.size;
                Some(*end)
            })
            .collect::<Vec<u64>>()
    };
    let mut better = false;
    for size in ends(new).into_iter().chain(ends(old)) {
        let ((new, by), (old, over)) = (earned(new, size), earned(old, size));
        match (new * over).cmp(&(old * by)) {
            std::cmp::Ordering::Less => return false,
            order => better |= order.is_gt(),
        }
    }
    better
}

/// The revenue of this many virtual bytes, as a fraction.
fn earned(chunks: &Chunks, size: u64) -> (i128, i128) {
    let (mut fees, mut rest) = (SignedAmount::ZERO, size);
    for chunk in chunks {
        if rest < chunk.size {
            let (by, fee) = (i128::from(chunk.size), i128::from(chunk.fee.to_sat()));
            return (i128::from(fees.to_sat()) * by + fee * i128::from(rest), by);
        }
        fees = fees.saturating_add(chunk.fee);
        rest -= chunk.size;
    }
    (i128::from(fees.to_sat()), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagrams_compare_at_all_sizes() {
        let chunks = |list: &[(i64, u64)]| -> Chunks {
            list.iter().map(|&(fee, size)| FeeFrac { fee: SignedAmount::from_sat(fee), size }).collect()
        };
        let better = |new, old| is_better(&chunks(new), &chunks(old));
        assert!(better(&[(950, 300), (100, 100)], &[(900, 300), (100, 100)]));
        assert!(!better(&[(900, 300)], &[(900, 300)]));
        // A higher total revenue, but less at small sizes.
        assert!(!better(&[(1_000, 600)], &[(500, 100)]));
        assert!(better(&[(1_000, 100)], &[(500, 100), (400, 500)]));
    }
}
