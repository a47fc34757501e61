//! `lockunspent` and `listlockunspent`: coins that coin selection skips.

use std::collections::HashMap;

use bitcoin::OutPoint;
use outrigger_kit::spend::coins;
use outrigger_kit::{outpoint, services};
use outrigger_sdk::methods::Json;
use outrigger_sdk::{Call, RpcError, methods};
use serde_json::Value;

use crate::{WalletPlugin, transactions};

/// The outputs to lock or unlock. As in Bitcoin Core, an invalid output is reported before a malformed later element.
fn named_coins(call: &Call<'_>, list: &[Value], unlock: bool, persistent: bool) -> Result<Vec<OutPoint>, RpcError> {
    let mut unread = Ok(());
    let read = |value| outpoint(value, false).map_err(|error| unread = Err(error)).ok();
    let coins: Vec<OutPoint> = list.iter().map_while(read).collect();
    let mut outputs = HashMap::new();
    transactions::read(call, coins.iter().map(|coin| coin.txid), |transaction| {
        outputs.insert(transaction.txid, transaction.outputs.len());
    })?;
    let spent = coins::spent(services(call), &coins)?;
    let locked = coins::locked(services(call))?;
    for coin in &coins {
        let message = match outputs.get(&coin.txid) {
            None => "Invalid parameter, unknown transaction",
            Some(count) if coin.vout as usize >= *count => "Invalid parameter, vout index out of bounds",
            Some(_) if spent.contains(coin) => "Invalid parameter, expected unspent output",
            Some(_) if unlock && !locked.contains(coin) => "Invalid parameter, expected locked output",
            Some(_) if !unlock && !persistent && locked.contains(coin) => "Invalid parameter, output already locked",
            Some(_) => continue,
        };
        return Err(RpcError::invalid_parameter(message));
    }
    unread.map(|()| coins)
}

#[methods(category = "Wallet")]
impl WalletPlugin {
    /// Locks or unlocks coins. Coin selection omits locked coins. A payment that names a locked coin unlocks it.
    ///
    /// * `unlock` - true to unlock, false to lock.
    /// * `transactions` (default: []) - The coins, as {"txid": "hex", "vout": n}. Without them, the call unlocks all
    ///   coins or locks none.
    /// * `persistent` - Whether the locks persist after the wallet is unloaded. Unlocking always
    ///   removes them.
    ///
    /// # Result
    /// true    (json boolean)
    ///
    /// # Example
    /// false '[{"txid": "a08e6907dbbd3d809776dbfc5d82e371b764ed838b5655e72f463568df1aadf0", "vout": 1}]'
    #[method]
    fn lockunspent(
        call: &Call<'_>,
        unlock: bool,
        transactions: Option<&[Value]>,
        #[arg(default = false)] persistent: bool,
    ) -> Result<bool, RpcError> {
        call.wallet()?;
        let coins = transactions.map(|list| named_coins(call, list, unlock, persistent)).transpose()?;
        let host = call.host;
        if unlock {
            let coins = coins.map_or_else(|| host.wallet.locked_coins(call.scope), Ok)?;
            host.book.unlock_coins(call.scope, coins)?;
        } else if let Some(coins) = coins {
            host.book.lock_coins(call.scope, coins, persistent)?;
        }
        Ok(true)
    }

    /// Lists the locked coins.
    ///
    /// # Result
    /// [{"txid": "hex", "vout": n}, ...]    (json array)
    #[method]
    fn listlockunspent(call: &Call<'_>) -> Result<Json, RpcError> {
        let coins = call.host.wallet.locked_coins(call.scope)?;
        let entries: Vec<String> =
            coins.iter().map(|coin| format!("{{\"txid\":\"{}\",\"vout\":{}}}", coin.txid, coin.vout)).collect();
        Ok(Json(format!("[{}]", entries.join(",")).into_bytes()))
    }
}
