//! `getbalances` and `getbalance`: sums over the wallet's coins.

use std::collections::HashSet;

use outrigger_sdk::amount;
use outrigger_sdk::params::int32;
use outrigger_sdk::service::wallet::{Ownership, Synced, WalletInfo};
use serde_json::{Value, json};

use crate::error::WalletError;
use crate::{CallContext, arguments, coins, reuse};

/// Sums of coins, in satoshi.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// Confirmed, or unconfirmed change of our own payments.
    pub trusted: u64,
    /// Unconfirmed payments of others.
    pub untrusted_pending: u64,
    /// Coinbases that may not be spent yet.
    pub immature: u64,
}

/// The sums of a wallet's coins by whose they are.
#[derive(Clone, Copy, Default, Debug)]
pub struct Balances {
    /// What is spendable by the wallet.
    pub mine: Totals,
    /// What is watched; none where no such coin is there.
    pub watch_only: Option<Totals>,
    /// What is spendable and counted nowhere else, because its scripts were spent from, in satoshi.
    pub used: u64,
}

/// Sums up the wallet's coins; trusted ones count from a depth on. With `avoid_reuse`, coins of scripts that the wallet has
/// spent from count apart, but for coinbases that may not be spent yet.
pub fn balances(
    context: &CallContext<'_>,
    wallet: &WalletInfo,
    min_depth: i32,
    avoid_reuse: bool,
) -> Result<Balances, WalletError> {
    let mut balances = Balances::default();
    let spent_from = if avoid_reuse { reuse::spent_from(context)? } else { HashSet::new() };
    for coin in coins::all(context)? {
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

/// An amount in satoshi as JSON.
pub fn money(satoshi: u64) -> Value {
    amount::to_json(i64::try_from(satoshi).unwrap_or(i64::MAX))
}

/// The block that an answer holds for.
pub fn last_processed_block(synced: &Synced) -> Value {
    json!({"hash": synced.hash, "height": synced.height})
}

impl Totals {
    /// With what is in scripts that were spent from, where the wallet tells that apart.
    fn to_json(self, used: Option<u64>) -> Value {
        let mut object = json!({
            "trusted": money(self.trusted),
            "untrusted_pending": money(self.untrusted_pending),
            "immature": money(self.immature),
        });
        if let (Some(used), Some(object)) = (used, object.as_object_mut()) {
            object.insert("used".into(), money(used));
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

/// `getbalance`: the trusted balance from a depth on, with what is watched where that is asked for. Watched coins count
/// by default in a wallet without private keys.
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
    let watched = balances.watch_only.filter(|_| watch_only).map_or(0, |totals| totals.trusted);
    Ok(money(balances.mine.trusted.saturating_add(watched)))
}
