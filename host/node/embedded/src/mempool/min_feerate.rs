//! The minimum feerate after evictions: an evicted package can raise it, and after the next block it decays with time.

use outrigger_values::FeeRate;

/// The half-life in seconds, while the mempool is at least half full.
const HALF_LIFE: f64 = 12.0 * 3_600.0;
/// The least time between two decays, in seconds.
const STEP: u64 = 10;

#[derive(Clone, Copy)]
pub struct Fullness {
    /// In bytes.
    pub usage: u64,
    /// In bytes.
    pub max_usage: u64,
    pub incremental: FeeRate,
}

impl Fullness {
    /// In seconds. The emptier the mempool, the faster the minimum decays.
    fn half_life(&self) -> f64 {
        if self.usage < self.max_usage / 4 {
            HALF_LIFE / 4.0
        } else if self.usage < self.max_usage / 2 {
            HALF_LIFE / 2.0
        } else {
            HALF_LIFE
        }
    }
}

/// The rolling minimum feerate. It decays by fractions of a satoshi, as in bitcoind.
#[derive(Clone, Copy, Default)]
pub struct RollingMinFeerate {
    /// In satoshi per 1000 virtual bytes.
    rate: f64,
    /// When it was last computed, in Unix seconds.
    since: u64,
    /// Whether a block has arrived since the last rise.
    falling: bool,
}

impl RollingMinFeerate {
    /// The minimum feerate at a time in Unix seconds; zero if there is none.
    pub fn at(&self, now: u64, fullness: Fullness) -> FeeRate {
        let Self { rate, falling, .. } = self.fallen(now, fullness);
        // The rate is never negative, and the cast saturates.
        let rounded = FeeRate::from_sat_per_kvb(rate.round() as u64);
        if falling && rounded > FeeRate::ZERO { rounded.max(fullness.incremental) } else { rounded }
    }

    fn fallen(self, now: u64, fullness: Fullness) -> Self {
        if !self.falling || self.rate == 0.0 || now <= self.since.saturating_add(STEP) {
            return self;
        }
        let rate = self.rate / 2_f64.powf((now - self.since) as f64 / fullness.half_life());
        let rate = if rate < fullness.incremental.to_sat_per_kvb() as f64 / 2.0 { 0.0 } else { rate };
        Self { rate, since: now, ..self }
    }

    /// Records an eviction. `rate` is the package's feerate plus the incremental feerate.
    pub fn raise(&mut self, rate: FeeRate, now: u64, fullness: Fullness) {
        *self = self.fallen(now, fullness);
        let rate = rate.to_sat_per_kvb() as f64;
        if rate > self.rate {
            self.rate = rate;
            self.falling = false;
        }
    }

    pub fn block(&mut self, now: u64, fullness: Fullness) {
        *self = Self { since: now, falling: true, ..self.fallen(now, fullness) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600;

    fn full(usage: u64) -> Fullness {
        Fullness { usage, max_usage: 1_000, incremental: rate(1_000) }
    }

    const fn rate(satoshi: u64) -> FeeRate {
        FeeRate::from_sat_per_kvb(satoshi)
    }

    #[test]
    fn min_feerate_decays_only_after_a_block() {
        let mut min_feerate = RollingMinFeerate::default();
        assert_eq!(min_feerate.at(5, full(0)), rate(0));
        min_feerate.raise(rate(16_000), 5, full(900));
        min_feerate.raise(rate(8_000), 5, full(900));
        assert_eq!(min_feerate.at(1_000 * HOUR, full(900)), rate(16_000));
        min_feerate.block(1_000 * HOUR, full(900));
        assert_eq!(min_feerate.at(1_000 * HOUR + STEP, full(900)), rate(16_000));
        assert_eq!(min_feerate.at(1_012 * HOUR, full(900)), rate(8_000));
        assert_eq!(min_feerate.at(1_012 * HOUR, full(499)), rate(4_000));
        assert_eq!(min_feerate.at(1_012 * HOUR, full(249)), rate(1_000));
        // Below half of the incremental feerate the minimum is dropped.
        assert_eq!(min_feerate.at(1_060 * HOUR, full(900)), rate(1_000));
        assert_eq!(min_feerate.at(1_061 * HOUR, full(900)), rate(0));
    }

    #[test]
    fn min_feerate_stops_falling_when_it_rises() {
        let mut min_feerate = RollingMinFeerate::default();
        min_feerate.raise(rate(16_000), HOUR, full(900));
        min_feerate.block(HOUR, full(900));
        min_feerate.raise(rate(16_001), 13 * HOUR, full(900));
        assert_eq!(min_feerate.at(100 * HOUR, full(900)), rate(16_001));
        min_feerate.raise(rate(20_000), 13 * HOUR, full(900));
        assert_eq!(min_feerate.at(100 * HOUR, full(900)), rate(20_000));
        min_feerate.block(100 * HOUR, full(900));
        min_feerate.block(112 * HOUR, full(900));
        assert_eq!(min_feerate.at(124 * HOUR, full(900)), rate(5_000));
    }
}
