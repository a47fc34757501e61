//! Version 3 payments (TRUC, BIP 431). Unconfirmed parent and child must both be of version 3 or neither. A version 3
//! transaction is small and has at most one unconfirmed parent, which has no other child.

use std::collections::{HashMap, HashSet};

use bitcoin::transaction::Version;
use bitcoin::{Txid, Weight};
use outrigger_service::Result;

use crate::Services;
use crate::coin::Coin;
use crate::coins::BATCH;
use crate::error::SpendError;

pub const TRUC: Version = Version(3);
/// The greatest weight of a TRUC transaction, and of one with an unconfirmed parent (`TRUC_MAX_WEIGHT`,
/// `TRUC_CHILD_MAX_WEIGHT` of Bitcoin Core).
pub const MAX_WEIGHT: Weight = Weight::from_wu(40_000);
pub const MAX_CHILD_WEIGHT: Weight = Weight::from_wu(4_000);

/// Drops the coins that a payment of this version may not spend. The first `preset` stay: for them it fails instead.
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
        return Err(SpendError::PresetVersion { input, payment });
    }
    let is_alone = |coin: &Coin| payment != TRUC || coin.ancestors <= 1 && coin.descendants <= 1;
    let mut position = 0;
    coins.retain(|coin| {
        position += 1;
        position <= preset || (differing(coin).is_none() && is_alone(coin))
    });
    Ok(())
}

/// For a version 3 payment, drops the unconfirmed coins beyond the one that it may spend. If the payment is too heavy
/// for a TRUC child, it drops all of them. Returns whether a chosen coin was among them.
pub fn keep_one_parent(preset: usize, coins: &mut Vec<Coin>, chosen: &[usize], weight: Weight) -> bool {
    let named = coins.iter().take(preset).filter(|coin| is_unconfirmed(coin)).count();
    let spent = chosen.iter().filter(|position| **position >= preset).filter_map(|position| coins.get(*position));
    let spent: Vec<&Coin> = spent.filter(|coin| is_unconfirmed(coin)).collect();
    let allowed = if weight > MAX_CHILD_WEIGHT { 0 } else { 1_usize.saturating_sub(named) };
    if spent.len() <= allowed {
        return false;
    }
    let most = spent.iter().max_by_key(|coin| coin.value()).map(|coin| coin.outpoint).filter(|_| allowed > 0);
    let mut position = 0;
    coins.retain(|coin| {
        position += 1;
        position <= preset || !is_unconfirmed(coin) || Some(coin.outpoint) == most
    });
    true
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
        found.extend(others.iter().zip(&raw).filter_map(|(txid, raw)| Some((*txid, version(&raw.as_ref()?.raw)?))));
    }
    Ok(found)
}

fn version(raw: &[u8]) -> Option<Version> {
    raw.first_chunk().map(|version| Version(i32::from_le_bytes(*version)))
}
