//! Sums of a wallet's coins, so that a balance costs the same however many coins there are.
//!
//! Each write collects how it changes the sums, and they change with its commit. They belong to a snapshot by its number. A call
//! whose snapshot has another number, because a write came between, reads the coins.

use std::collections::BTreeMap;
use std::sync::Arc;

use bitcoin::{Amount, Txid};
use heed::RoTxn;
use outrigger_service::wallet::{Balances, BalancesQuery, CoinTotals, Ownership, TxState};
use outrigger_service::wire::from_bytes;
use parking_lot::Mutex;

use super::error::{Result, WalletError};
use super::store::Tables;
use super::store::rows::CoinRow;
use super::store::tables::outpoint_from;

/// The confirmations with which a coinbase may be spent: COINBASE_MATURITY, and the next block.
const MATURE_DEPTH: i64 = 101;

/// Coins: how many, and their values in satoshi. A change that takes coins away has negative ones.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Sum {
    coins: i64,
    spendable: Values,
    watched: Values,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Values {
    all: i128,
    /// Of coins whose scripts the wallet has spent from.
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

    /// Adds `times` another one.
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

/// Confirmed coins: all together, and by height.
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

    /// The coins up to a height. Those above it are few in most questions.
    fn up_to(&self, height: i64) -> Sum {
        let first = u32::try_from(height.saturating_add(1).max(0)).unwrap_or(u32::MAX);
        let mut sum = self.total;
        self.by_height.range(first..).for_each(|(_, above)| sum.add(above, -1));
        sum
    }
}

/// The sums of a wallet's coins, or a change of them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Sums {
    ordinary: Confirmed,
    coinbase: Confirmed,
    /// Coins of the mempool, by their transaction and whether that spends anything of the wallet.
    in_mempool: BTreeMap<(Txid, bool), Sum>,
    /// How many coins the wallet only watches, wherever they stand.
    watched: i64,
}

impl Sums {
    /// Reads all coins.
    ///
    /// # Errors
    /// When the storage fails, or holds what was never written.
    pub fn read(t: &Tables, txn: &RoTxn<'_>) -> Result<Self> {
        let mut sums = Self::default();
        for entry in t.coins.iter(txn)? {
            let (key, row) = entry?;
            let coin: CoinRow = from_bytes(row).map_err(WalletError::Damaged)?;
            sums.note(&outpoint_from(key)?.txid, &coin, 1);
        }
        Ok(sums)
    }

    /// Adds a coin of a transaction, or takes it away where `times` is -1.
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

    fn change(&mut self, change: &Self) {
        for (confirmed, change) in [(&mut self.ordinary, &change.ordinary), (&mut self.coinbase, &change.coinbase)] {
            change.by_height.iter().for_each(|(height, sum)| confirmed.add(*height, sum, 1));
        }
        change.in_mempool.iter().for_each(|(key, sum)| add_at(&mut self.in_mempool, *key, sum, 1));
        self.watched += change.watched;
    }

    /// The balances of a wallet that stands at a height. `is_trusted` judges transactions of the mempool that spend something of
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
        // Whatever its depth.
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

/// No sum of coins is negative, and none of coins that exist is beyond what an amount can hold.
fn amount(sum: i128) -> Amount {
    Amount::from_sat(u64::try_from(sum.max(0)).unwrap_or(u64::MAX))
}

/// The sums of a wallet as its last writes left them.
#[derive(Default)]
pub struct KeptSums(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// The sums, and the number of the snapshot that they are of.
    sums: Option<(usize, Arc<Sums>)>,
    /// How a write that is being committed changes them, and the number of the snapshot that shows it.
    coming: Option<(usize, Sums)>,
}

impl Kept {
    /// Takes over the change of a write that is on disk.
    fn settle(&mut self) {
        let Some((number, change)) = self.coming.take() else { return };
        self.sums = self.sums.take().filter(|(of, _)| of + 1 == number).map(|(_, mut sums)| {
            Arc::make_mut(&mut sums).change(&change);
            (number, sums)
        });
    }
}

impl KeptSums {
    /// The sums of the snapshot of a number. None where they have to be read.
    pub fn of(&self, number: usize) -> Option<Arc<Sums>> {
        let mut kept = self.0.lock();
        // Who sees the write's snapshot may be ahead of the thread that made it.
        if kept.coming.as_ref().is_some_and(|(coming, _)| *coming == number) {
            kept.settle();
        }
        kept.sums.as_ref().filter(|(of, _)| *of == number).map(|(_, sums)| sums.clone())
    }

    /// Keeps sums that were read from the snapshot of a number.
    pub fn keep(&self, number: usize, sums: &Arc<Sums>) {
        let mut kept = self.0.lock();
        if kept.sums.as_ref().is_none_or(|(of, _)| *of < number) {
            kept.sums = Some((number, sums.clone()));
        }
    }

    /// A write is about to be committed. Its snapshot has this number if it writes anything.
    pub fn announce(&self, number: usize, change: Sums) {
        self.0.lock().coming = Some((number, change));
    }

    /// The write that was announced has ended. The last snapshot has this number now.
    pub fn end(&self, last: usize) {
        let mut kept = self.0.lock();
        match &kept.coming {
            Some((number, _)) if *number == last => kept.settle(),
            _ => kept.coming = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use bitcoin::ScriptBuf;
    use bitcoin::hashes::Hash;

    use super::*;

    fn coin(value: u64, state: TxState) -> CoinRow {
        CoinRow {
            value: Amount::from_sat(value),
            script: ScriptBuf::new(),
            state,
            coinbase: false,
            ownership: Ownership::Spendable,
            change: false,
            label: None,
            from_us: false,
            reused: false,
        }
    }

    fn sums(coin: &CoinRow) -> Sums {
        let mut sums = Sums::default();
        sums.note(&Txid::from_byte_array([1; 32]), coin, 1);
        sums
    }

    #[test]
    fn sums_are_told_of_their_snapshot_alone() {
        let (kept, one) = (KeptSums::default(), sums(&coin(1, TxState::InMempool)));
        assert!(kept.of(4).is_none());
        kept.keep(4, &Arc::new(one.clone()));
        kept.keep(3, &Arc::default());
        assert_eq!(*kept.of(4).unwrap(), one, "an older snapshot does not take its place");
        kept.announce(5, sums(&coin(2, TxState::InMempool)));
        assert!(kept.of(4).is_some(), "until the write is seen");
        let both = kept.of(5).unwrap();
        assert!(kept.of(4).is_none());
        kept.end(5);
        assert_eq!(kept.of(5).unwrap(), both, "changed once");
        // A write that wrote nothing gives no snapshot, and one that failed none either.
        kept.announce(6, Sums::default());
        kept.end(5);
        assert_eq!(kept.of(5).unwrap(), both);
        // After a write that was not announced, nothing is known.
        kept.announce(7, Sums::default());
        kept.end(7);
        assert!(kept.of(7).is_none() && kept.of(5).is_none());
    }

    #[test]
    fn what_is_taken_away_leaves_nothing() {
        let txid = Txid::from_byte_array([1; 32]);
        let confirmed = TxState::Confirmed { block: bitcoin::BlockHash::all_zeros(), height: 7, index: 0, time: 0 };
        for state in [confirmed, TxState::InMempool, TxState::Inactive] {
            for coinbase in [false, true] {
                let coin = CoinRow { ownership: Ownership::WatchOnly, coinbase, ..coin(5, state) };
                let mut sums = sums(&coin);
                assert_ne!(sums, Sums::default());
                sums.note(&txid, &coin, -1);
                assert_eq!(sums, Sums::default());
            }
        }
    }
}
