//! `simulaterawtransaction`: what transactions would do to the balance.

use std::collections::{HashMap, HashSet};

use bitcoin::{Amount, OutPoint, SignedAmount, Transaction, TxOut, Txid};
use outrigger_sdk::amount;
use outrigger_sdk::params::Type;
use outrigger_sdk::service::ServiceError;
use outrigger_sdk::service::wallet::{Ownership, ScriptInfo};
use outrigger_sdk::sign::methods::Prevouts;
use outrigger_sdk::standard::transaction_from_hex;
use outrigger_sdk::{RpcError, typed};
use serde_json::{Map, Value, json};

use crate::CallContext;
use crate::error::WalletError;

/// The option that counts watch-only coins, too.
const WATCH_ONLY: &str = "include_watchonly";

/// `simulaterawtransaction`: the change of the balance once the transactions are signed and sent, one after the other.
pub fn simulate_raw_transaction(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let wallet = context.wallet()?;
    let options = context.params.given(1).map(typed::object).transpose()?;
    let watch_only = options.map(include_watch_only).transpose()?.flatten();
    let least = match watch_only.unwrap_or(!wallet.private_keys_enabled) {
        true => Ownership::WatchOnly,
        false => Ownership::Spendable,
    };
    let (mut change, mut spent, mut made) = (0_i64, HashSet::new(), HashMap::new());
    for text in typed::array(context.params.get(0))? {
        let transaction = transaction_from_hex(typed::text(text)?).ok_or(WalletError::Undecodable)?;
        let known = Prevouts::look_up(context.host, context.scope, &transaction)?;
        let debits = debits(context, &transaction, least)?;
        for input in &transaction.input {
            let coin = input.previous_output;
            if spent.contains(&coin) {
                return Err(WalletError::SpentTwice);
            }
            let debit = match made.remove(&coin) {
                None if known.get(&coin).is_none() => return Err(WalletError::InputMissing),
                None => debits.get(&coin).copied().unwrap_or_default(),
                Some(value) => value,
            };
            change = change.saturating_sub(debit);
            spent.insert(coin);
        }
        let txid = transaction.compute_txid();
        for (vout, value) in (0..).zip(credits(context, &transaction, least)?) {
            change = change.saturating_add(value);
            made.insert(OutPoint { txid, vout }, value);
        }
    }
    Ok(json!({"balance_change": amount::to_json(SignedAmount::from_sat(change))}))
}

/// The option `include_watchonly`.
fn include_watch_only(options: &Map<String, Value>) -> Result<Option<bool>, RpcError> {
    typed::check_options(options, &[(WATCH_ONLY, Some(Type::Bool))])?;
    Ok(options.get(WATCH_ONLY).and_then(Value::as_bool))
}

/// The values of what a transaction spends of the wallet's transactions, in satoshi.
fn debits(
    context: &CallContext<'_>,
    transaction: &Transaction,
    least: Ownership,
) -> Result<HashMap<OutPoint, i64>, WalletError> {
    let txids: HashSet<Txid> = transaction.input.iter().map(|input| input.previous_output.txid).collect();
    let batch = context.host.wallet.transactions(context.scope, txids.into_iter().collect())?;
    let mut debits = HashMap::new();
    for row in batch.view().map_err(ServiceError::from)?.rows {
        let (parent, _) = row.open()?;
        for (vout, output) in (0..).zip(parent.outputs.iter()).filter(|(_, output)| output.ownership >= least) {
            debits.insert(OutPoint { txid: parent.txid, vout }, satoshi(output.value));
        }
    }
    Ok(debits)
}

/// What each output of a transaction pays to the wallet, in satoshi.
fn credits(context: &CallContext<'_>, transaction: &Transaction, least: Ownership) -> Result<Vec<i64>, WalletError> {
    let scripts = transaction.output.iter().map(|output| output.script_pubkey.clone()).collect();
    let known = context.host.wallet.scripts(context.scope, scripts)?;
    let is_ours = |info: Option<ScriptInfo>| info.is_some_and(|info| info.ownership >= least);
    let credit = |(output, info): (&TxOut, _)| if is_ours(info) { satoshi(output.value) } else { 0 };
    Ok(transaction.output.iter().zip(known).map(credit).collect())
}

fn satoshi(value: Amount) -> i64 {
    value.to_signed().unwrap_or(SignedAmount::MAX).to_sat()
}
