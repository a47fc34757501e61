//! Reads the wallet's coins, their depth and their solving data.

use std::collections::{BTreeSet, HashMap, HashSet};

use bitcoin::{OutPoint, ScriptBuf, Txid};
use outrigger_service::mempool::MempoolEntry;
use outrigger_service::wallet::{ScriptInfo, Synced, TxState, WalletCoin};
use outrigger_service::{Result, ServiceError};

use crate::Services;

/// The metadata key for the transaction id of the replacement.
pub const REPLACED_BY: &str = "replaced_by_txid";
/// The metadata key for the transaction id of the replaced transaction.
pub const REPLACES: &str = "replaces_txid";

/// The depth from which a coinbase output may be spent: `COINBASE_MATURITY` + 1.
const MATURE_DEPTH: u32 = 101;

/// The most coins or scripts in one request to the host.
pub const BATCH: u32 = 1000;

/// All coins of the wallet, by outpoint.
pub fn all(services: Services<'_>) -> Result<Vec<WalletCoin>> {
    pages(services, false, BATCH).try_fold(Vec::new(), |mut coins, page| {
        coins.extend(page?);
        Ok(coins)
    })
}

/// The wallet's coins, or those in the mempool alone, in pages. Each page is read on demand, and the first has at most `first`
/// coins. The iterator ends after an error.
pub fn pages(services: Services<'_>, in_mempool: bool, first: u32) -> impl Iterator<Item = Result<Vec<WalletCoin>>> {
    let (mut next, mut limit) = (Some(None), first);
    std::iter::from_fn(move || {
        let (wallet, limit) = (&services.host.wallet, std::mem::replace(&mut limit, BATCH));
        let batch = wallet.coins(services.scope, in_mempool, next.take()?, limit);
        Some(batch.map(|batch| {
            next = batch.next.map(Some);
            batch.coins
        }))
    })
}

/// The coins locked with lockunspent.
pub fn locked(services: Services<'_>) -> Result<HashSet<OutPoint>> {
    Ok(services.host.wallet.locked_coins(services.scope)?.into_iter().collect())
}

/// The number of confirmations; 0 for an unconfirmed coin.
pub fn depth(coin: &WalletCoin, synced: &Synced) -> u32 {
    match coin.state {
        TxState::Confirmed { height, .. } => (synced.height + 1).saturating_sub(height),
        _ => 0,
    }
}

/// Whether a coin is a coinbase output below the depth of maturity.
pub fn is_immature(coin: &WalletCoin, synced: &Synced) -> bool {
    coin.coinbase && depth(coin, synced) < MATURE_DEPTH
}

/// Whether a coin is in the chain or in the mempool.
pub fn is_present(coin: &WalletCoin) -> bool {
    matches!(coin.state, TxState::Confirmed { .. } | TxState::InMempool)
}

/// The scripts of these coins that the wallet has spent from before. Spending from them again links payments.
pub fn spent_from(services: Services<'_>, coins: &[WalletCoin]) -> Result<HashSet<ScriptBuf>> {
    let scripts: Vec<ScriptBuf> =
        coins.iter().map(|coin| &coin.script).collect::<HashSet<_>>().into_iter().cloned().collect();
    let mut spent = HashSet::new();
    for scripts in scripts.chunks(BATCH as usize) {
        let known = services.host.wallet.spent_from(services.scope, scripts.to_vec())?;
        spent.extend(scripts.iter().zip(known).filter(|(_, spent)| *spent).map(|(script, _)| script.clone()));
    }
    Ok(spent)
}

/// The wallet's solving data for the scripts of these coins.
pub fn scripts_of<'a>(
    services: Services<'_>,
    coins: impl IntoIterator<Item = &'a WalletCoin>,
) -> Result<HashMap<ScriptBuf, ScriptInfo>> {
    let distinct: HashSet<&ScriptBuf> = coins.into_iter().map(|coin| &coin.script).collect();
    scripts_known(services, distinct.into_iter().cloned().collect())
}

/// The wallet's solving data for these scripts. Unknown scripts are left out.
pub fn scripts_known(services: Services<'_>, distinct: Vec<ScriptBuf>) -> Result<HashMap<ScriptBuf, ScriptInfo>> {
    let mut known = HashMap::with_capacity(distinct.len());
    for scripts in distinct.chunks(BATCH as usize) {
        let infos = services.host.wallet.scripts(services.scope, scripts.to_vec())?;
        known.extend(scripts.iter().cloned().zip(infos).filter_map(|(script, info)| Some((script, info?))));
    }
    Ok(known)
}

/// The mempool entries of the transactions of unconfirmed coins.
pub fn mempool_entries(services: Services<'_>, coins: &[WalletCoin]) -> Result<HashMap<Txid, MempoolEntry>> {
    let unconfirmed = coins.iter().filter(|coin| coin.state == TxState::InMempool).map(|coin| coin.outpoint.txid);
    let txids: Vec<Txid> = unconfirmed.collect::<HashSet<_>>().into_iter().collect();
    if txids.is_empty() {
        return Ok(HashMap::new());
    }
    let entries = services.host.mempool.entries(services.scope, txids)?;
    Ok(entries.into_iter().flatten().map(|entry| (entry.txid, entry)).collect())
}

/// Those of these outputs that a wallet transaction spends, if it is confirmed or may still confirm.
pub fn spent(services: Services<'_>, coins: &[OutPoint]) -> Result<HashSet<OutPoint>> {
    let spenders = services.host.wallet.spenders(services.scope, coins.to_vec())?;
    let txids: HashSet<Txid> = spenders.iter().flatten().copied().collect();
    let batch = services.host.wallet.transactions(services.scope, txids.into_iter().collect())?;
    let mut counting = HashSet::new();
    for row in batch.view().map_err(ServiceError::from)?.rows.iter() {
        let (transaction, unsettled) = row.open()?;
        let counts = matches!(transaction.state, TxState::Confirmed { .. } | TxState::InMempool | TxState::Inactive);
        if counts && unsettled.mempool_conflicts.iter().next().is_none() {
            counting.insert(transaction.txid);
        }
    }
    let is_spent = |by: &Vec<Txid>| by.iter().any(|txid| counting.contains(txid));
    Ok(coins.iter().zip(&spenders).filter(|(_, by)| is_spent(by)).map(|(coin, _)| *coin).collect())
}

/// The unconfirmed transactions of these coins that replace another or were replaced. Either transaction may be mined.
pub fn replacements(services: Services<'_>, coins: &[WalletCoin]) -> Result<HashSet<Txid>> {
    let unconfirmed = coins.iter().filter(|coin| !matches!(coin.state, TxState::Confirmed { .. }));
    let txids: BTreeSet<Txid> = unconfirmed.map(|coin| coin.outpoint.txid).collect();
    if txids.is_empty() {
        return Ok(HashSet::new());
    }
    let batch = services.host.wallet.transactions(services.scope, txids.into_iter().collect())?;
    let mut found = HashSet::new();
    for row in batch.view().map_err(ServiceError::from)?.rows.iter() {
        let (transaction, _) = row.open()?;
        if transaction.metadata.iter().any(|(key, _)| [REPLACES, REPLACED_BY].contains(&key)) {
            found.insert(transaction.txid);
        }
    }
    Ok(found)
}
