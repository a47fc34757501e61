//! `lockunspent` and `listlockunspent`: coins that coin selection omits.

use std::collections::HashMap;

use bitcoin::hashes::Hash;
use bitcoin::{OutPoint, Txid};
use outrigger_sdk::params::{Type, flag, hash};
use outrigger_sdk::spend::coins;
use outrigger_sdk::{CallContext, RpcError, typed};
use serde_json::Value;

use crate::transactions;

pub fn lock_unspent(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    context.wallet()?;
    let unlock = flag(context.params.get(0))?;
    let persistent = context.params.flag_or(2, false)?;
    let coins = context.params.given(1).map(|list| named_coins(context, list, unlock, persistent)).transpose()?;
    let host = context.host;
    if unlock {
        let coins = coins.map_or_else(|| host.wallet.locked_coins(context.scope), Ok)?;
        host.book.unlock_coins(context.scope, coins)?;
    } else if let Some(coins) = coins {
        host.book.lock_coins(context.scope, coins, persistent)?;
    }
    Ok(Value::Bool(true))
}

pub fn list_lock_unspent(context: &mut CallContext<'_>) -> Result<Vec<u8>, RpcError> {
    let coins = context.host.wallet.locked_coins(context.scope)?;
    let entries: Vec<String> =
        coins.iter().map(|coin| format!("{{\"txid\":\"{}\",\"vout\":{}}}", coin.txid, coin.vout)).collect();
    Ok(format!("[{}]", entries.join(",")).into_bytes())
}

fn outpoint(value: &Value) -> Result<OutPoint, RpcError> {
    let entry = typed::object(value)?;
    let txid = typed::member(entry, "txid", Type::String)?;
    let vout = typed::member(entry, "vout", Type::Number)?;
    let txid = Txid::from_byte_array(hash(txid, "txid")?);
    let vout: i32 = typed::integer(vout)?;
    let vout =
        u32::try_from(vout).map_err(|_| RpcError::invalid_parameter("Invalid parameter, vout cannot be negative"))?;
    Ok(OutPoint { txid, vout })
}

/// The outputs to lock or unlock. As in Bitcoin Core, an invalid output comes before a malformed later element.
fn named_coins(
    context: &CallContext<'_>,
    list: &Value,
    unlock: bool,
    persistent: bool,
) -> Result<Vec<OutPoint>, RpcError> {
    let mut unread = Ok(());
    let read = |value| outpoint(value).map_err(|error| unread = Err(error)).ok();
    let coins: Vec<OutPoint> = typed::array(list)?.iter().map_while(read).collect();
    let outputs = output_counts(context, &coins)?;
    let spent = coins::spent(context.services(), &coins)?;
    let locked = coins::locked(context.services())?;
    for coin in &coins {
        let message = match outputs.get(&coin.txid) {
            None => "Invalid parameter, unknown transaction",
            Some(count) if coin.vout >= *count => "Invalid parameter, vout index out of bounds",
            Some(_) if spent.contains(coin) => "Invalid parameter, expected unspent output",
            Some(_) if unlock && !locked.contains(coin) => "Invalid parameter, expected locked output",
            Some(_) if !unlock && !persistent && locked.contains(coin) => "Invalid parameter, output already locked",
            Some(_) => continue,
        };
        return Err(RpcError::invalid_parameter(message));
    }
    unread.map(|()| coins)
}

/// The number of outputs of each of the wallet's transactions among these.
fn output_counts(context: &CallContext<'_>, coins: &[OutPoint]) -> Result<HashMap<Txid, u32>, RpcError> {
    let mut counts = HashMap::new();
    transactions::read(context, coins.iter().map(|coin| coin.txid), |transaction| {
        counts.insert(transaction.txid, u32::try_from(transaction.outputs.iter().count()).unwrap_or(u32::MAX));
    })?;
    Ok(counts)
}
