//! Version 3 payments (TRUC, BIP 431). An unconfirmed parent and its child must both be of version 3, or neither. A
//! version 3 transaction has a weight limit and at most one unconfirmed parent, which has no other child.

use std::collections::{BTreeMap, HashMap, HashSet};

use bitcoin::transaction::Version;
use bitcoin::{SignedAmount, Txid, Weight};
use outrigger_service::Result;
use outrigger_values::amount::Saturating;

use crate::Services;
use crate::coin::Coin;
use crate::coins::BATCH;
use crate::error::SpendError;

pub const TRUC: Version = Version(3);
/// The greatest weight of a TRUC transaction (`TRUC_MAX_WEIGHT` of Bitcoin Core).
pub const MAX_WEIGHT: Weight = Weight::from_wu(40_000);
/// The greatest weight of a TRUC transaction with an unconfirmed parent (`TRUC_CHILD_MAX_WEIGHT`).
pub const MAX_CHILD_WEIGHT: Weight = Weight::from_wu(4_000);

/// Drops the coins that a payment of this version may not spend. Fails if one of the first `preset` coins is of the wrong version.
pub fn keep_allowed(
    services: Services<'_>,
    payment: Version,
    preset: usize,
    coins: &mut Vec<Coin>,
) -> std::result::Result<(), SpendError> {
    let unconfirmed = coins.iter().filter(|coin| is_unconfirmed(coin)).map(|coin| coin.outpoint.txid);
    let unconfirmed: HashSet<Txid> = unconfirmed.collect();
    if unconfirmed.is_empty() {
        return Ok(());
    }
    let versions = versions(services, unconfirmed.into_iter().collect())?;
    let differing = |coin: &Coin| {
        let version = versions.get(&coin.outpoint.txid).copied().filter(|_| is_unconfirmed(coin));
        version.filter(|version| (*version == TRUC) != (payment == TRUC))
    };
    if let Some(input) = coins.iter().take(preset).find_map(differing) {
        let (input, payment) = (input.0, payment.0);
        let text = format!("Can't spend unconfirmed version {input} pre-selected input with a version {payment} tx");
        return Err(SpendError::PresetVersion(text));
    }
    if payment != TRUC {
        retain_after(preset, coins, |coin| differing(coin).is_none());
        return Ok(());
    }
    let is_alone = |coin: &Coin| coin.ancestors <= 1 && coin.descendants <= 1;
    retain_after(preset, coins, |coin| differing(coin).is_none() && is_alone(coin));
    let parent = if coins.iter().take(preset).any(is_unconfirmed) { None } else { greatest_parent(coins) };
    retain_after(preset, coins, |coin| !is_unconfirmed(coin) || Some(coin.outpoint.txid) == parent);
    Ok(())
}

/// The unconfirmed transaction with the greatest total value among these coins; if equal, the first txid, as in Bitcoin Core.
fn greatest_parent(coins: &[Coin]) -> Option<Txid> {
    let mut totals = BTreeMap::<Txid, SignedAmount>::new();
    for coin in coins.iter().filter(|coin| is_unconfirmed(coin)) {
        let total = totals.entry(coin.outpoint.txid).or_default();
        *total = total.saturating_add(coin.value());
    }
    totals.into_iter().rev().max_by_key(|(_, total)| *total).map(|(txid, _)| txid)
}

/// Drops all unconfirmed coins but the preset ones if a version 3 payment spends one of them and exceeds
/// [`MAX_CHILD_WEIGHT`]. Returns whether it did.
pub fn keep_light(preset: usize, coins: &mut Vec<Coin>, chosen: &[usize], weight: Weight) -> bool {
    let mut added = chosen.iter().filter(|position| **position >= preset).filter_map(|position| coins.get(*position));
    if weight <= MAX_CHILD_WEIGHT || !added.any(is_unconfirmed) {
        return false;
    }
    retain_after(preset, coins, |coin| !is_unconfirmed(coin));
    true
}

/// Drops the coins after the first `preset` that `keep` does not allow.
pub fn retain_after(preset: usize, coins: &mut Vec<Coin>, keep: impl Fn(&Coin) -> bool) {
    let mut position = 0;
    coins.retain(|coin| {
        position += 1;
        position <= preset || keep(coin)
    });
}

fn is_unconfirmed(coin: &Coin) -> bool {
    coin.depth == 0 && coin.ancestors > 0
}

/// The versions of transactions of the wallet or of the mempool.
fn versions(services: Services<'_>, txids: Vec<Txid>) -> Result<HashMap<Txid, Version>> {
    let mut found = HashMap::with_capacity(txids.len());
    for txids in txids.chunks(BATCH as usize) {
        let raw = services.host.wallet.raw_transactions(services.scope, txids.to_vec())?;
        found.extend(txids.iter().zip(&raw).filter_map(|(txid, raw)| Some((*txid, version(raw.as_deref()?)?))));
    }
    let others: Vec<Txid> = txids.into_iter().filter(|txid| !found.contains_key(txid)).collect();
    if !others.is_empty() {
        let raw = services.host.mempool.transactions(services.scope, others.clone())?;
        found.extend(others.iter().zip(&raw).filter_map(|(txid, raw)| Some((*txid, version(raw.as_ref()?)?))));
    }
    Ok(found)
}

fn version(raw: &[u8]) -> Option<Version> {
    raw.first_chunk().map(|version| Version(i32::from_le_bytes(*version)))
}
