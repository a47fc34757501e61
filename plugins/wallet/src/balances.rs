//! `getbalances`, `getbalance` and `getunconfirmedbalance`: sums over the wallet's coins.

use std::collections::HashSet;

use bitcoin::Amount;
use outrigger_sdk::amount::{self, Saturating};
use outrigger_sdk::params::int32;
use outrigger_sdk::service::wallet::{Ownership, Synced, WalletInfo};
use outrigger_sdk::spend::{coins, reuse};
use serde_json::{Value, json};

use crate::error::WalletError;
use crate::{CallContext, arguments};

/// Sums of coins of one ownership.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// Confirmed coins, and unconfirmed ones of trusted transactions (`CachedTxIsTrusted` in Bitcoin Core).
    pub trusted: Amount,
    /// Unconfirmed coins of the mempool that are not trusted.
    pub untrusted_pending: Amount,
    /// Immature coinbase outputs.
    pub immature: Amount,
}

/// The sums of a wallet's coins, by ownership.
#[derive(Clone, Copy, Default, Debug)]
pub struct Balances {
    /// Spendable coins.
    pub mine: Totals,
    /// Watch-only coins; none if there are none.
    pub watch_only: Option<Totals>,
    /// Spendable coins whose scripts were spent from. They are in no other sum (`avoid_reuse`).
    pub used: Amount,
}

/// Sums up the wallet's coins; trusted ones count from `min_depth` confirmations. With `avoid_reuse`, mature coins of scripts
/// that the wallet has spent from are counted apart.
pub fn balances(
    context: &CallContext<'_>,
    wallet: &WalletInfo,
    min_depth: i32,
    avoid_reuse: bool,
) -> Result<Balances, WalletError> {
    let mut balances = Balances::default();
    let spent_from = if avoid_reuse { reuse::spent_from(context.services())? } else { HashSet::new() };
    for coin in coins::all(context.services())? {
        let totals = match coin.ownership {
            Ownership::Spendable => &mut balances.mine,
            Ownership::WatchOnly => balances.watch_only.get_or_insert_default(),
            Ownership::None => continue,
        };
        let depth = coins::depth(&coin, &wallet.synced);
        if !coins::is_present(&coin) {
            continue;
        } else if coins::is_immature(&coin, &wallet.synced) {
            totals.immature = totals.immature.saturating_add(coin.value);
        } else if spent_from.contains(&coin.script) {
            if coin.ownership == Ownership::Spendable {
                balances.used = balances.used.saturating_add(coin.value);
            }
        } else if !coin.trusted && depth == 0 {
            totals.untrusted_pending = totals.untrusted_pending.saturating_add(coin.value);
        } else if i64::from(depth) >= i64::from(min_depth) {
            totals.trusted = totals.trusted.saturating_add(coin.value);
        }
    }
    Ok(balances)
}

/// `lastprocessedblock`: the block up to which the wallet has followed the chain.
pub fn last_processed_block(synced: &Synced) -> Value {
    json!({"hash": synced.hash, "height": synced.height})
}

impl Totals {
    /// The JSON object, with `used` if the wallet has the flag `avoid_reuse`.
    fn to_json(self, used: Option<Amount>) -> Value {
        let mut object = json!({
            "trusted": amount::to_json(self.trusted),
            "untrusted_pending": amount::to_json(self.untrusted_pending),
            "immature": amount::to_json(self.immature),
        });
        if let (Some(used), Some(object)) = (used, object.as_object_mut()) {
            object.insert("used".into(), amount::to_json(used));
        }
        object
    }
}

/// `getbalances`.
pub fn get_balances(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let wallet = context.wallet()?;
    let balances = balances(context, &wallet, 0, wallet.avoid_reuse)?;
    let mut object = serde_json::Map::new();
    object.insert("mine".into(), balances.mine.to_json(wallet.avoid_reuse.then_some(balances.used)));
    if let Some(watch_only) = balances.watch_only {
        object.insert("watchonly".into(), watch_only.to_json(None));
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
    let balances = balances(context, &wallet, min_depth, avoid_reuse)?;
    let watched = balances.watch_only.filter(|_| watch_only).map_or(Amount::ZERO, |totals| totals.trusted);
    Ok(amount::to_json(balances.mine.trusted.saturating_add(watched)))
}

/// `getunconfirmedbalance`: what getbalances calls `untrusted_pending` of `mine`.
pub fn get_unconfirmed_balance(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let wallet = context.wallet()?;
    let balances = balances(context, &wallet, 0, wallet.avoid_reuse)?;
    Ok(amount::to_json(balances.mine.untrusted_pending))
}
