//! Parameters of the development chain (regtest), and the operator's settings.
//!
//! Every deployment but testdummy is active from block 1, and the difficulty never changes.

use bitcoin::constants::genesis_block;
use bitcoin::{Amount, Block, Network, Weight};

use outrigger_service::chain::Tip;
use outrigger_standard::policy::{BLOCK_FEERATE, MAX_DATA_CARRIER};
use outrigger_standard::release::{self, Rules};
use outrigger_values::FeeRate;

/// The greatest signature operation cost of a block (BIP 141).
pub const MAX_BLOCK_SIGOPS_COST: u64 = 80_000;
/// How far a block's time may be ahead of the node's, in seconds.
pub const MAX_FUTURE_BLOCK_TIME: u64 = 7_200;
/// How much earlier than its parent a template's time may be at the start of a difficulty period, in seconds (BIP 94).
pub const MAX_TIMEWARP: u32 = 600;
/// The number of blocks in a median time (BIP 113).
pub const MEDIAN_TIME_SPAN: usize = 11;
/// The version of templates, without the bits of deployments in progress (BIP 9).
pub const BLOCK_VERSION: i32 = 0x2000_0000;

/// The compact target of every block.
pub const BITS: u32 = 0x207f_ffff;
/// The subsidy of the first blocks, in satoshi.
const INITIAL_SUBSIDY: u64 = 5_000_000_000;
/// In blocks.
const HALVING_INTERVAL: u32 = 150;
/// In blocks. The difficulty never changes, but templates apply BIP 94 at the start of each interval.
const DIFFICULTY_INTERVAL: u32 = 144;

pub fn genesis() -> Block {
    genesis_block(Network::Regtest)
}

/// The least time of a template on this tip, in Unix seconds. Bitcoin Core 29 applies BIP 94 to templates of all chains,
/// but not to all blocks.
pub fn min_time(tip: &Tip) -> u32 {
    let after_median = tip.median_time.saturating_add(1);
    match tip.height.saturating_add(1).is_multiple_of(DIFFICULTY_INTERVAL) {
        true => after_median.max(tip.time.saturating_sub(MAX_TIMEWARP)),
        false => after_median,
    }
}

/// The most that the coinbase at this height may create, without the fees.
pub fn subsidy(height: u32) -> Amount {
    Amount::from_sat(INITIAL_SUBSIDY.checked_shr(height / HALVING_INTERVAL).unwrap_or(0))
}

#[derive(Clone, Debug)]
pub struct MempoolLimits {
    /// The most memory of the transactions, in bytes.
    pub max_usage: u64,
    /// The least feerate of a transaction.
    pub relay_feerate: FeeRate,
    /// The feerate that a replacement pays beyond the replaced fees.
    pub incremental_feerate: FeeRate,
    /// The least feerate of a package in a template.
    pub block_feerate: FeeRate,
    /// The most unconfirmed ancestors of a transaction, itself included.
    pub max_ancestors: u64,
    /// The greatest size of these ancestors, in virtual bytes.
    pub max_ancestor_size: u64,
    /// The most unconfirmed descendants of a transaction, itself included.
    pub max_descendants: u64,
    /// The greatest size of these descendants, in virtual bytes.
    pub max_descendant_size: u64,
    /// The maximum total size of OP_RETURN scripts, in bytes, opcodes included.
    pub max_data_carrier: usize,
    /// Whether a transaction may have several OP_RETURN outputs.
    pub several_data_carriers: bool,
    /// The most signature operations outside of witnesses, counted as BIP 54 does.
    pub max_legacy_sigops: Option<u64>,
    /// Whether the refusal of non-standard inputs has details.
    pub names_nonstandard_input: bool,
}

impl MempoolLimits {
    /// The limits of a release.
    pub fn of(rules: &Rules) -> Self {
        if !rules.relaxed_policy {
            return Self::default();
        }
        let low = FeeRate::from_sat_per_kvb(100);
        Self {
            relay_feerate: low,
            incremental_feerate: low,
            max_data_carrier: MAX_DATA_CARRIER,
            several_data_carriers: true,
            max_legacy_sigops: Some(2_500),
            names_nonstandard_input: rules.names_nonstandard_input,
            ..Self::default()
        }
    }
}

impl Default for MempoolLimits {
    fn default() -> Self {
        Self {
            max_usage: 300_000_000,
            relay_feerate: FeeRate::from_sat_per_kvb(1_000),
            incremental_feerate: FeeRate::from_sat_per_kvb(1_000),
            block_feerate: BLOCK_FEERATE,
            max_ancestors: 25,
            max_ancestor_size: 101_000,
            max_descendants: 25,
            max_descendant_size: 101_000,
            max_data_carrier: 83,
            several_data_carriers: false,
            max_legacy_sigops: None,
            names_nonstandard_input: false,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub network: Network,
    /// The major release of Bitcoin Core whose answers clients get; `None`: 29.
    pub release: Option<u32>,
    /// The address space reserved for the database, in bytes. It limits the file's size; no memory is allocated for it.
    pub map_size: usize,
    pub max_readers: u32,
    pub mempool: MempoolLimits,
    /// The weight reserved in a template for header and coinbase.
    pub reserved_weight: Weight,
    /// The number of threads that verify the scripts of a large block.
    pub script_threads: usize,
}

impl Settings {
    /// The rules of the release whose answers clients get.
    pub fn rules(&self) -> Rules {
        release::rules(self.release)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            network: Network::Regtest,
            release: None,
            map_size: 1 << 40,
            max_readers: 1_024,
            mempool: MempoolLimits::default(),
            reserved_weight: Weight::from_wu(8_000),
            script_threads: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subsidy_halves_until_nothing_is_left() {
        assert_eq!(subsidy(1), Amount::from_sat(5_000_000_000));
        assert_eq!(subsidy(149), Amount::from_sat(5_000_000_000));
        assert_eq!(subsidy(150), Amount::from_sat(2_500_000_000));
        assert_eq!(subsidy(301), Amount::from_sat(1_250_000_000));
        assert_eq!(subsidy(150 * 33), Amount::from_sat(0));
        assert_eq!(subsidy(u32::MAX), Amount::from_sat(0));
    }
}
