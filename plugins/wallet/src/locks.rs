//! `lockunspent` and `listlockunspent`: coins that payments do not choose by themselves.

use std::collections::{HashMap, HashSet};

use bitcoin::hashes::Hash;
use bitcoin::{OutPoint, Txid};
use outrigger_sdk::params::{Type, flag, hash};
use outrigger_sdk::service::ServiceError;
use outrigger_sdk::spend::coins;
use outrigger_sdk::typed;
use serde_json::Value;

use crate::CallContext;
use crate::error::WalletError;

/// `lockunspent`: locks or unlocks outputs of the wallet's transactions, or unlocks all.
pub fn lock_unspent(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    context.wallet()?;
    let unlock = flag(context.params.get(0))?;
    let persistent = context.params.flag_or(2, false)?;
    let coins = context.params.given(1).map(|list| named_coins(context, list, unlock, persistent)).transpose()?;
    let wallet = &context.host.wallet;
    if unlock {
        let coins = coins.map_or_else(|| wallet.locked_coins(context.scope), Ok)?;
        wallet.unlock_coins(context.scope, coins)?;
    } else if let Some(coins) = coins {
        wallet.lock_coins(context.scope, coins, persistent)?;
    }
    Ok(Value::Bool(true))
}

/// `listlockunspent`.
pub fn list_lock_unspent(context: &mut CallContext<'_>) -> Result<Vec<u8>, WalletError> {
    let coins = context.host.wallet.locked_coins(context.scope)?;
    let entries: Vec<String> =
        coins.iter().map(|coin| format!("{{\"txid\":\"{}\",\"vout\":{}}}", coin.txid, coin.vout)).collect();
    Ok(format!("[{}]", entries.join(",")).into_bytes())
}

fn outpoint(value: &Value) -> Result<OutPoint, WalletError> {
    let entry = typed::object(value)?;
    let txid = typed::member(entry, "txid", Type::String)?;
    let vout = typed::member(entry, "vout", Type::Number)?;
    let txid = Txid::from_byte_array(hash(txid, "txid")?);
    let vout: i32 = typed::integer(vout)?;
    Ok(OutPoint { txid, vout: u32::try_from(vout).map_err(|_| WalletError::NegativeVout)? })
}

/// The outputs to lock or unlock. Each is checked before the next one is read, as in Bitcoin Core.
fn named_coins(
    context: &CallContext<'_>,
    list: &Value,
    unlock: bool,
    persistent: bool,
) -> Result<Vec<OutPoint>, WalletError> {
    let (mut coins, mut unread) = (Vec::new(), Ok(()));
    for value in typed::array(list)? {
        match outpoint(value) {
            Ok(coin) => coins.push(coin),
            Err(error) => {
                unread = Err(error);
                break;
            }
        }
    }
    let outputs = output_counts(context, &coins)?;
    let spent = coins::spent(context.services(), &coins)?;
    let locked = coins::locked(context.services())?;
    for coin in &coins {
        match outputs.get(&coin.txid) {
            None => return Err(WalletError::UnknownOutput),
            Some(count) if coin.vout >= *count => return Err(WalletError::VoutOutOfBounds),
            Some(_) if spent.contains(coin) => return Err(WalletError::SpentOutput),
            Some(_) if unlock && !locked.contains(coin) => return Err(WalletError::NotLocked),
            Some(_) if !unlock && !persistent && locked.contains(coin) => return Err(WalletError::Locked),
            Some(_) => {}
        }
    }
    unread.map(|()| coins)
}

/// How many outputs the wallet's transactions among these have.
fn output_counts(context: &CallContext<'_>, coins: &[OutPoint]) -> Result<HashMap<Txid, u32>, WalletError> {
    let txids: HashSet<Txid> = coins.iter().map(|coin| coin.txid).collect();
    let batch = context.host.wallet.transactions(context.scope, txids.into_iter().collect())?;
    let mut counts = HashMap::new();
    for row in batch.view().map_err(ServiceError::from)?.rows {
        let (transaction, _) = row.open()?;
        counts.insert(transaction.txid, u32::try_from(transaction.outputs.iter().count()).unwrap_or(u32::MAX));
    }
    Ok(counts)
}
