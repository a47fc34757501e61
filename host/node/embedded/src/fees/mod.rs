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
    feerate: f64,
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
        let feerate = feerate.to_sat_per_kvb() as f64;
        let bucket = bucket_of(feerate);
        self.horizons().into_iter().for_each(|(horizon, _)| horizon.came(bucket, height));
        self.tracked.insert(txid, Tracked { height, feerate });
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

    fn take(&mut self, txid: &Txid, is_confirmed: bool) -> Option<Tracked> {
        let tracked = self.tracked.remove(txid)?;
        let blocks = self.best_height.saturating_sub(tracked.height);
        let bucket = bucket_of(tracked.feerate);
        for (horizon, kind) in self.horizons() {
            horizon.left(&kind, bucket, tracked.height, blocks, is_confirmed);
        }
        Some(tracked)
    }

    /// A block came at this height and confirmed these transactions of the mempool.
    pub fn block<'a>(&mut self, height: u32, confirmed: impl IntoIterator<Item = &'a Txid>) {
        if height <= self.best_height {
            return;
        }
        self.best_height = height;
        self.horizons().into_iter().for_each(|(horizon, kind)| horizon.block(&kind, height));
        let mut has_counted = false;
        for txid in confirmed {
            let Some(tracked) = self.take(txid, true) else { continue };
            let blocks = height.saturating_sub(tracked.height);
            if blocks > 0 {
                has_counted = true;
                for (horizon, kind) in self.horizons() {
                    horizon.confirm(&kind, blocks, tracked.feerate);
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
