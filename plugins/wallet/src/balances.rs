//! `getbalances`, `getbalance` and `getunconfirmedbalance`: sums over the wallet's coins.

use bitcoin::Amount;
use outrigger_sdk::amount::{self, Saturating};
use outrigger_sdk::params::int32;
use outrigger_sdk::service::wallet::{Balances, BalancesQuery, CoinTotals, Synced};
use serde_json::{Value, json};

use crate::error::WalletError;
use crate::{CallContext, arguments};

/// The sums of the wallet's coins; trusted ones count from `min_depth` confirmations. With `avoid_reuse`, mature coins of scripts
/// that the wallet has spent from are summed up apart.
pub fn balances(context: &CallContext<'_>, min_depth: i32, avoid_reuse: bool) -> Result<Balances, WalletError> {
    let query = BalancesQuery { min_depth: min_depth.into(), avoid_reuse };
    Ok(context.host.wallet.balances(context.scope, query)?)
}

/// `lastprocessedblock`: the block up to which the wallet has followed the chain.
pub fn last_processed_block(synced: &Synced) -> Value {
    json!({"hash": synced.hash, "height": synced.height})
}

/// The JSON object of sums, with `used` if the wallet has the flag `avoid_reuse`.
fn totals_to_json(totals: &CoinTotals, used: Option<Amount>) -> Value {
    let mut object = json!({
        "trusted": amount::to_json(totals.trusted),
        "untrusted_pending": amount::to_json(totals.untrusted_pending),
        "immature": amount::to_json(totals.immature),
    });
    if let (Some(used), Some(object)) = (used, object.as_object_mut()) {
        object.insert("used".into(), amount::to_json(used));
    }
    object
}

/// `getbalances`.
pub fn get_balances(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let wallet = context.wallet()?;
    let balances = balances(context, 0, wallet.avoid_reuse)?;
    let mut object = serde_json::Map::new();
    object.insert("mine".into(), totals_to_json(&balances.mine, wallet.avoid_reuse.then_some(balances.used)));
    if let Some(watch_only) = &balances.watch_only {
        object.insert("watchonly".into(), totals_to_json(watch_only, None));
    }
    object.insert("lastprocessedblock".into(), last_processed_block(&wallet.synced));
    Ok(Value::Object(object))
}

/// `getbalance`: the trusted balance from `minconf` confirmations, with watch-only coins if `include_watchonly`, which is the
/// default in a wallet without private keys.
pub fn get_balance(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let wallet = context.wallet()?;
    let params = &context.params;
    if params.given(0).is_some_and(|dummy| dummy != "*") {
        return Err(WalletError::AccountName);
    }
    let min_depth = params.given(1).map_or(Ok(0), int32)?;
    let watch_only = params.flag_or(2, !wallet.private_keys_enabled)?;
    let avoid_reuse = arguments::avoid_reuse(params.given(3), &wallet)?;
    let balances = balances(context, min_depth, avoid_reuse)?;
    let watched = balances.watch_only.filter(|_| watch_only).map_or(Amount::ZERO, |totals| totals.trusted);
    Ok(amount::to_json(balances.mine.trusted.saturating_add(watched)))
}

/// `getunconfirmedbalance`: what getbalances calls `untrusted_pending` of `mine`.
pub fn get_unconfirmed_balance(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let wallet = context.wallet()?;
    let balances = balances(context, 0, wallet.avoid_reuse)?;
    Ok(amount::to_json(balances.mine.untrusted_pending))
}
