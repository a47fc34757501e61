//! What one horizon of the fee estimates has counted: how many blocks the transactions of each range of feerates took to be confirmed,
//! as averages that decay with each block, and how long those of the mempool wait.

use super::buckets::{BUCKETS, bucket_of};

/// What makes a horizon.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// How many periods are told apart.
    pub periods: u32,
    /// The blocks of a period.
    pub scale: u32,
    /// What is left of the averages after a block.
    pub decay: f64,
    /// How many transactions of a range of feerates a block must have on average, for the range to say anything.
    pub sufficient: f64,
}

/// One number for each range of feerates.
pub type Row = Vec<f64>;

/// The counts of a horizon.
#[derive(Clone, PartialEq, Debug)]
pub struct Horizon {
    /// The sum of the feerates of the confirmed transactions, in satoshi per 1000 virtual bytes.
    pub feerates: Row,
    /// The number of confirmed transactions.
    pub confirmed: Row,
    /// Of these, the number of those that were confirmed within so many periods: one row for each number, from 1 on.
    pub within: Vec<Row>,
    /// The number of transactions that left the mempool otherwise after so many periods.
    pub failed: Vec<Row>,
    /// Those that wait, by the height at which they came, in a ring of as many heights as blocks are told apart.
    waiting: Vec<Vec<u32>>,
    /// Those that came before.
    waiting_longer: Vec<u32>,
}

fn rows(count: u32) -> Vec<Row> {
    vec![vec![0.0; BUCKETS]; count as usize]
}

fn add<T: std::ops::AddAssign>(row: &mut [T], bucket: usize, what: T) {
    if let Some(sum) = row.get_mut(bucket) {
        *sum += what;
    }
}

fn take_one(row: &mut [u32], bucket: usize) {
    if let Some(count) = row.get_mut(bucket) {
        *count = count.saturating_sub(1);
    }
}

impl Kind {
    /// The most blocks that are told apart.
    pub fn most_blocks(&self) -> u32 {
        self.periods * self.scale
    }

    /// A horizon that has counted nothing.
    pub fn empty(&self) -> Horizon {
        Horizon {
            feerates: vec![0.0; BUCKETS],
            confirmed: vec![0.0; BUCKETS],
            within: rows(self.periods),
            failed: rows(self.periods),
            waiting: vec![vec![0; BUCKETS]; self.most_blocks() as usize],
            waiting_longer: vec![0; BUCKETS],
        }
    }
}

impl Horizon {
    /// The row of the ring for a height.
    fn waiting_since(&mut self, height: u32) -> &mut [u32] {
        let position = height as usize % self.waiting.len().max(1);
        self.waiting.get_mut(position).map(Vec::as_mut_slice).unwrap_or_default()
    }

    /// A transaction came when the best block had this height.
    pub fn came(&mut self, bucket: usize, height: u32) {
        add(self.waiting_since(height), bucket, 1);
    }

    /// A transaction that came `blocks` blocks ago, at `height`, left. Where no block confirmed it, that counts against its feerate.
    pub fn left(&mut self, kind: &Kind, bucket: usize, height: u32, blocks: u32, is_confirmed: bool) {
        if blocks as usize >= self.waiting.len() {
            take_one(&mut self.waiting_longer, bucket);
        } else {
            take_one(self.waiting_since(height), bucket);
        }
        if !is_confirmed {
            let periods = (blocks / kind.scale) as usize;
            self.failed.iter_mut().take(periods).for_each(|row| add(row, bucket, 1.0));
        }
    }

    /// A block came at this height, and with it everything is a block older.
    pub fn block(&mut self, kind: &Kind, height: u32) {
        let oldest = self.waiting_since(height).to_vec();
        self.waiting_since(height).fill(0);
        self.waiting_longer.iter_mut().zip(oldest).for_each(|(sum, count)| *sum += count);
        let averages = [&mut self.feerates, &mut self.confirmed].into_iter();
        for row in averages.chain(&mut self.within).chain(&mut self.failed) {
            row.iter_mut().for_each(|average| *average *= kind.decay);
        }
    }

    /// The block confirmed a transaction that had waited for so many blocks, itself included.
    pub fn confirm(&mut self, kind: &Kind, blocks: u32, feerate: f64) {
        let bucket = bucket_of(feerate);
        let periods = blocks.div_ceil(kind.scale).saturating_sub(1) as usize;
        self.within.iter_mut().skip(periods).for_each(|row| add(row, bucket, 1.0));
        add(&mut self.confirmed, bucket, 1.0);
        add(&mut self.feerates, bucket, feerate);
    }

    /// The feerate, in satoshi per 1000 virtual bytes, from which on a share of at least `success` is confirmed within `target` blocks:
    /// the average in that range of the lowest such feerates which has their median. None where too little was counted.
    pub fn estimate(&self, kind: &Kind, target: u32, success: f64, best_height: u32) -> Option<f64> {
        let period = target.div_ceil(kind.scale).checked_sub(1)? as usize;
        let (within, failed) = (self.within.get(period)?, self.failed.get(period)?);
        // Those of the mempool that have waited for that long.
        let waiting_since =
            |blocks: u32| self.waiting.get(best_height.wrapping_sub(blocks) as usize % self.waiting.len());
        let late: Vec<_> =
            (target..kind.most_blocks()).filter_map(waiting_since).chain([&self.waiting_longer]).collect();
        let enough = kind.sufficient / (1.0 - kind.decay);
        let mut sums = Sums::default();
        let (mut counted, mut highest, mut best) = (0.0, None, None);
        // From the highest feerates down, as many ranges at a time as have enough transactions together.
        for (bucket, ((within, failed), confirmed)) in within.iter().zip(failed).zip(&self.confirmed).enumerate().rev()
        {
            let highest_here = *highest.get_or_insert(bucket);
            counted += confirmed;
            sums.within += within;
            sums.confirmed += confirmed;
            sums.failed += failed;
            sums.waiting += late.iter().filter_map(|row| row.get(bucket)).map(|count| u64::from(*count)).sum::<u64>();
            if counted < enough {
                continue;
            }
            counted = 0.0;
            if sums.share() >= success {
                best = Some(bucket..=highest_here);
                sums = Sums::default();
                highest = None;
            }
        }
        self.median_range(best?)
    }

    /// The average feerate of the range in which the median of these ranges is.
    fn median_range(&self, ranges: std::ops::RangeInclusive<usize>) -> Option<f64> {
        let (confirmed, feerates) = (self.confirmed.get(ranges.clone())?, self.feerates.get(ranges)?);
        let mut rest = confirmed.iter().sum::<f64>() / 2.0;
        if rest == 0.0 {
            return None;
        }
        for (confirmed, feerates) in confirmed.iter().zip(feerates) {
            if *confirmed >= rest {
                return Some(feerates / confirmed);
            }
            rest -= confirmed;
        }
        None
    }
}

/// Sums over ranges of feerates.
#[derive(Default)]
struct Sums {
    within: f64,
    confirmed: f64,
    failed: f64,
    waiting: u64,
}

impl Sums {
    /// The share of the transactions that were confirmed in time.
    fn share(&self) -> f64 {
        self.within / (self.confirmed + self.failed + self.waiting as f64)
    }
}
