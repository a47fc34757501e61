//! `getblockstats`: what is counted over the transactions of one block.

use std::collections::BTreeSet;

use bitcoin::hashes::Hash;
use bitcoin::{Block, BlockHash, Network, Transaction, TxOut};
use outrigger_sdk::params;
use outrigger_sdk::script::parse::is_unspendable;
use outrigger_sdk::service::chain::{BlockInfo, BlockRef, Coin, SpentOutputs};
use outrigger_sdk::standard::block_from_bytes;
use serde_json::{Map, Value, json};

use crate::error::ChainError;
use crate::header::decode;
use crate::{Context, Outcome, args};

/// What bitcoind counts for an entry of its table of coins beside the output: outpoint, height and mark of a coinbase, in bytes.
const COIN_OVERHEAD: i64 = 36 + 4 + 1;
/// Weight units per virtual byte (BIP 141).
const WITNESS_SCALE: u64 = 4;
/// The subsidy of the first blocks, in satoshi.
const FIRST_SUBSIDY: u64 = 50 * 100_000_000;
/// The shares of a block's weight at which `feerate_percentiles` looks, in hundredths.
const PERCENTILES: [u64; 5] = [10, 25, 50, 75, 90];

pub fn get_block_stats(context: &Context<'_>) -> Outcome {
    let info = hash_or_height(context, context.params.get(0))?;
    let wanted = wanted(context.params.given(1))?;
    let raw = context.host.chain.block(context.scope, info.hash)?.ok_or(ChainError::BlockNotAvailable)?;
    let spent = match info.height {
        0 => Vec::new(),
        _ => context.host.chain.spent_outputs(context.scope, info.hash)?.ok_or(ChainError::UndoNotAvailable)?,
    };
    let block = block_from_bytes(&raw).ok_or_else(|| ChainError::Damaged(format!("block {}", info.hash)))?;
    let counted = Counted::of(&block, &spent, info.height == 0);
    let mut all = counted.to_json(&block, &info, subsidy(context.network()?, info.height))?;
    if wanted.is_empty() {
        return Ok(Value::Object(all));
    }
    let mut object = Map::new();
    for name in wanted {
        let value = all.remove(name).ok_or_else(|| ChainError::Statistic(name.to_owned()))?;
        object.insert(name.to_owned(), value);
    }
    Ok(Value::Object(object))
}

/// The block that a height of the best chain, or a hash, names.
pub fn hash_or_height(context: &Context<'_>, value: &Value) -> Result<BlockInfo, ChainError> {
    let chain = &context.host.chain;
    if !value.is_number() {
        let hash = BlockHash::from_byte_array(params::hash_text(args::text(value)?, "hash_or_height")?);
        return chain.block_info(context.scope, BlockRef::Hash { hash })?.ok_or(ChainError::BlockNotFound);
    }
    let number: i32 = args::integer(value)?;
    let height = u32::try_from(number).map_err(|_| ChainError::NegativeHeight(number))?;
    let tip = chain.tip(context.scope)?.height;
    let info = chain.block_info(context.scope, BlockRef::Height { height })?;
    info.ok_or(ChainError::HeightAfterTip { height, tip })
}

/// The names of the statistics to give, each once and in order; none for all.
fn wanted(value: Option<&Value>) -> Result<BTreeSet<&str>, ChainError> {
    value.map_or(Ok(BTreeSet::new()), |value| {
        Ok(args::array(value)?.iter().map(args::text).collect::<Result<_, _>>()?)
    })
}

/// The subsidy of a height, in satoshi.
fn subsidy(network: Network, height: u32) -> u64 {
    let interval = if network == Network::Regtest { 150 } else { 210_000 };
    FIRST_SUBSIDY.checked_shr(height / interval).unwrap_or(0)
}

/// Sums over a block. Amounts are in satoshi, sizes in bytes, feerates in satoshi per virtual byte.
#[derive(Default)]
struct Counted {
    inputs: u64,
    outputs: u64,
    /// Outputs that can be spent.
    coins: u64,
    /// By how much the table of coins grew, with and without outputs that nobody can spend.
    growth: i64,
    growth_of_coins: i64,
    /// Of what is below, the coinbase is no part.
    total_out: u64,
    sizes: Vec<u64>,
    weight: u64,
    fees: Vec<u64>,
    /// The feerate of each transaction, and its weight.
    feerates: Vec<(u64, u64)>,
    witness_count: u64,
    witness_size: u64,
    witness_weight: u64,
}

impl Counted {
    /// The outputs of the first block of a chain are no coins.
    fn of(block: &Block, spent: &[SpentOutputs], is_first: bool) -> Self {
        let mut counted = Self::default();
        for (index, transaction) in block.txdata.iter().enumerate() {
            counted.count_outputs(transaction, is_first);
            if !transaction.is_coinbase() {
                let coins = spent.get(index).map_or(&[][..], |spent| &spent.coins);
                counted.count(transaction, coins);
            }
        }
        counted
    }

    fn count_outputs(&mut self, transaction: &Transaction, is_first: bool) {
        for output in &transaction.output {
            self.outputs += 1;
            self.growth += coin_size(output);
            if !is_first && !is_unspendable(output.script_pubkey.as_bytes()) {
                self.coins += 1;
                self.growth_of_coins += coin_size(output);
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
        self.growth_of_coins -= freed;
        self.total_out += paid;
        self.sizes.push(size);
        self.weight += weight;
        self.fees.push(fee);
        self.feerates.push(((fee * WITNESS_SCALE).checked_div(weight).unwrap_or(0), weight));
        if transaction.input.iter().any(|input| !input.witness.is_empty()) {
            self.witness_count += 1;
            self.witness_size += size;
            self.witness_weight += weight;
        }
    }

    fn to_json(&self, block: &Block, info: &BlockInfo, subsidy: u64) -> Result<Map<String, Value>, ChainError> {
        let count = self.sizes.len() as u64;
        let (total_size, total_fee): (u64, u64) = (self.sizes.iter().sum(), self.fees.iter().sum());
        let feerates: Vec<u64> = self.feerates.iter().map(|(feerate, _)| *feerate).collect();
        let least = |values: &[u64]| values.iter().copied().min().unwrap_or(0);
        let greatest = |values: &[u64]| values.iter().copied().max().unwrap_or(0);
        let difference = |a: u64, b: u64| a.cast_signed() - b.cast_signed();
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put("avgfee", json!(total_fee.checked_div(count).unwrap_or(0)));
        put("avgfeerate", json!((total_fee * WITNESS_SCALE).checked_div(self.weight).unwrap_or(0)));
        put("avgtxsize", json!(total_size.checked_div(count).unwrap_or(0)));
        put("blockhash", json!(info.hash));
        put("feerate_percentiles", json!(percentiles(self.feerates.clone(), self.weight)));
        put("height", json!(info.height));
        put("ins", json!(self.inputs));
        put("maxfee", json!(greatest(&self.fees)));
        put("maxfeerate", json!(greatest(&feerates)));
        put("maxtxsize", json!(greatest(&self.sizes)));
        put("medianfee", json!(median(self.fees.clone())));
        put("mediantime", json!(info.median_time));
        put("mediantxsize", json!(median(self.sizes.clone())));
        put("minfee", json!(least(&self.fees)));
        put("minfeerate", json!(least(&feerates)));
        put("mintxsize", json!(least(&self.sizes)));
        put("outs", json!(self.outputs));
        put("subsidy", json!(subsidy));
        put("swtotal_size", json!(self.witness_size));
        put("swtotal_weight", json!(self.witness_weight));
        put("swtxs", json!(self.witness_count));
        put("time", json!(decode(info)?.time));
        put("total_out", json!(self.total_out));
        put("total_size", json!(total_size));
        put("total_weight", json!(self.weight));
        put("totalfee", json!(total_fee));
        put("txs", json!(block.txdata.len()));
        put("utxo_increase", json!(difference(self.outputs, self.inputs)));
        put("utxo_size_inc", json!(self.growth));
        put("utxo_increase_actual", json!(difference(self.coins, self.inputs)));
        put("utxo_size_inc_actual", json!(self.growth_of_coins));
        Ok(object)
    }
}

fn coin_size(output: &TxOut) -> i64 {
    output.size() as i64 + COIN_OVERHEAD
}

/// The middle of some values; of an even number of them, what two share, cut off to an integer.
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
        let found = feerates.iter().find(|(_, weight_of_one)| {
            sum += weight_of_one;
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
    fn getblockstats_medians_are_cut_off() {
        assert_eq!([vec![], vec![7], vec![9, 2], vec![5, 1, 3]].map(median), [0, 7, 5, 3]);
    }

    #[test]
    fn getblockstats_percentiles_are_by_weight() {
        assert_eq!(percentiles(Vec::new(), 0), [0; 5]);
        assert_eq!(percentiles(vec![(20, 1)], 1), [20; 5]);
        // A tenth of the weight, a quarter, a half and so on are reached exactly.
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
