//! Standardness limits of mempool and wallet (bitcoind's `policy.h`).

use bitcoin::{Amount, Script, VarInt, Weight, policy};

use outrigger_script::parse::is_unspendable;
use outrigger_values::FeeRate;

/// The greatest weight of a transaction, `MAX_STANDARD_TX_WEIGHT`.
pub const MAX_STANDARD_WEIGHT: Weight = Weight::from_wu(policy::MAX_STANDARD_TX_WEIGHT as u64);

/// The feerate that defines dust: bitcoind's default `-dustrelayfee`.
pub const DUST_FEERATE: FeeRate = FeeRate::from_sat_per_kvb(policy::DUST_RELAY_TX_FEE as u64);

/// The least feerate of a package in a template: the default of `-blockmintxfee` since Bitcoin Core 30.
pub const BLOCK_FEERATE: FeeRate = FeeRate::from_sat_per_kvb(1);

/// The most bytes of a transaction's OP_RETURN scripts together: the default of `-datacarriersize` since Bitcoin Core 30.
pub const MAX_DATA_CARRIER: usize = 100_000;

/// The assumed size of an input that spends a witness program, in virtual bytes.
const WITNESS_INPUT: u64 = 67;
/// The assumed size of an input that spends any other script, in virtual bytes.
const OTHER_INPUT: u64 = 148;

/// The value below which an output with this script is dust at a feerate (`GetDustThreshold`).
///
/// rust-bitcoin 0.32's `Script::minimal_non_dust` agrees at [`DUST_FEERATE`]. Its variant for other feerates rounds
/// down where bitcoind rounds up, supports only multiples of 4 sat/kvB, and panics on overflow. It also has a threshold
/// for scripts that are too long to be spent.
pub fn dust_threshold(script: &Script, feerate: FeeRate) -> Amount {
    const VALUE_LEN: usize = 8;
    if is_unspendable(script.as_bytes()) {
        return Amount::ZERO;
    }
    let output = VALUE_LEN + VarInt::from(script.len()).size() + script.len();
    let input = if script.is_witness_program() { WITNESS_INPUT } else { OTHER_INPUT };
    feerate.fee(output as u64 + input)
}

#[cfg(test)]
mod tests {
    use bitcoin::ScriptBuf;

    use super::*;

    fn script(parts: &[&[u8]]) -> ScriptBuf {
        ScriptBuf::from_bytes(parts.concat())
    }

    /// A script of each standard form, with its dust threshold in bitcoind.
    fn forms() -> [(ScriptBuf, u64); 11] {
        let key = [&[33, 2][..], &[9; 32]].concat();
        [
            (script(&[&[0x76, 0xa9, 20], &[1; 20], &[0x88, 0xac]]), 546),
            (script(&[&[0xa9, 20], &[1; 20], &[0x87]]), 540),
            (script(&[&[0, 20], &[1; 20]]), 294),
            (script(&[&[0, 32], &[1; 32]]), 330),
            (script(&[&[0x51, 32], &[1; 32]]), 330),
            (script(&[&[0x52, 40], &[1; 40]]), 354),
            (script(&[&[0x51, 2, 0x4e, 0x73]]), 240),
            (script(&[&key, &[0xac]]), 576),
            (script(&[&[65, 4], &[9; 64], &[0xac]]), 672),
            (script(&[&[0x51], &key, &key, &key, &[0x53, 0xae]]), 786),
            (script(&[&[0x6a, 3], b"abc"]), 0),
        ]
    }

    #[test]
    fn dust_thresholds_are_bitcoinds_and_rust_bitcoins() {
        for (script, satoshi) in forms() {
            let threshold = dust_threshold(&script, DUST_FEERATE);
            assert_eq!(threshold, Amount::from_sat(satoshi), "{script}");
            assert_eq!(threshold, script.minimal_non_dust(), "{script}");
        }
    }

    #[test]
    fn dust_thresholds_round_up_where_rust_bitcoins_round_down() {
        let (script, _) = &forms()[0];
        let coarse = bitcoin::FeeRate::from_sat_per_kwu(251);
        let feerate = FeeRate::from_sat_per_kvb(4 * 251);
        assert_eq!(script.minimal_non_dust_custom(coarse), Amount::from_sat(182));
        assert_eq!(dust_threshold(script, feerate), Amount::from_sat(183));
    }

    #[test]
    fn scripts_that_are_too_long_to_be_spent_are_no_dust() {
        let long = ScriptBuf::from_bytes(vec![0x51; 10_001]);
        assert_eq!(dust_threshold(&long, DUST_FEERATE), Amount::ZERO);
        assert!(long.minimal_non_dust() > Amount::ZERO);
    }
}
