//! Fee estimates: what feerate a transaction needs to be confirmed within some blocks, by what the transactions of the mempool and the
//! blocks before needed. The method is bitcoind's.
//!
//! A transaction counts if it came by itself while the chain was up to date, and builds on none of the mempool. It counts for its
//! feerate when a block confirms it, and against it when it leaves the mempool otherwise. Three horizons count the same: the shorter,
//! the more finely and the sooner forgotten. Blocks that do not go beyond the highest one seen are not counted: a reorganisation
//! changes nothing but what it brings beyond that.

mod buckets;
mod file;
mod horizon;
mod kept;

use std::collections::HashMap;

use bitcoin::Txid;
use outrigger_service::mempool::FeeEstimate;
use outrigger_values::FeeRate;

use buckets::bucket_of;
use horizon::{Horizon, Kind};
pub use kept::KeptEstimates;

/// The horizons, from the shortest on.
const SHORT: Kind = Kind { periods: 12, scale: 1, decay: 0.962, sufficient: 0.5 };
const MEDIUM: Kind = Kind { periods: 24, scale: 2, decay: 0.9952, sufficient: 0.1 };
const LONG: Kind = Kind { periods: 42, scale: 24, decay: 0.99931, sufficient: 0.1 };

/// What share of the transactions must have been confirmed within half of the target, within it, and within the double of it.
const SHARE_IN_HALF: f64 = 0.6;
const SHARE: f64 = 0.85;
const SHARE_IN_DOUBLE: f64 = 0.95;

/// For how many blocks what an earlier run counted says how far estimates reach.
const OLDEST_HISTORY: u32 = 6 * 1008;

/// A transaction of the mempool that counts.
#[derive(Clone, Copy, Debug)]
struct Tracked {
    /// The height of the best block when it came.
    height: u32,
    /// The range of its feerate.
    bucket: usize,
}

/// A transaction that a block confirmed, as the mempool had it.
#[derive(Clone, Copy, Debug)]
pub struct Confirmed {
    /// Its id.
    pub txid: Txid,
    /// The height of the best block when it came to the mempool: the last time, where a reorganisation brought it back.
    pub height: u32,
    /// What it paid.
    pub feerate: FeeRate,
}

/// The heights of the first and the last block whose transactions were counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Span {
    first: u32,
    last: u32,
}

impl Span {
    fn blocks(self) -> u32 {
        self.last.saturating_sub(self.first)
    }
}

/// What the estimates are made of.
pub struct FeeEstimates {
    short: Horizon,
    medium: Horizon,
    long: Horizon,
    /// The height of the highest block seen; 0 before the first.
    best_height: u32,
    /// The height of the first block since the start that confirmed a transaction that counts.
    first_counted: Option<u32>,
    /// What an earlier run counted.
    former: Option<Span>,
    tracked: HashMap<Txid, Tracked>,
}

impl Default for FeeEstimates {
    fn default() -> Self {
        Self {
            short: SHORT.empty(),
            medium: MEDIUM.empty(),
            long: LONG.empty(),
            best_height: 0,
            first_counted: None,
            former: None,
            tracked: HashMap::new(),
        }
    }
}

impl FeeEstimates {
    fn horizons(&mut self) -> [(&mut Horizon, Kind); 3] {
        [(&mut self.short, SHORT), (&mut self.medium, MEDIUM), (&mut self.long, LONG)]
    }

    /// A transaction came that counts, when the best block had this height. While blocks were missed, none counts.
    pub fn track(&mut self, txid: Txid, height: u32, feerate: FeeRate) {
        if height != self.best_height || self.tracked.contains_key(&txid) {
            return;
        }
        let bucket = bucket_of(feerate.to_sat_per_kvb() as f64);
        self.horizons().into_iter().for_each(|(horizon, _)| horizon.came(bucket, height));
        self.tracked.insert(txid, Tracked { height, bucket });
    }

    /// A transaction left the mempool, and no block confirmed it.
    pub fn forget(&mut self, txid: &Txid) {
        self.take(txid, false);
    }

    /// All transactions count as having left the mempool, before the end.
    pub fn forget_all(&mut self) {
        let all: Vec<Txid> = self.tracked.keys().copied().collect();
        all.iter().for_each(|txid| self.forget(txid));
    }

    /// Whether it counted.
    fn take(&mut self, txid: &Txid, is_confirmed: bool) -> bool {
        let Some(Tracked { height, bucket }) = self.tracked.remove(txid) else { return false };
        let blocks = self.best_height.saturating_sub(height);
        for (horizon, kind) in self.horizons() {
            horizon.left(&kind, bucket, height, blocks, is_confirmed);
        }
        true
    }

    /// A block came at this height and confirmed these transactions of the mempool.
    pub fn block(&mut self, height: u32, confirmed: &[Confirmed]) {
        if height <= self.best_height {
            return;
        }
        self.best_height = height;
        self.horizons().into_iter().for_each(|(horizon, kind)| horizon.block(&kind, height));
        let mut has_counted = false;
        for transaction in confirmed {
            let blocks = height.saturating_sub(transaction.height);
            if self.take(&transaction.txid, true) && blocks > 0 {
                has_counted = true;
                for (horizon, kind) in self.horizons() {
                    horizon.confirm(&kind, blocks, transaction.feerate.to_sat_per_kvb() as f64);
                }
            }
        }
        if has_counted {
            self.first_counted.get_or_insert(height);
        }
    }

    /// The blocks that were counted since the start.
    fn span(&self) -> Span {
        self.first_counted.map(|first| Span { first, last: self.best_height }).unwrap_or_default()
    }

    /// What an earlier run counted, unless it is too long ago.
    fn former_span(&self) -> Span {
        let recent = |former: &Span| self.best_height.saturating_sub(former.last) <= OLDEST_HISTORY;
        self.former.filter(recent).unwrap_or_default()
    }

    /// The most blocks that can be estimated for: half of those that were counted, so that enough can have failed.
    fn reach(&self) -> u32 {
        LONG.most_blocks().min(self.span().blocks().max(self.former_span().blocks()) / 2)
    }

    /// The greatest confirmation target that is estimated for.
    pub const MAX_TARGET: u32 = LONG.periods * LONG.scale;

    /// The feerate to be confirmed within `target` blocks, or within the blocks that can be estimated for if that is less.
    /// `conservative`: not lowered by what only the last blocks show.
    pub fn estimate(&self, target: u32, conservative: bool) -> FeeEstimate {
        if !(1..=Self::MAX_TARGET).contains(&target) {
            return FeeEstimate { feerate: None, blocks: target };
        }
        // Nothing can be said of the very next block.
        let blocks = target.max(2).min(self.reach());
        if blocks <= 1 {
            return FeeEstimate { feerate: None, blocks };
        }
        let double = blocks * 2;
        let mut best = self.combined(blocks / 2, SHARE_IN_HALF, true);
        best = greater(best, self.combined(blocks, SHARE, true));
        best = greater(best, self.combined(double, SHARE_IN_DOUBLE, !conservative));
        if conservative || best.is_none() {
            best = greater(best, self.conservative(double));
        }
        let feerate = best.map(|feerate| FeeRate::from_sat_per_kvb(feerate.round() as u64));
        FeeEstimate { feerate: feerate.filter(|feerate| *feerate > FeeRate::ZERO), blocks }
    }

    /// The estimate of the shortest horizon that reaches so far, or of a shorter one at its end if that is lower.
    fn combined(&self, target: u32, share: f64, or_shorter: bool) -> Option<f64> {
        let estimate = |horizon: &Horizon, kind: Kind, target| horizon.estimate(&kind, target, share, self.best_height);
        let all = [(&self.short, SHORT), (&self.medium, MEDIUM), (&self.long, LONG)];
        let reaching = all.iter().find(|(_, kind)| target <= kind.most_blocks()).filter(|_| target > 0);
        let (horizon, kind) = reaching?;
        let mut best = estimate(horizon, *kind, target);
        if or_shorter {
            for (horizon, kind) in all.iter().rev().filter(|(_, kind)| target > kind.most_blocks()) {
                let shorter = estimate(horizon, *kind, kind.most_blocks()).filter(|shorter| *shorter > 0.0);
                best = match (best, shorter) {
                    (Some(best), Some(shorter)) => Some(best.min(shorter)),
                    (best, shorter) => best.or(shorter),
                };
            }
        }
        best
    }

    /// The highest estimate of the horizons longer than the shortest that reaches so far.
    fn conservative(&self, target: u32) -> Option<f64> {
        let estimate =
            |horizon: &Horizon, kind: Kind| horizon.estimate(&kind, target, SHARE_IN_DOUBLE, self.best_height);
        let medium = (target <= SHORT.most_blocks()).then(|| estimate(&self.medium, MEDIUM)).flatten();
        let long = (target <= MEDIUM.most_blocks()).then(|| estimate(&self.long, LONG)).flatten();
        greater(medium, long)
    }
}

fn greater(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use bitcoin::hashes::Hash;

    use super::*;

    const FEERATE: FeeRate = FeeRate::from_sat_per_kvb(5_000);

    /// Estimates that have seen these heights, and a transaction that came at the last of them.
    fn with_one(heights: std::ops::RangeInclusive<u32>) -> (FeeEstimates, Txid) {
        let mut estimates = FeeEstimates::default();
        let (txid, last) = (Txid::from_byte_array([7; 32]), *heights.end());
        heights.for_each(|height| estimates.block(height, &[]));
        estimates.track(txid, last, FEERATE);
        (estimates, txid)
    }

    /// How many transactions were confirmed within so many blocks.
    fn within(estimates: &FeeEstimates, blocks: usize) -> f64 {
        estimates.short.within[blocks - 1].iter().sum()
    }

    #[test]
    fn a_transaction_counts_from_when_a_reorganisation_brought_it_back() {
        let (mut estimates, txid) = with_one(1..=10);
        let confirmed = |height| [Confirmed { txid, height, feerate: FEERATE }];
        // A branch confirms it at a height that was seen, which counts for nothing; another one does not.
        estimates.block(10, &confirmed(10));
        (11..=13).for_each(|height| estimates.block(height, &[]));
        assert_eq!(within(&estimates, SHORT.periods as usize), 0.0);
        estimates.block(14, &confirmed(13));
        assert_eq!(within(&estimates, 1), 1.0);
        assert!(estimates.tracked.is_empty());
    }

    #[test]
    fn what_leaves_counts_as_failed_for_the_whole_periods_that_it_waited() {
        let (mut estimates, txid) = with_one(1..=10);
        (11..=13).for_each(|height| estimates.block(height, &[]));
        estimates.forget(&txid);
        let failed = |horizon: &Horizon| horizon.failed.iter().filter(|row| row.iter().sum::<f64>() > 0.0).count();
        // Three blocks are three periods, one, and none.
        assert_eq!([&estimates.short, &estimates.medium, &estimates.long].map(failed), [3, 1, 0]);
    }

    #[test]
    fn nothing_counts_while_blocks_are_missed_or_twice() {
        let (mut estimates, txid) = with_one(1..=10);
        estimates.track(txid, 10, FEERATE);
        for height in [9, 11] {
            estimates.track(Txid::from_byte_array([8; 32]), height, FEERATE);
        }
        assert_eq!(estimates.tracked.len(), 1);
        estimates.block(11, &[Confirmed { txid, height: 10, feerate: FEERATE }]);
        assert_eq!((within(&estimates, 1), estimates.span()), (1.0, Span { first: 11, last: 11 }));
    }
}
