//! Rules of headers.

use bitcoin::Target;
use bitcoin::block::Header;
use outrigger_service::chain::Tip;

use super::ValidationError;
use crate::params::{BITS, MAX_FUTURE_BLOCK_TIME};

/// The least block version: BIP 34, BIP 66 and BIP 65 forbid lower ones.
const MIN_VERSION: i32 = 4;

/// Sorts `times` and returns the median; 0 for none.
pub fn median(times: &mut [u32]) -> u32 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0)
}

/// Checks that the header's hash meets its target, and that the target is within the chain's limit (`high-hash`).
pub fn check_proof_of_work(header: &Header) -> Result<(), ValidationError> {
    let error = || ValidationError::new("high-hash");
    let target = target(header.bits.to_consensus()).ok_or_else(error)?;
    let limit = self::target(BITS).ok_or_else(error)?;
    if target > limit || !target.is_met_by(header.block_hash()) { Err(error()) } else { Ok(()) }
}

/// Decodes a compact target; `None` if it is negative, zero or beyond 256 bits.
fn target(bits: u32) -> Option<Target> {
    const SIGN: u32 = 0x0080_0000;
    let (size, word) = (bits >> 24, bits & (SIGN - 1));
    let overflows = size > 34 || (word > 0xff && size > 33) || (word > 0xffff && size > 32);
    if word == 0 || bits & SIGN != 0 || overflows {
        return None;
    }
    let target = Target::from_compact(bitcoin::CompactTarget::from_consensus(bits));
    (target != Target::ZERO).then_some(target)
}

/// Checks a header on its parent (bitcoind's `ContextualCheckBlockHeader`). `now` is the node's time in Unix seconds.
///
/// Order: `bad-diffbits`, `time-too-old`, `time-too-new`, `bad-version(0x...)`.
pub fn check_header(header: &Header, parent: &Tip, now: u64) -> Result<(), ValidationError> {
    if header.bits.to_consensus() != BITS {
        return Err(ValidationError::new("bad-diffbits"));
    }
    if header.time <= parent.median_time {
        return Err(ValidationError::new("time-too-old"));
    }
    if u64::from(header.time) > now.saturating_add(MAX_FUTURE_BLOCK_TIME) {
        return Err(ValidationError::new("time-too-new"));
    }
    let version = header.version.to_consensus();
    if version < MIN_VERSION {
        return Err(ValidationError::new(format!("bad-version(0x{version:08x})")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_upper_one_of_an_even_number() {
        assert_eq!(median(&mut [3, 1, 2]), 2);
        assert_eq!(median(&mut [4, 1]), 4);
        assert_eq!(median(&mut []), 0);
    }

    #[test]
    fn impossible_targets_are_none() {
        for bits in [0, 0x0100_0000, 0x2080_ffff, 0x207f_ffff | 0x0080_0000, 0x2200_ffff, 0xff12_3456, 0x0100_007f] {
            assert_eq!(target(bits), None, "{bits:#x}");
        }
        assert!(target(0x207f_ffff) > target(0x207f_fffe));
        assert!(target(0x2100_ffff) > target(0x207f_ffff));
    }
}
