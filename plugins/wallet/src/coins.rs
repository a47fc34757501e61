//! The wallet's coins: reading them all, and how deep they lie.

use std::collections::{BTreeSet, HashMap, HashSet};

use bitcoin::{OutPoint, ScriptBuf, Txid};
use outrigger_sdk::service::ServiceError;
use outrigger_sdk::service::mempool::MempoolEntry;
use outrigger_sdk::service::wallet::{ScriptInfo, Synced, TxState, WalletCoin};

use crate::CallContext;
use crate::error::WalletError;

/// The depth at which a coinbase may be spent.
const MATURE_DEPTH: u32 = 101;

/// The most coins or scripts to ask the host for at a time.
const BATCH: u32 = 1000;

/// All coins of the wallet, by outpoint.
pub fn all(context: &CallContext<'_>) -> Result<Vec<WalletCoin>, WalletError> {
    let mut coins = Vec::new();
    let mut after = None;
    loop {
        let batch = context.host.wallet.coins(context.scope, after, BATCH)?;
        coins.extend(batch.coins);
        after = batch.next;
        if after.is_none() {
            return Ok(coins);
        }
    }
}

/// The coins that payments and listunspent leave out (lockunspent).
pub fn locked(context: &CallContext<'_>) -> Result<HashSet<OutPoint>, WalletError> {
    Ok(context.host.wallet.locked_coins(context.scope)?.into_iter().collect())
}

/// The number of blocks that confirm a coin: 0 while it is unconfirmed.
pub fn depth(coin: &WalletCoin, synced: &Synced) -> u32 {
    match coin.state {
        TxState::Confirmed { height, .. } => (synced.height + 1).saturating_sub(height),
        _ => 0,
    }
}

/// Whether a coin is a coinbase that may not be spent yet.
pub fn is_immature(coin: &WalletCoin, synced: &Synced) -> bool {
    coin.coinbase && depth(coin, synced) < MATURE_DEPTH
}

/// Whether a coin is there: in the chain or in the mempool.
pub fn is_present(coin: &WalletCoin) -> bool {
    matches!(coin.state, TxState::Confirmed { .. } | TxState::InMempool)
}

/// What the wallet knows of the scripts of these coins.
pub fn scripts_of<'a>(
    context: &CallContext<'_>,
    coins: impl IntoIterator<Item = &'a WalletCoin>,
) -> Result<HashMap<ScriptBuf, ScriptInfo>, WalletError> {
    let distinct: HashSet<&ScriptBuf> = coins.into_iter().map(|coin| &coin.script).collect();
    let distinct: Vec<ScriptBuf> = distinct.into_iter().cloned().collect();
    let mut known = HashMap::with_capacity(distinct.len());
    for scripts in distinct.chunks(BATCH as usize) {
        let infos = context.host.wallet.scripts(context.scope, scripts.to_vec())?;
        known.extend(scripts.iter().cloned().zip(infos).filter_map(|(script, info)| Some((script, info?))));
    }
    Ok(known)
}

/// The texts of the descriptors that each coin comes from, as they were imported.
pub fn parent_texts(
    context: &CallContext<'_>,
    coins: &[WalletCoin],
) -> Result<HashMap<OutPoint, Vec<String>>, WalletError> {
    let wanted: HashSet<OutPoint> = coins.iter().map(|coin| coin.outpoint).collect();
    let txids: Vec<Txid> = wanted.iter().map(|outpoint| outpoint.txid).collect::<HashSet<_>>().into_iter().collect();
    let mut numbers = HashMap::with_capacity(wanted.len());
    for txids in txids.chunks(BATCH as usize) {
        let found = context.host.wallet.transactions(context.scope, txids.to_vec())?;
        for row in found.view().map_err(ServiceError::from)?.rows {
            let (transaction, _) = row.open()?;
            for (vout, output) in (0_u32..).zip(transaction.outputs.iter()) {
                let outpoint = OutPoint { txid: transaction.txid, vout };
                if wanted.contains(&outpoint) {
                    numbers.insert(outpoint, output.descriptors.iter().collect::<Vec<u32>>());
                }
            }
        }
    }
    let distinct: Vec<u32> = numbers.values().flatten().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let texts = context.host.wallet.descriptor_texts(context.scope, distinct.clone())?;
    let texts: HashMap<u32, String> =
        distinct.into_iter().zip(texts).filter_map(|(number, text)| Some((number, text?))).collect();
    let of = |numbers: Vec<u32>| numbers.iter().filter_map(|number| texts.get(number).cloned()).collect();
    Ok(numbers.into_iter().map(|(outpoint, numbers)| (outpoint, of(numbers))).collect())
}

/// The mempool's entries of the transactions of unconfirmed coins.
pub fn mempool_entries(
    context: &CallContext<'_>,
    coins: &[WalletCoin],
) -> Result<HashMap<Txid, MempoolEntry>, WalletError> {
    let unconfirmed = coins.iter().filter(|coin| coin.state == TxState::InMempool).map(|coin| coin.outpoint.txid);
    let txids: Vec<Txid> = unconfirmed.collect::<HashSet<_>>().into_iter().collect();
    if txids.is_empty() {
        return Ok(HashMap::new());
    }
    let entries = context.host.mempool.entries(context.scope, txids)?;
    Ok(entries.into_iter().flatten().map(|entry| (entry.txid, entry)).collect())
}
