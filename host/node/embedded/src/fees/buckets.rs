//! The ranges of feerates that are told apart, in satoshi per 1000 virtual bytes.

use std::sync::LazyLock;

/// The upper end of the lowest range, by what factor the next is higher, and what no end but that of the last range exceeds.
const LOWEST: f64 = 1_000.0;
const SPACING: f64 = 1.05;
const HIGHEST: f64 = 1e7;
/// The end of the last range.
const NO_END: f64 = 1e99;

/// The number of ranges.
pub const BUCKETS: usize = 190;

/// The upper ends of the ranges, which belong to them.
pub fn ends() -> &'static [f64] {
    static ENDS: LazyLock<Vec<f64>> = LazyLock::new(|| {
        let bounded = std::iter::successors(Some(LOWEST), |end| Some(end * SPACING)).take_while(|end| *end <= HIGHEST);
        bounded.chain([NO_END]).collect()
    });
    &ENDS
}

/// The range of a feerate.
pub fn bucket_of(feerate: f64) -> usize {
    ends().partition_point(|end| *end < feerate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_all_feerates() {
        assert_eq!(ends().len(), BUCKETS);
        assert_eq!((bucket_of(0.0), bucket_of(1_000.0), bucket_of(1_000.5), bucket_of(1_050.0)), (0, 0, 1, 1));
        assert_eq!(bucket_of(1e12), BUCKETS - 1);
    }
}
