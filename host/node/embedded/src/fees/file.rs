//! The fee estimates over a restart, in bitcoind's format of `fee_estimates.dat`: the version that can read it, a number without meaning,
//! the height of the best block, the blocks that were counted, the ends of the ranges, and the three horizons. Integers are
//! little-endian; a float is the integer of its bits; lists begin with their length.

use bitcoin::VarInt;
use bitcoin::consensus::{Decodable, Encodable, encode};

use super::buckets::{BUCKETS, ends};
use super::horizon::{Horizon, Kind, Row};
use super::{FeeEstimates, LONG, MEDIUM, SHORT, Span};

/// The version of bitcoind that can read a file, and what stands where that of the writer stood formerly.
const READABLE_BY: i32 = 149_900;
const WRITTEN_BY: i32 = 0;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum EstimatesFileError {
    /// It ends too early.
    #[error("the file of fee estimates cannot be read: {0}")]
    Contents(#[from] encode::Error),
    /// It is of another version.
    #[error("a file of fee estimates of version {0} is not known")]
    Version(i32),
    /// It counts in other ranges or periods, or what it says cannot be.
    #[error("the file of fee estimates has other {0}")]
    Other(&'static str),
}

type Result<T> = std::result::Result<T, EstimatesFileError>;

impl FeeEstimates {
    /// The bytes of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&READABLE_BY, &mut out);
        put(&WRITTEN_BY, &mut out);
        put(&self.best_height, &mut out);
        let (now, former) = (self.span(), self.former_span());
        let span = if now.blocks() > former.blocks() / 2 { now } else { self.former.unwrap_or_default() };
        put(&span.first, &mut out);
        put(&span.last, &mut out);
        put_row(ends(), &mut out);
        for (horizon, kind) in [(&self.medium, MEDIUM), (&self.short, SHORT), (&self.long, LONG)] {
            put(&kind.decay.to_bits(), &mut out);
            put(&kind.scale, &mut out);
            put_row(&horizon.feerates, &mut out);
            put_row(&horizon.confirmed, &mut out);
            for rows in [&horizon.within, &horizon.failed] {
                put(&VarInt::from(rows.len()), &mut out);
                rows.iter().for_each(|row| put_row(row, &mut out));
            }
        }
        out
    }

    /// The estimates of a file.
    ///
    /// # Errors
    /// When it is another's or damaged.
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self> {
        let from = &mut bytes;
        let (readable_by, _written_by) = (i32::consensus_decode(from)?, i32::consensus_decode(from)?);
        if readable_by != READABLE_BY {
            return Err(EstimatesFileError::Version(readable_by));
        }
        let best_height = u32::consensus_decode(from)?;
        let span = Span { first: u32::consensus_decode(from)?, last: u32::consensus_decode(from)? };
        if span.first > span.last || span.last > best_height {
            return Err(EstimatesFileError::Other("blocks than there can be"));
        }
        if row(from)? != ends() {
            return Err(EstimatesFileError::Other("ranges"));
        }
        let (medium, short, long) = (horizon(from, &MEDIUM)?, horizon(from, &SHORT)?, horizon(from, &LONG)?);
        let former = Some(span).filter(|span| span.first > 0);
        Ok(Self { short, medium, long, best_height, former, ..Self::default() })
    }
}

fn put(what: &impl Encodable, out: &mut Vec<u8>) {
    // Writing to memory cannot fail.
    let _ = what.consensus_encode(out);
}

fn put_row(row: &[f64], out: &mut Vec<u8>) {
    put(&VarInt::from(row.len()), out);
    row.iter().for_each(|number| put(&number.to_bits(), out));
}

/// A row with a number for each range.
fn row(from: &mut &[u8]) -> Result<Row> {
    if VarInt::consensus_decode(from)?.0 != BUCKETS as u64 {
        return Err(EstimatesFileError::Other("ranges"));
    }
    let number = |_| {
        let number = f64::from_bits(u64::consensus_decode(from)?);
        if number.is_finite() && number >= 0.0 { Ok(number) } else { Err(EstimatesFileError::Other("numbers")) }
    };
    (0..BUCKETS).map(number).collect()
}

fn rows(from: &mut &[u8], count: u32) -> Result<Vec<Row>> {
    if VarInt::consensus_decode(from)?.0 != u64::from(count) {
        return Err(EstimatesFileError::Other("periods"));
    }
    (0..count).map(|_| row(from)).collect()
}

fn horizon(from: &mut &[u8], kind: &Kind) -> Result<Horizon> {
    let (decay, scale) = (f64::from_bits(u64::consensus_decode(from)?), u32::consensus_decode(from)?);
    if decay != kind.decay || scale != kind.scale {
        return Err(EstimatesFileError::Other("horizons"));
    }
    let mut horizon = kind.empty();
    (horizon.feerates, horizon.confirmed) = (row(from)?, row(from)?);
    (horizon.within, horizon.failed) = (rows(from, kind.periods)?, rows(from, kind.periods)?);
    Ok(horizon)
}

#[cfg(test)]
mod tests {
    use bitcoin::Txid;
    use bitcoin::hashes::Hash;
    use outrigger_values::FeeRate;

    use super::super::Confirmed;
    use super::*;

    fn counted() -> FeeEstimates {
        let mut estimates = FeeEstimates::default();
        estimates.block(100, &[]);
        for height in 100..160_u32 {
            let transaction = |number: u8| Confirmed {
                txid: Txid::from_byte_array([height.to_le_bytes()[0] ^ number; 32]),
                height,
                feerate: FeeRate::from_sat_per_kvb(2_000 + 500 * u64::from(number)),
            };
            for Confirmed { txid, height, feerate } in (0..20).map(transaction) {
                estimates.track(txid, height, feerate);
            }
            let confirmed: Vec<_> = (5..20).map(transaction).collect();
            estimates.block(height + 1, &confirmed);
        }
        estimates
    }

    #[test]
    fn fee_estimates_are_read_as_they_were_written() {
        let mut before = counted();
        before.forget_all();
        let bytes = before.to_bytes();
        let after = FeeEstimates::from_bytes(&bytes).unwrap();
        assert_eq!(after.to_bytes(), bytes);
        assert_eq!(after.former, Some(Span { first: 101, last: 160 }));
        for target in 1..40 {
            assert_eq!(after.estimate(target, false), before.estimate(target, false), "{target}");
        }
        assert!(after.estimate(6, false).feerate.is_some());
    }

    #[test]
    fn fee_estimates_of_a_damaged_file_are_refused() {
        let bytes = counted().to_bytes();
        for end in [0, 3, 8, 19, 100, bytes.len() - 1] {
            assert!(FeeEstimates::from_bytes(&bytes[..end]).is_err(), "cut at {end}");
        }
        for at in [0, 16, 20, 30, 22 + 8 * BUCKETS] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xff;
            assert!(FeeEstimates::from_bytes(&damaged).is_err(), "byte {at}");
        }
    }
}
