//! Sums of a wallet's coins, so that the cost of a balance does not depend on the number of coins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bitcoin::{Amount, Txid};
use outrigger_service::wallet::{Balances, BalancesQuery, CoinTotals, Ownership, TxState};
use outrigger_service::wire::from_bytes;

use super::error::Result;
use super::latest::Derived;
use super::store::{CoinRow, Reading, Tables, outpoint_from};

/// The depth from which bitcoind's wallet spends a coinbase: COINBASE_MATURITY + 1.
const MATURE_DEPTH: i64 = 101;

/// The number of coins, and their values in satoshi. Negative in a change that removes coins.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Sum {
    coins: i64,
    spendable: Values,
    watched: Values,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Values {
    all: i128,
    /// The part in coins whose scripts the wallet has spent from.
    reused: i128,
}

impl Sum {
    fn of(coin: &CoinRow) -> Self {
        let all = i128::from(coin.value.to_sat());
        let values = Values { all, reused: if coin.reused { all } else { 0 } };
        match coin.ownership {
            Ownership::Spendable => Self { coins: 1, spendable: values, watched: Values::default() },
            Ownership::WatchOnly | Ownership::None => Self { coins: 1, spendable: Values::default(), watched: values },
        }
    }

    fn add(&mut self, other: &Self, times: i64) {
        self.coins += other.coins * times;
        for (sum, other) in [(&mut self.spendable, other.spendable), (&mut self.watched, other.watched)] {
            sum.all += other.all * i128::from(times);
            sum.reused += other.reused * i128::from(times);
        }
    }
}

fn add_at<K: Ord + Copy>(sums: &mut BTreeMap<K, Sum>, key: K, sum: &Sum, times: i64) {
    let entry = sums.entry(key).or_default();
    entry.add(sum, times);
    if *entry == Sum::default() {
        sums.remove(&key);
    }
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Confirmed {
    total: Sum,
    by_height: BTreeMap<u32, Sum>,
}

impl Confirmed {
    fn add(&mut self, height: u32, sum: &Sum, times: i64) {
        self.total.add(sum, times);
        add_at(&mut self.by_height, height, sum, times);
    }

    /// The coins up to a height. Usually few are above it.
    fn up_to(&self, height: i64) -> Sum {
        let first = u32::try_from(height.saturating_add(1).max(0)).unwrap_or(u32::MAX);
        let mut sum = self.total;
        self.by_height.range(first..).for_each(|(_, above)| sum.add(above, -1));
        sum
    }
}

/// The sums of a wallet's coins, or their change by a write.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Sums {
    ordinary: Confirmed,
    coinbase: Confirmed,
    /// Coins in the mempool, by transaction and by whether it spends from the wallet.
    in_mempool: BTreeMap<(Txid, bool), Sum>,
    /// How many coins are watch-only, in any state.
    watched: i64,
}

impl Sums {
    /// Adds a coin, or removes it if `times` is -1.
    pub fn note(&mut self, txid: &Txid, coin: &CoinRow, times: i64) {
        let sum = Sum::of(coin);
        match coin.state {
            TxState::Confirmed { height, .. } if coin.coinbase => self.coinbase.add(height, &sum, times),
            TxState::Confirmed { height, .. } => self.ordinary.add(height, &sum, times),
            TxState::InMempool => add_at(&mut self.in_mempool, (*txid, coin.from_us), &sum, times),
            TxState::Inactive | TxState::Abandoned | TxState::Conflicted { .. } => {}
        }
        if coin.ownership == Ownership::WatchOnly {
            self.watched += times;
        }
    }

    /// The transactions in the mempool that have coins, in the order of their coins.
    pub fn mempool_txids(&self) -> BTreeSet<&Txid> {
        self.in_mempool.keys().map(|(txid, _)| txid).collect()
    }

    /// The balances of a wallet at `height`. Calls `is_trusted` for mempool transactions that spend from
    /// the wallet.
    pub fn balances(
        &self,
        query: &BalancesQuery,
        height: u32,
        mut is_trusted: impl FnMut(&Txid) -> Result<bool>,
    ) -> Result<Balances> {
        let reached = |depth: i64| (i64::from(height) + 1).saturating_sub(depth);
        let mature = self.coinbase.up_to(reached(MATURE_DEPTH));
        let mut immature = self.coinbase.total;
        immature.add(&mature, -1);
        let mut trusted = self.ordinary.up_to(reached(query.min_depth.max(0)));
        trusted.add(&self.coinbase.up_to(reached(query.min_depth.max(MATURE_DEPTH))), 1);
        // Used coins count at any depth.
        let mut used = self.ordinary.total.spendable.reused + mature.spendable.reused;
        let mut pending = Sum::default();
        for ((txid, from_us), sum) in &self.in_mempool {
            used += sum.spendable.reused;
            if !from_us || !is_trusted(txid)? {
                pending.add(sum, 1);
            } else if query.min_depth <= 0 {
                trusted.add(sum, 1);
            }
        }
        let counted = |values: Values| amount(values.all - if query.avoid_reuse { values.reused } else { 0 });
        let totals = |of: fn(&Sum) -> Values| CoinTotals {
            trusted: counted(of(&trusted)),
            untrusted_pending: counted(of(&pending)),
            immature: amount(of(&immature).all),
        };
        Ok(Balances {
            mine: totals(|sum| sum.spendable),
            watch_only: (self.watched > 0).then(|| totals(|sum| sum.watched)),
            used: amount(if query.avoid_reuse { used } else { 0 }),
        })
    }
}

impl Derived for Sums {
    type Change = Self;

    fn read(t: &Tables, txn: &Reading<'_>) -> Result<Self> {
        let mut sums = Self::default();
        for entry in t.coins.iter(txn)? {
            let (key, row) = entry?;
            let coin: CoinRow = from_bytes(row)?;
            sums.note(&outpoint_from(key)?.txid, &coin, 1);
            #[cfg(test)]
            super::store::count_row();
        }
        Ok(sums)
    }

    fn change(kept: &mut Arc<Self>, change: Self) {
        if change == Self::default() {
            return;
        }
        let sums = Arc::make_mut(kept);
        for (confirmed, change) in [(&mut sums.ordinary, &change.ordinary), (&mut sums.coinbase, &change.coinbase)] {
            change.by_height.iter().for_each(|(height, sum)| confirmed.add(*height, sum, 1));
        }
        change.in_mempool.iter().for_each(|(key, sum)| add_at(&mut sums.in_mempool, *key, sum, 1));
        sums.watched += change.watched;
    }
}

/// Converts a sum of existing coins, which fits in an amount and is not negative.
fn amount(sum: i128) -> Amount {
    Amount::from_sat(u64::try_from(sum.max(0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use bitcoin::ScriptBuf;
    use bitcoin::hashes::Hash;

    use super::*;

    #[test]
    fn removing_a_coin_undoes_adding_it() {
        let txid = Txid::from_byte_array([1; 32]);
        let confirmed = TxState::Confirmed { block: bitcoin::BlockHash::all_zeros(), height: 7, index: 0, time: 0 };
        for state in [confirmed, TxState::InMempool, TxState::Inactive] {
            for coinbase in [false, true] {
                let coin = CoinRow {
                    value: Amount::from_sat(5),
                    script: ScriptBuf::new(),
                    state,
                    coinbase,
                    ownership: Ownership::WatchOnly,
                    from_us: false,
                    reused: false,
                };
                let mut sums = Sums::default();
                sums.note(&txid, &coin, 1);
                assert_ne!(sums, Sums::default());
                sums.note(&txid, &coin, -1);
                assert_eq!(sums, Sums::default());
            }
        }
    }
}
