//! `getbalances` and `getbalance`: sums over the wallet's coins.

use outrigger_sdk::amount;
use outrigger_sdk::params::int32;
use outrigger_sdk::service::wallet::{Ownership, Synced, WalletInfo};
use serde_json::{Value, json};

use crate::error::WalletError;
use crate::{Question, arguments, coins};

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
}

/// Sums up the wallet's coins; trusted ones count from a depth on.
pub fn balances(question: &Question<'_>, wallet: &WalletInfo, min_depth: i32) -> Result<Balances, WalletError> {
    let mut balances = Balances::default();
    for coin in coins::all(question)? {
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
    fn to_json(self) -> Value {
        json!({
            "trusted": money(self.trusted),
            "untrusted_pending": money(self.untrusted_pending),
            "immature": money(self.immature),
        })
    }
}

/// `getbalances`.
pub fn get_balances(question: &mut Question<'_>) -> Result<Value, WalletError> {
    let wallet = question.wallet()?;
    let balances = balances(question, &wallet, 0)?;
    let mut object = serde_json::Map::new();
    object.insert("mine".into(), balances.mine.to_json());
    if let Some(watch_only) = balances.watch_only {
        object.insert("watchonly".into(), watch_only.to_json());
    }
    object.insert("lastprocessedblock".into(), last_processed_block(&wallet.synced));
    Ok(Value::Object(object))
}

/// `getbalance`: the trusted balance from a depth on, with what is watched where that is asked for. Watched coins count
/// by default in a wallet without private keys.
pub fn get_balance(question: &mut Question<'_>) -> Result<Value, WalletError> {
    let wallet = question.wallet()?;
    let params = &question.params;
    if params.given(0).is_some_and(|dummy| dummy != "*") {
        return Err(WalletError::AccountName);
    }
    let min_depth = params.given(1).map_or(Ok(0), int32)?;
    let watch_only = params.flag_or(2, !wallet.private_keys_enabled)?;
    arguments::avoid_reuse(params.given(3), &wallet)?;
    let balances = balances(question, &wallet, min_depth)?;
    let watched = balances.watch_only.filter(|_| watch_only).map_or(0, |totals| totals.trusted);
    Ok(money(balances.mine.trusted.saturating_add(watched)))
}
