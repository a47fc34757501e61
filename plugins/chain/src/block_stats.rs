//! `getblockstats`: sums over the transactions of one block.

use std::collections::BTreeSet;

use bitcoin::{Block, Network, Transaction, TxOut};
use outrigger_kit::blocks::{decode_header, find_block};
use outrigger_sdk::script::WITNESS_SCALE_FACTOR;
use outrigger_sdk::script::parse::is_unspendable;
use outrigger_sdk::service::chain::{BlockInfo, BlockRef, Coin, SpentOutputs};
use outrigger_sdk::{Call, RpcError, methods, params, typed};
use serde_json::{Value, json};

use crate::ChainPlugin;
use crate::blocks::{decode_block, raw_block};

/// The bytes that bitcoind counts for a coin without its output: the outpoint, and the height with the coinbase flag.
const COIN_OVERHEAD: i64 = 36 + 4;
/// The subsidy of the first blocks, in satoshi.
const FIRST_SUBSIDY: u64 = 50 * 100_000_000;
/// The percentiles of the block's weight for `feerate_percentiles`.
const PERCENTILES: [u64; 5] = [10, 25, 50, 75, 90];

#[methods(category = "Blockchain")]
impl ChainPlugin {
    /// Gives statistics of a block. Amounts are in satoshi, sizes in bytes, feerates in satoshi per virtual byte.
    ///
    /// * `hash_or_height` - The block's hash, or its height on the best chain.
    /// * `stats` (default: all) - The names of the wanted statistics.
    ///
    /// # Result
    /// {"avgfee": n, "avgfeerate": n, "avgtxsize": n, "blockhash": "hash", "feerate_percentiles": [n, n, n, n, n],
    /// "height": n, "ins": n, ..., "utxo_increase_actual": n, "utxo_size_inc_actual": n}    (json object)
    /// feerate_percentiles are the feerates at 10, 25, 50, 75 and 90 percent of the weight.
    ///
    /// # Example
    /// 1000 '["minfeerate", "avgfeerate"]'
    #[method]
    fn getblockstats(call: &Call<'_>, hash_or_height: &Value, stats: Option<&[Value]>) -> Result<Value, RpcError> {
        let info = block_at(call, hash_or_height)?;
        // Sorted as in bitcoind. An empty set means all.
        let wanted = stats.unwrap_or_default().iter().map(typed::text).collect::<Result<BTreeSet<_>, _>>()?;
        let raw = raw_block(call, info.hash)?;
        let spent = match info.height {
            0 => Vec::new(),
            _ => {
                let spent = call.host.chain.spent_outputs(call.scope, info.hash)?;
                spent.ok_or_else(|| RpcError::misc("Undo data not available"))?
            }
        };
        let block = decode_block(&raw, info.hash)?;
        let sums = Sums::of(&block, &spent, info.height == 0);
        let flag = i64::from(call.rules.coin_flag_byte);
        let mut all = sums.to_json(&block, &info, subsidy(call.network()?, info.height), flag)?;
        if wanted.is_empty() {
            return Ok(all);
        }
        let select = |name: &str| {
            let unknown = || RpcError::invalid_parameter(format!("Invalid selected statistic '{name}'"));
            Ok((name.to_owned(), all.get_mut(name).map(Value::take).ok_or_else(unknown)?))
        };
        wanted.into_iter().map(select).collect()
    }
}

/// The block with a hash, or at a height of the best chain.
fn block_at(call: &Call<'_>, value: &Value) -> Result<BlockInfo, RpcError> {
    let chain = &call.host.chain;
    if !value.is_number() {
        let hash = params::hash_text(typed::text(value)?, "hash_or_height")?;
        return find_block(call, BlockRef::Hash { hash });
    }
    let number: i32 = typed::integer(value)?;
    let negative = |_| RpcError::invalid_parameter(format!("Target block height {number} is negative"));
    let height = u32::try_from(number).map_err(negative)?;
    let tip = chain.tip(call.scope)?.height;
    let after_tip = || RpcError::invalid_parameter(format!("Target block height {height} after current tip {tip}"));
    chain.block_info(call.scope, BlockRef::Height { height })?.ok_or_else(after_tip)
}

/// The subsidy at a height, in satoshi.
fn subsidy(network: Network, height: u32) -> u64 {
    let interval = if network == Network::Regtest { 150 } else { 210_000 };
    FIRST_SUBSIDY.checked_shr(height / interval).unwrap_or(0)
}

/// Sums over a block. Amounts are in satoshi, sizes in bytes, feerates in satoshi per virtual byte.
#[derive(Default)]
struct Sums {
    inputs: u64,
    outputs: u64,
    spendable_outputs: u64,
    /// The growth of the UTXO set, with and without unspendable outputs.
    growth: i64,
    spendable_growth: i64,
    /// This sum and those below exclude the coinbase.
    total_out: u64,
    sizes: Vec<u64>,
    weight: u64,
    fees: Vec<u64>,
    /// The feerate and the weight of each transaction.
    feerates: Vec<(u64, u64)>,
    witness_count: u64,
    witness_size: u64,
    witness_weight: u64,
}

impl Sums {
    /// Sums up a block. The outputs of the genesis block are unspendable.
    fn of(block: &Block, spent: &[SpentOutputs], is_genesis: bool) -> Self {
        let mut sums = Self::default();
        for (index, transaction) in block.txdata.iter().enumerate() {
            sums.count_outputs(transaction, is_genesis);
            if !transaction.is_coinbase() {
                let coins = spent.get(index).map_or(&[][..], |spent| &spent.coins);
                sums.count(transaction, coins);
            }
        }
        sums
    }

    fn count_outputs(&mut self, transaction: &Transaction, is_genesis: bool) {
        for output in &transaction.output {
            self.outputs += 1;
            self.growth += coin_size(output);
            if !is_genesis && !is_unspendable(output.script_pubkey.as_bytes()) {
                self.spendable_outputs += 1;
                self.spendable_growth += coin_size(output);
            }
        }
    }

    fn count(&mut self, transaction: &Transaction, spent: &[Coin]) {
        let (size, weight) = (transaction.total_size() as u64, transaction.weight().to_wu());
        let paid: u64 = transaction.output.iter().map(|output| output.value.to_sat()).sum();
        let received: u64 = spent.iter().map(|coin| coin.output.value.to_sat()).sum();
        let freed: i64 = spent.iter().map(|coin| coin_size(&coin.output)).sum();
        let fee = received.saturating_sub(paid);
        self.inputs += transaction.input.len() as u64;
        self.growth -= freed;
        self.spendable_growth -= freed;
        self.total_out += paid;
        self.sizes.push(size);
        self.weight += weight;
        self.fees.push(fee);
        self.feerates.push(((fee * WITNESS_SCALE_FACTOR).checked_div(weight).unwrap_or(0), weight));
        if transaction.input.iter().any(|input| !input.witness.is_empty()) {
            self.witness_count += 1;
            self.witness_size += size;
            self.witness_weight += weight;
        }
    }

    /// `flag`: the bytes counted for a coin's coinbase flag, 0 or 1.
    fn to_json(&self, block: &Block, info: &BlockInfo, subsidy: u64, flag: i64) -> Result<Value, RpcError> {
        let count = self.sizes.len() as u64;
        let (total_size, total_fee): (u64, u64) = (self.sizes.iter().sum(), self.fees.iter().sum());
        let feerates: Vec<u64> = self.feerates.iter().map(|(feerate, _)| *feerate).collect();
        let least = |values: &[u64]| values.iter().copied().min().unwrap_or(0);
        let greatest = |values: &[u64]| values.iter().copied().max().unwrap_or(0);
        let difference = |a: u64, b: u64| a.cast_signed() - b.cast_signed();
        Ok(json!({
            "avgfee": total_fee.checked_div(count).unwrap_or(0),
            "avgfeerate": (total_fee * WITNESS_SCALE_FACTOR).checked_div(self.weight).unwrap_or(0),
            "avgtxsize": total_size.checked_div(count).unwrap_or(0),
            "blockhash": info.hash,
            "feerate_percentiles": percentiles(self.feerates.clone(), self.weight),
            "height": info.height,
            "ins": self.inputs,
            "maxfee": greatest(&self.fees),
            "maxfeerate": greatest(&feerates),
            "maxtxsize": greatest(&self.sizes),
            "medianfee": median(self.fees.clone()),
            "mediantime": info.median_time,
            "mediantxsize": median(self.sizes.clone()),
            "minfee": least(&self.fees),
            "minfeerate": least(&feerates),
            "mintxsize": least(&self.sizes),
            "outs": self.outputs,
            "subsidy": subsidy,
            "swtotal_size": self.witness_size,
            "swtotal_weight": self.witness_weight,
            "swtxs": self.witness_count,
            "time": decode_header(info)?.time,
            "total_out": self.total_out,
            "total_size": total_size,
            "total_weight": self.weight,
            "totalfee": total_fee,
            "txs": block.txdata.len(),
            "utxo_increase": difference(self.outputs, self.inputs),
            "utxo_size_inc": self.growth + flag * difference(self.outputs, self.inputs),
            "utxo_increase_actual": difference(self.spendable_outputs, self.inputs),
            "utxo_size_inc_actual": self.spendable_growth + flag * difference(self.spendable_outputs, self.inputs),
        }))
    }
}

fn coin_size(output: &TxOut) -> i64 {
    output.size() as i64 + COIN_OVERHEAD
}

/// The median. For an even number of values it is the mean of the middle two, rounded down.
fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    let half = values.len() / 2;
    let at = |index: usize| values.get(index).copied().unwrap_or(0);
    if values.len() % 2 == 1 { at(half) } else { half.checked_sub(1).map_or(0, |below| (at(below) + at(half)) / 2) }
}

/// The feerates at [`PERCENTILES`] of the weight, from the lowest feerate up.
fn percentiles(mut feerates: Vec<(u64, u64)>, weight: u64) -> [u64; 5] {
    feerates.sort_unstable();
    let at = |percentile: u64| {
        let mut sum = 0;
        let found = feerates.iter().find(|(_, transaction_weight)| {
            sum += transaction_weight;
            sum * 100 >= weight * percentile
        });
        found.or(feerates.last()).map_or(0, |(feerate, _)| *feerate)
    };
    PERCENTILES.map(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn getblockstats_medians_are_rounded_down() {
        assert_eq!([vec![], vec![7], vec![9, 2], vec![5, 1, 3]].map(median), [0, 7, 5, 3]);
    }

    #[test]
    fn getblockstats_percentiles_are_by_weight() {
        assert_eq!(percentiles(Vec::new(), 0), [0; 5]);
        assert_eq!(percentiles(vec![(20, 1)], 1), [20; 5]);
        // The sums reach each percentile exactly.
        assert_eq!(percentiles(vec![(5, 10), (3, 25), (2, 15), (1, 10), (4, 40)], 100), [1, 2, 3, 4, 4]);
        assert_eq!(percentiles(vec![(1, 9), (2, 1), (3, 90)], 100), [2, 3, 3, 3, 3]);
    }

    #[test]
    fn getblockstats_subsidy_halves() {
        let of = |height| subsidy(Network::Regtest, height);
        assert_eq!(
            [of(0), of(149), of(150), of(450), of(9600)],
            [5_000_000_000, 5_000_000_000, 2_500_000_000, 625_000_000, 0]
        );
        assert_eq!(subsidy(Network::Bitcoin, 209_999), FIRST_SUBSIDY);
    }
}
