//! `simulaterawtransaction`: the effect of transactions on the balance.

use std::collections::{HashMap, HashSet};

use bitcoin::{Amount, OutPoint, SignedAmount, Transaction, TxOut};
use outrigger_kit::given;
use outrigger_sdk::params::Type;
use outrigger_sdk::service::wallet::{Ownership, ScriptInfo};
use outrigger_sdk::sign::methods::Prevouts;
use outrigger_sdk::standard::transaction_from_hex;
use outrigger_sdk::{Call, RpcError, amount, methods, typed};
use serde_json::{Map, Value, json};

use crate::{WalletPlugin, transactions};

/// The wallet's outputs of the transaction's parents, with their values in satoshi. `least` is the lowest ownership to count.
fn debits(call: &Call<'_>, transaction: &Transaction, least: Ownership) -> Result<HashMap<OutPoint, i64>, RpcError> {
    let mut debits = HashMap::new();
    let txids = transaction.input.iter().map(|input| input.previous_output.txid);
    transactions::read(call, txids, |parent| {
        for (vout, output) in (0..).zip(parent.outputs.iter()).filter(|(_, output)| output.ownership >= least) {
            debits.insert(OutPoint { txid: parent.txid, vout }, satoshi(output.value));
        }
    })?;
    Ok(debits)
}

/// For each output of a transaction, the value that the wallet receives, in satoshi.
fn credits(call: &Call<'_>, transaction: &Transaction, least: Ownership) -> Result<Vec<i64>, RpcError> {
    let scripts = transaction.output.iter().map(|output| output.script_pubkey.clone()).collect();
    let known = call.host.wallet.scripts(call.scope, scripts)?;
    let is_ours = |info: Option<ScriptInfo>| info.is_some_and(|info| info.ownership >= least);
    let credit = |(output, info): (&TxOut, _)| if is_ours(info) { satoshi(output.value) } else { 0 };
    Ok(transaction.output.iter().zip(known).map(credit).collect())
}

fn satoshi(value: Amount) -> i64 {
    value.to_signed().unwrap_or(SignedAmount::MAX).to_sat()
}

#[methods(category = "Wallet")]
impl WalletPlugin {
    /// Computes the change of the balance if transactions were signed and sent, one after the other.
    ///
    /// * `rawtxs` - The transactions in hexadecimal.
    /// * `options` - Options, which a call by name can also give as arguments of their own:
    ///   * `include_watchonly` (boolean; default: true for wallets without private keys, else false) - Whether to
    ///     count watch-only coins.
    ///
    /// # Result
    /// {"balance_change": n}    (json object) In BTC, negative where the balance decreases.
    ///
    /// # Example
    /// '["0200..."]'
    #[method]
    fn simulaterawtransaction(
        call: &Call<'_>,
        #[arg(kind = "array")] rawtxs: Option<&Value>,
        options: Option<&Map<String, Value>>,
    ) -> Result<Value, RpcError> {
        let wallet = call.wallet()?;
        if let Some(options) = options {
            typed::check_options(options, &[("include_watchonly", Some(Type::Bool))])?;
        }
        let watch_only = given(options, "include_watchonly").map_or(Ok(!wallet.signs()), typed::flag)?;
        let least = if watch_only { Ownership::WatchOnly } else { Ownership::Spendable };
        let (mut change, mut spent, mut created) = (0_i64, HashSet::new(), HashMap::new());
        for text in typed::array(rawtxs.unwrap_or(&Value::Null))? {
            let transaction = transaction_from_hex(typed::text(text)?)
                .ok_or_else(|| RpcError::undecodable("Transaction hex string decoding failure."))?;
            let known = Prevouts::look_up(call.host, call.scope, &transaction)?;
            let debits = debits(call, &transaction, least)?;
            for input in &transaction.input {
                let coin = input.previous_output;
                if spent.contains(&coin) {
                    return Err(RpcError::invalid_parameter(
                        "Transaction(s) are spending the same output more than once",
                    ));
                }
                let debit = match created.remove(&coin) {
                    None if known.get(&coin).is_none() => {
                        return Err(RpcError::invalid_parameter(
                            "One or more transaction inputs are missing or have been spent already",
                        ));
                    }
                    None => debits.get(&coin).copied().unwrap_or_default(),
                    Some(value) => value,
                };
                change = change.saturating_sub(debit);
                spent.insert(coin);
            }
            let txid = transaction.compute_txid();
            for (vout, value) in (0..).zip(credits(call, &transaction, least)?) {
                change = change.saturating_add(value);
                created.insert(OutPoint { txid, vout }, value);
            }
        }
        Ok(json!({"balance_change": amount::to_json(SignedAmount::from_sat(change))}))
    }
}
