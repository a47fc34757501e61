//! Rules of single transactions that blocks and the mempool share.

use std::collections::HashSet;

use bitcoin::absolute::LOCK_TIME_THRESHOLD;
use bitcoin::constants::COINBASE_MATURITY;
use bitcoin::{Amount, Transaction, Weight, relative};
use outrigger_service::chain::Coin;
use outrigger_values::amount::{COIN, Saturating};

use super::ValidationError;

/// The allowed length of a coinbase's script, in bytes.
const COINBASE_SCRIPT_SIZE: std::ops::RangeInclusive<usize> = 2..=100;
/// The unit of time-based relative locks, in seconds (BIP 68).
const LOCK_TIME_UNIT: i64 = 512;

/// Whether this many bytes outside witnesses exceed the weight of a block.
pub fn exceeds_block(bytes: usize) -> bool {
    Weight::from_vb(bytes as u64).is_none_or(|weight| weight > Weight::MAX_BLOCK)
}

/// Checks a transaction by itself, in the order of bitcoind's `CheckTransaction`.
pub fn check_transaction(tx: &Transaction) -> Result<(), ValidationError> {
    if tx.input.is_empty() {
        return Err(ValidationError::new("bad-txns-vin-empty"));
    }
    if tx.output.is_empty() {
        return Err(ValidationError::new("bad-txns-vout-empty"));
    }
    if exceeds_block(tx.base_size()) {
        return Err(ValidationError::new("bad-txns-oversize"));
    }
    let mut total = Amount::ZERO;
    for output in &tx.output {
        let value = output.value;
        if value.to_signed().is_err() {
            return Err(ValidationError::new("bad-txns-vout-negative"));
        }
        if value > Amount::MAX_MONEY {
            return Err(ValidationError::new("bad-txns-vout-toolarge"));
        }
        total = total.saturating_add(value);
        if total > Amount::MAX_MONEY {
            return Err(ValidationError::new("bad-txns-txouttotal-toolarge"));
        }
    }
    let mut seen = HashSet::with_capacity(tx.input.len());
    if !tx.input.iter().all(|input| seen.insert(input.previous_output)) {
        return Err(ValidationError::new("bad-txns-inputs-duplicate"));
    }
    if tx.is_coinbase() {
        if tx.input.iter().any(|input| !COINBASE_SCRIPT_SIZE.contains(&input.script_sig.len())) {
            return Err(ValidationError::new("bad-cb-length"));
        }
    } else if tx.input.iter().any(|input| input.previous_output.is_null()) {
        return Err(ValidationError::new("bad-txns-prevout-null"));
    }
    Ok(())
}

/// Whether the lock time allows a transaction into a block of this height whose parent has this median time (BIP 113).
pub fn is_final(tx: &Transaction, height: u32, median_time: u32) -> bool {
    let lock_time = tx.lock_time.to_consensus_u32();
    let limit = if lock_time < LOCK_TIME_THRESHOLD { height } else { median_time };
    lock_time == 0 || lock_time < limit || tx.input.iter().all(|input| input.sequence.to_consensus_u32() == u32::MAX)
}

/// The relative locks of a transaction, as an absolute height and time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockPoint {
    /// The last height that is too early; negative if there is none.
    pub height: i64,
    /// The last median time of a parent that is too early, in Unix seconds; negative if there is none.
    pub time: i64,
}

impl LockPoint {
    /// Whether a block of this height, whose parent has this median time, may contain the transaction.
    pub fn allows(&self, height: u32, median_time: u32) -> bool {
        self.height < i64::from(height) && self.time < i64::from(median_time)
    }
}

/// The relative locks of a transaction (BIP 68). `heights` are those of the coins it spends, in the order of its
/// inputs. `median_time_at` returns the median time of the block at a height.
pub fn sequence_lock<E>(
    tx: &Transaction,
    heights: impl IntoIterator<Item = u32>,
    mut median_time_at: impl FnMut(u32) -> Result<u32, E>,
) -> Result<LockPoint, E> {
    let mut lock = LockPoint { height: -1, time: -1 };
    // BIP 68 reads the version as unsigned.
    if (tx.version.0 as u32) < 2 {
        return Ok(lock);
    }
    for (input, height) in tx.input.iter().zip(heights) {
        match input.sequence.to_relative_lock_time() {
            None => {}
            Some(relative::LockTime::Blocks(blocks)) => {
                lock.height = lock.height.max(i64::from(height) + i64::from(blocks.value()) - 1);
            }
            Some(relative::LockTime::Time(time)) => {
                // BIP 68 counts from the median time of the block before the coin's.
                let start = i64::from(median_time_at(height.saturating_sub(1))?);
                lock.time = lock.time.max(start + i64::from(time.value()) * LOCK_TIME_UNIT - 1);
            }
        }
    }
    Ok(lock)
}

/// Checks amounts and maturity of the coins that a transaction in a block of this height spends, input by input.
/// Returns the fee.
pub fn check_inputs(tx: &Transaction, coins: &[Coin], height: u32) -> Result<Amount, ValidationError> {
    let mut total = Amount::ZERO;
    for coin in coins {
        let depth = height.saturating_sub(coin.height);
        if coin.coinbase && depth < COINBASE_MATURITY {
            return Err(ValidationError::new("bad-txns-premature-spend-of-coinbase")
                .with_detail(format!("tried to spend coinbase at depth {depth}")));
        }
        let value = coin.output.value;
        total = total.saturating_add(value);
        if value > Amount::MAX_MONEY || total > Amount::MAX_MONEY {
            return Err(ValidationError::new("bad-txns-inputvalues-outofrange"));
        }
    }
    let outputs = total_output(tx);
    total.checked_sub(outputs).ok_or_else(|| {
        let detail = format!("value in ({}) < value out ({})", Money(total), Money(outputs));
        ValidationError::new("bad-txns-in-belowout").with_detail(detail)
    })
}

pub fn total_output(tx: &Transaction) -> Amount {
    tx.output.iter().map(|output| output.value).fold(Amount::ZERO, Amount::saturating_add)
}

/// An amount in bitcoind's notation: at least two decimals, and no further trailing zeros.
pub struct Money(pub Amount);

impl std::fmt::Display for Money {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (coins, rest) = (self.0.to_sat() / COIN, self.0.to_sat() % COIN);
        let decimals = format!("{rest:08}");
        let (shown, hidden) = decimals.split_at(2);
        write!(f, "{coins}.{shown}{}", hidden.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use bitcoin::absolute::LockTime;
    use bitcoin::transaction::Version;
    use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, TxIn, TxOut};

    use super::*;

    fn transaction(sequences: &[u32]) -> Transaction {
        let input = |(index, sequence): (u32, &u32)| TxIn {
            previous_output: OutPoint { txid: bitcoin::hashes::Hash::all_zeros(), vout: index },
            sequence: Sequence(*sequence),
            ..TxIn::default()
        };
        Transaction {
            version: Version::TWO,
            lock_time: LockTime::ZERO,
            input: (0..).zip(sequences).map(input).collect(),
            output: vec![TxOut { value: Amount::from_sat(1), script_pubkey: ScriptBuf::new() }],
        }
    }

    fn coin(value: u64, height: u32, coinbase: bool) -> Coin {
        Coin { output: TxOut { value: Amount::from_sat(value), script_pubkey: ScriptBuf::new() }, height, coinbase }
    }

    #[test]
    fn amounts_in_refusals_are_written_as_by_bitcoind() {
        for (amount, text) in [
            (0, "0.00"),
            (5_000_000_000, "50.00"),
            (5_000_000_001, "50.00000001"),
            (11, "0.00000011"),
            (12_300_000, "0.123"),
        ] {
            assert_eq!(Money(Amount::from_sat(amount)).to_string(), text);
        }
    }

    #[test]
    fn relative_locks_count_from_their_coins() {
        let median = |height: u32| Ok::<_, ()>(1_000 + height);
        let lock = |tx: &Transaction, heights: [u32; 1]| sequence_lock(tx, heights, median).unwrap();
        let blocks = lock(&transaction(&[5]), [10]);
        assert_eq!(blocks, LockPoint { height: 14, time: -1 });
        assert!(!blocks.allows(14, 0) && blocks.allows(15, 0));
        let time = lock(&transaction(&[(1 << 22) | 2]), [10]);
        assert_eq!(time, LockPoint { height: -1, time: 1_009 + 1_024 - 1 });
        assert_eq!(lock(&transaction(&[(1 << 31) | 5]), [10]), LockPoint { height: -1, time: -1 });
        let mut old = transaction(&[5]);
        old.version = Version::ONE;
        assert_eq!(lock(&old, [10]), LockPoint { height: -1, time: -1 });
    }

    #[test]
    fn coinbases_mature_and_amounts_are_kept_in_range() {
        let tx = transaction(&[0]);
        let refused = |coins: &[Coin], height| check_inputs(&tx, coins, height).unwrap_err();
        assert_eq!(refused(&[coin(3, 1, true)], 100).detail, "tried to spend coinbase at depth 99");
        assert_eq!(check_inputs(&tx, &[coin(3, 1, true)], 101), Ok(Amount::from_sat(2)));
        assert_eq!(refused(&[coin(0, 1, false)], 2).detail, "value in (0.00) < value out (0.00000001)");
        let most = Amount::MAX_MONEY.to_sat();
        for coins in [&[coin(most, 1, false), coin(1, 1, false)][..], &[coin(u64::MAX, 1, false)]] {
            assert_eq!(refused(coins, 2).reason, "bad-txns-inputvalues-outofrange");
        }
    }
}
