//! Sums of a wallet's coins.

use bitcoin::Amount;

use crate::wire::wire_struct;

wire_struct! {
    /// Which coins `Wallet::balances` sums up, and how.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct BalancesQuery {
        /// How many confirmations a coin needs to count as trusted. Unconfirmed coins count where this is 0 or less.
        pub min_depth: i64,
        /// Whether coins of scripts that the wallet has spent from are summed separately.
        pub avoid_reuse: bool,
    }
}

wire_struct! {
    /// Sums of the coins of one ownership.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct CoinTotals {
        /// Mature confirmed coins, and unconfirmed ones of trusted transactions (`CachedTxIsTrusted` in Bitcoin Core).
        pub trusted: Amount,
        /// Coins of mempool transactions that are not trusted.
        pub untrusted_pending: Amount,
        /// Coinbase outputs that are not yet spendable.
        pub immature: Amount,
    }
}

wire_struct! {
    /// The sums of a wallet's coins, by ownership.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct Balances {
        /// Of spendable coins.
        pub mine: CoinTotals,
        /// Of coins that the wallet watches; none where it has no such coin.
        pub watch_only: Option<CoinTotals>,
        /// Spendable coins of scripts that the wallet has spent from, if the query sums them separately. The other sums exclude them.
        pub used: Amount,
    }
}
