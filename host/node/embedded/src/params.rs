//! The rules' figures: what the development chain (regtest) fixes, and what its operator may set.
//!
//! Every deployment but testdummy is active from block 1, and the difficulty never changes. Weights are in weight units, times in
//! seconds, amounts in satoshi.

use bitcoin::Network;
use bitcoin::constants::genesis_block;
use bitcoin::{Amount, Block, BlockHash, Weight, params};

use outrigger_service::chain::Tip;
use outrigger_standard::policy::DUST_FEERATE;
use outrigger_values::FeeRate;

use super::EmbeddedError;

/// The cost of signature operations a block may have (BIP 141).
pub const MAX_BLOCK_SIGOPS_COST: u64 = 80_000;
/// What a byte outside of the witness weighs.
pub const WITNESS_SCALE_FACTOR: u64 = 4;
/// How many blocks a coinbase must have on it, itself included, before its outputs can be spent in the next.
pub const COINBASE_MATURITY: u32 = 100;
/// How far a block's time may be ahead of ours, in seconds.
pub const MAX_FUTURE_BLOCK_TIME: u64 = 7_200;
/// How much earlier than its predecessor the first block of a period may be in a template, in seconds (BIP 94).
pub const MAX_TIMEWARP: u32 = 600;
/// How many block times the median time is taken of (BIP 113).
pub const MEDIAN_TIME_SPAN: usize = 11;
/// Lock times below this are heights, the others times.
pub const LOCKTIME_THRESHOLD: u32 = 500_000_000;
/// The version of the blocks that are built here, without the bits of deployments in progress (BIP 9).
pub const BLOCK_VERSION: i32 = 0x2000_0000;

/// What the chain fixes.
#[derive(Clone, Debug)]
pub struct ChainParams {
    /// The first block.
    pub genesis: Block,
    /// Its hash.
    pub genesis_hash: BlockHash,
    /// The target of every block, in compact form.
    pub bits: u32,
    /// The subsidy of the first blocks.
    pub initial_subsidy: Amount,
    /// How many blocks the subsidy stays the same.
    pub halving_interval: u32,
    /// How many blocks a period has, at whose first block the difficulty would be set anew.
    pub difficulty_interval: u32,
}

impl ChainParams {
    /// The parameters of `network`.
    ///
    /// # Errors
    /// [`EmbeddedError::Network`] for anything but regtest: this node has no peers and its own word counts for nothing
    /// on a chain of others.
    pub fn of(network: Network) -> Result<Self, EmbeddedError> {
        if network != Network::Regtest {
            return Err(EmbeddedError::Network(network));
        }
        let genesis = genesis_block(&params::Params::REGTEST);
        let genesis_hash = genesis.block_hash();
        let initial_subsidy = Amount::from_int_btc(50);
        let bits = 0x207f_ffff;
        Ok(Self { genesis, genesis_hash, bits, initial_subsidy, halving_interval: 150, difficulty_interval: 144 })
    }

    /// The least time of a block on this tip in templates: release 29 keeps BIP 94 there on all chains, though blocks need not.
    pub fn min_time(&self, tip: &Tip) -> u32 {
        let after_median = tip.median_time.saturating_add(1);
        match tip.height.saturating_add(1).is_multiple_of(self.difficulty_interval) {
            true => after_median.max(tip.time.saturating_sub(MAX_TIMEWARP)),
            false => after_median,
        }
    }

    /// What the coinbase of a block may create beside the fees.
    pub fn subsidy(&self, height: u32) -> Amount {
        let halvings = height / self.halving_interval;
        Amount::from_sat(self.initial_subsidy.to_sat().checked_shr(halvings).unwrap_or(0))
    }
}

/// What the mempool takes and keeps.
#[derive(Clone, Debug)]
pub struct MempoolLimits {
    /// The memory the transactions may take, in bytes.
    pub max_usage: u64,
    /// The least feerate that is accepted.
    pub relay_feerate: FeeRate,
    /// The feerate by which a replacement must pay more.
    pub incremental_feerate: FeeRate,
    /// The feerate at which an output must be worth spending.
    pub dust_feerate: FeeRate,
    /// The least feerate that is put into blocks.
    pub block_feerate: FeeRate,
    /// Unconfirmed transactions one may build on, itself included.
    pub max_ancestors: u64,
    /// Their virtual size together, in virtual bytes.
    pub max_ancestor_size: u64,
    /// Unconfirmed transactions that may build on one, itself included.
    pub max_descendants: u64,
    /// Their virtual size together, in virtual bytes.
    pub max_descendant_size: u64,
    /// The bytes all OP_RETURN scripts of a transaction may take, opcodes included.
    pub max_data_carrier: usize,
    /// Whether only standard transactions are taken.
    pub require_standard: bool,
    /// After how many seconds a transaction is dropped.
    pub expiry: u64,
}

impl Default for MempoolLimits {
    fn default() -> Self {
        Self {
            max_usage: 300_000_000,
            relay_feerate: FeeRate::from_sat_per_kvb(1_000),
            incremental_feerate: FeeRate::from_sat_per_kvb(1_000),
            dust_feerate: DUST_FEERATE,
            block_feerate: FeeRate::from_sat_per_kvb(1),
            max_ancestors: 25,
            max_ancestor_size: 101_000,
            max_descendants: 25,
            max_descendant_size: 101_000,
            max_data_carrier: 83,
            require_standard: true,
            expiry: 336 * 3_600,
        }
    }
}

/// What the operator may set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The chain; anything but regtest is refused.
    pub network: Network,
    /// The address space reserved for the database, in bytes; it can never grow larger. Nothing is allocated by it.
    pub map_size: usize,
    /// The number of snapshots that can be open at once.
    pub max_readers: u32,
    /// Whether all of the database is checked before it is opened, also after a stop in order.
    pub verify: bool,
    /// Up to this size, in bytes, all of the database is checked at every start: 256 MiB take less than a second. A larger one is
    /// when the host did not stop in order, or when it is asked to.
    pub always_checked: u64,
    /// The mempool's limits.
    pub mempool: MempoolLimits,
    /// The weight left free for the header and the coinbase when transactions are selected for a block.
    pub reserved_weight: Weight,
    /// The signature operations left free for the coinbase.
    pub reserved_sigops: u64,
    /// The number of threads that verify the scripts of a large block.
    pub script_threads: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            network: Network::Regtest,
            map_size: 1 << 40,
            max_readers: 1_024,
            verify: false,
            always_checked: 256 << 20,
            mempool: MempoolLimits::default(),
            reserved_weight: Weight::from_wu(8_000),
            reserved_sigops: 400,
            script_threads: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subsidy_halves_until_nothing_is_left() {
        let params = ChainParams::of(Network::Regtest).unwrap();
        assert_eq!(params.subsidy(1), Amount::from_sat(5_000_000_000));
        assert_eq!(params.subsidy(149), Amount::from_sat(5_000_000_000));
        assert_eq!(params.subsidy(150), Amount::from_sat(2_500_000_000));
        assert_eq!(params.subsidy(301), Amount::from_sat(1_250_000_000));
        assert_eq!(params.subsidy(150 * 33), Amount::from_sat(0));
        assert_eq!(params.subsidy(u32::MAX), Amount::from_sat(0));
    }

    #[test]
    fn params_of_networks_other_than_regtest_are_refused() {
        for network in [Network::Bitcoin, Network::Testnet, Network::Signet] {
            let error = ChainParams::of(network).unwrap_err();
            assert!(matches!(error, EmbeddedError::Network(found) if found == network), "{error}");
        }
    }
}
