//! `getbalances`, `getbalance` and `getunconfirmedbalance`: sums over the wallet's coins.

use bitcoin::{Amount, SignedAmount};
use outrigger_kit::without_nulls;
use outrigger_sdk::amount::{self, Saturating};
use outrigger_sdk::params::int32;
use outrigger_sdk::service::wallet::{Balances, BalancesQuery, CoinTotals, Synced};
use outrigger_sdk::{Call, RpcError, RpcErrorCode, methods};
use serde_json::{Value, json};

use crate::{WalletPlugin, arguments};

/// The sums of the wallet's coins. Trusted coins need `min_depth` confirmations. With `avoid_reuse`, mature coins of reused
/// scripts are summed in `used`.
pub fn balances(call: &Call<'_>, min_depth: i32, avoid_reuse: bool) -> Result<Balances, RpcError> {
    let query = BalancesQuery { min_depth: min_depth.into(), avoid_reuse };
    Ok(call.host.wallet.balances(call.scope, query)?)
}

/// The member `lastprocessedblock`.
pub fn last_processed_block(synced: &Synced) -> Value {
    json!({"hash": synced.hash, "height": synced.height})
}

fn totals_to_json(totals: &CoinTotals) -> Value {
    json!({
        "trusted": amount::to_json(totals.trusted),
        "untrusted_pending": amount::to_json(totals.untrusted_pending),
        "immature": amount::to_json(totals.immature),
    })
}

fn mine_to_json(balances: &Balances, nonmempool: Option<Amount>, avoid_reuse: bool) -> Value {
    let negated = |spent: Amount| SignedAmount::ZERO.saturating_sub(spent.to_signed().unwrap_or(SignedAmount::MAX));
    let mut object = totals_to_json(&balances.mine);
    object["nonmempool"] = json!(nonmempool.map(negated).map(amount::to_json));
    object["used"] = json!(avoid_reuse.then(|| amount::to_json(balances.used)));
    without_nulls(object)
}

/// Adds the coins of `spent_outside_mempool` to `mine` and `used`. Returns their value.
fn add_spent(balances: &mut Balances, spent: &Balances) -> Amount {
    let add = |totals: &mut CoinTotals, spent: &CoinTotals| {
        totals.trusted = totals.trusted.saturating_add(spent.trusted);
        totals.untrusted_pending = totals.untrusted_pending.saturating_add(spent.untrusted_pending);
        totals.immature = totals.immature.saturating_add(spent.immature);
    };
    add(&mut balances.mine, &spent.mine);
    balances.used = balances.used.saturating_add(spent.used);
    let CoinTotals { trusted, untrusted_pending, immature } = spent.mine;
    trusted.saturating_add(untrusted_pending).saturating_add(immature).saturating_add(spent.used)
}

#[methods(category = "Wallet")]
impl WalletPlugin {
    /// Gives the wallet's balances.
    ///
    /// # Result
    /// {"mine": {"trusted": n, "untrusted_pending": n, "immature": n}, "watchonly": {...}, "lastprocessedblock":
    /// {"hash": "...", "height": n}}    (json object) In BTC. Only a wallet with watch-only coins has watchonly.
    #[method]
    fn getbalances(call: &Call<'_>) -> Result<Value, RpcError> {
        let wallet = call.wallet()?;
        let mut balances = balances(call, 0, wallet.avoid_reuse)?;
        let mut nonmempool = None;
        if call.rules.nonmempool_balance {
            let query = BalancesQuery { min_depth: 0, avoid_reuse: wallet.avoid_reuse };
            let spent = call.host.wallet.spent_outside_mempool(call.scope, query)?;
            nonmempool = Some(add_spent(&mut balances, &spent));
        }
        Ok(without_nulls(json!({
            "mine": mine_to_json(&balances, nonmempool, wallet.avoid_reuse),
            "watchonly": balances.watch_only.as_ref().map(totals_to_json),
            "lastprocessedblock": last_processed_block(&wallet.synced),
        })))
    }

    /// Gives the trusted balance.
    ///
    /// * `dummy` - Formerly an account. Must be "*" or omitted.
    /// * `minconf` (default: 0) - The minimum number of confirmations.
    /// * `include_watchonly` (default: true for wallets without private keys, otherwise false) - Whether to count
    ///   watch-only coins.
    /// * `avoid_reuse` (default: the wallet's flag) - Whether to exclude the coins of reused addresses. true requires
    ///   the wallet's flag avoid_reuse.
    ///
    /// # Result
    /// n    (numeric) In BTC.
    ///
    /// # Example
    /// "*" 6
    #[method]
    fn getbalance(
        call: &Call<'_>,
        dummy: Option<&str>,
        #[arg(kind = "numeric")] minconf: Option<&Value>,
        include_watchonly: Option<bool>,
        avoid_reuse: Option<bool>,
    ) -> Result<Value, RpcError> {
        let wallet = call.wallet()?;
        if dummy.is_some_and(|dummy| dummy != "*") {
            let message = "dummy first argument must be excluded or set to \"*\".";
            return Err(RpcError::new(RpcErrorCode::METHOD_DEPRECATED, message));
        }
        let min_depth = minconf.map_or(Ok(0), int32)?;
        let watch_only = include_watchonly.unwrap_or(!wallet.signs());
        let avoid_reuse = arguments::avoid_reuse(avoid_reuse, &wallet)?;
        let balances = balances(call, min_depth, avoid_reuse)?;
        let watched = balances.watch_only.filter(|_| watch_only).map_or(Amount::ZERO, |totals| totals.trusted);
        Ok(amount::to_json(balances.mine.trusted.saturating_add(watched)))
    }

    /// Gives the untrusted_pending balance of getbalances. Deprecated.
    ///
    /// # Result
    /// n    (numeric) The amount in BTC.
    #[method(unchecked)]
    fn getunconfirmedbalance(call: &Call<'_>) -> Result<Value, RpcError> {
        let wallet = call.wallet()?;
        let balances = balances(call, 0, wallet.avoid_reuse)?;
        Ok(amount::to_json(balances.mine.untrusted_pending))
    }
}
