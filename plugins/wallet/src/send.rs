//! `sendtoaddress` and `sendmany`.

use std::collections::HashSet;

use bitcoin::secp256k1::rand::seq::SliceRandom;
use bitcoin::secp256k1::rand::thread_rng;
use bitcoin::{ScriptBuf, Transaction, TxOut, Txid, consensus};
use outrigger_kit::spend::options::{fee_choice, fee_payers};
use outrigger_kit::spend::{CoinControl, Funded, Recipient, fund};
use outrigger_sdk::params::Type;
use outrigger_sdk::service::ServiceError;
use outrigger_sdk::service::wallet::{MAX_TEXT_LEN, WalletInfo};
use outrigger_sdk::sign::{Sighash, SolvingSet, WalletKeys, sign_transaction};
use outrigger_sdk::standard::outputs;
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, RpcError, RpcErrorCode, amount, methods, typed};
use serde_json::{Value, json};

use crate::arguments::listed_address;
use crate::{WalletPlugin, arguments};

/// Funds, signs and sends a payment. Returns its id, with `verbose` also the reason of its feerate.
fn pay(
    call: &Call<'_>,
    recipients: &[Recipient],
    control: &CoinControl,
    metadata: Vec<(String, String)>,
    verbose: bool,
) -> Result<Value, RpcError> {
    call.host.pay.begin_payment(call.scope)?;
    let services = outrigger_kit::services(call);
    let settings = call.host.wallet.spend_settings(call.scope)?;
    let funded = fund(services, &settings, recipients, control, &mut thread_rng())
        .map_err(|error| error.with_code(RpcErrorCode::WALLET_INSUFFICIENT_FUNDS))?;
    let fee_reason = funded.fee_reason;
    let refusal = || RpcError::new(RpcErrorCode::WALLET_INSUFFICIENT_FUNDS, "Signing transaction failed");
    let paid = sign(call, &funded)
        .and_then(|signed| signed.ok_or_else(refusal))
        .and_then(|signed| submit(call, &signed, metadata, None));
    let (txid, _) = paid.inspect_err(|_| funded.give_back(services))?;
    Ok(if verbose { json!({"txid": txid, "fee_reason": fee_reason}) } else { json!(txid) })
}

/// The comments to store with a payment, by key. Empty comments are omitted.
fn metadata(texts: &[(&str, Option<&str>)]) -> Result<Vec<(String, String)>, RpcError> {
    let mut metadata = Vec::new();
    for (key, text) in texts {
        let text = text.unwrap_or_default();
        if text.len() > MAX_TEXT_LEN {
            let len = text.len();
            let message = format!("Invalid {key}: it has {len} bytes, and at most {MAX_TEXT_LEN} are stored");
            return Err(RpcError::invalid_parameter(message));
        }
        if !text.is_empty() {
            metadata.push(((*key).to_owned(), text.to_owned()));
        }
    }
    Ok(metadata)
}

#[methods(category = "Wallet", long_running, private_keys)]
impl WalletPlugin {
    /// Pays an amount to an address.
    ///
    /// * `address` - The address.
    /// * `amount` - The amount in BTC.
    /// * `comment` - The purpose of the payment; stored only in the wallet.
    /// * `comment_to` - The name of the recipient; stored only in the wallet.
    /// * `subtractfeefromamount` - Whether to subtract the fee from the amount.
    /// * `replaceable` (default: true) - Whether the payment signals replaceability (BIP 125).
    /// * `conf_target` - The confirmation target in blocks, from 1 to 1008. The default is the host's
    ///   wallet.txconfirmtarget.
    /// * `estimate_mode` (default: unset) - The kind of the node's estimate: unset, economical or conservative. unset
    ///   means economical for a replaceable payment.
    /// * `avoid_reuse` (default: the wallet's flag) - Whether to exclude the coins of reused addresses. true requires
    ///   the wallet's flag avoid_reuse.
    /// * `fee_rate` (default: the node's estimate, else the host's wallet.fallbackfee) - The feerate in satoshi per
    ///   virtual byte, with at most three decimals.
    /// * `verbose` - Whether to include the reason of the feerate.
    ///
    /// # Result
    /// "..."    (string) The transaction's id; with verbose {"txid": "...", "fee_reason": "..."}    (json object)
    ///
    /// # Example
    /// bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080 0.1
    #[method]
    fn sendtoaddress(
        call: &Call<'_>,
        address: &str,
        #[arg(kind = "amount")] amount: &Value,
        comment: Option<&str>,
        comment_to: Option<&str>,
        #[arg(default = false)] subtractfeefromamount: bool,
        replaceable: Option<bool>,
        #[arg(kind = "numeric")] conf_target: Option<&Value>,
        #[arg(kind = "string")] estimate_mode: Option<&Value>,
        avoid_reuse: Option<bool>,
        #[arg(kind = "amount")] fee_rate: Option<&Value>,
        #[arg(default = false)] verbose: bool,
    ) -> Result<Value, RpcError> {
        // The order of the checks is that of Bitcoin Core 29.
        let wallet = call.wallet()?;
        let metadata = metadata(&[("comment", comment), ("to", comment_to)])?;
        let avoid_reuse = arguments::avoid_reuse(avoid_reuse, &wallet)?;
        let fee = fee_choice(conf_target, estimate_mode, fee_rate, false)?;
        wallet.check_unlocked()?;
        let script = listed_address(address, call.network()?)?;
        let amount = amount::from_json(amount)?;
        require_private_keys(&wallet)?;
        let recipients = [Recipient { script, amount, subtract_fee: subtractfeefromamount }];
        let control = CoinControl {
            avoid_reuse,
            avoid_partial_spends: avoid_reuse,
            replaceable,
            fee,
            signable_only: true,
            ..CoinControl::default()
        };
        pay(call, &recipients, &control, metadata, verbose)
    }

    /// Pays amounts to several addresses in one transaction.
    ///
    /// * `dummy` - Formerly an account. Must be "" or null.
    /// * `amounts` - The amounts in BTC by address. The key "data" adds an OP_RETURN output with the value as
    ///   hexadecimal data.
    /// * `minconf` - Ignored.
    /// * `comment` - The purpose of the payment; stored only in the wallet.
    /// * `subtractfeefrom` (default: []) - The recipients that pay the fee in equal shares: their addresses, or their
    ///   positions from 0 on.
    /// * `replaceable` (default: true) - Whether the payment signals replaceability (BIP 125).
    /// * `conf_target` - The confirmation target in blocks, from 1 to 1008. The default is the host's
    ///   wallet.txconfirmtarget.
    /// * `estimate_mode` (default: unset) - The kind of the node's estimate: unset, economical or conservative. unset
    ///   means economical for a replaceable payment.
    /// * `fee_rate` (default: the node's estimate, else the host's wallet.fallbackfee) - The feerate in satoshi per
    ///   virtual byte, with at most three decimals.
    /// * `verbose` - Whether to include the reason of the feerate.
    ///
    /// # Result
    /// "..."    (string) The transaction's id; with verbose {"txid": "...", "fee_reason": "..."}    (json object)
    ///
    /// # Example
    /// "" '{"bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080": 0.1, "bcrt1qgrwkcxzwrd2znux6xct0m8w0n0cp39haa3wxk3": 0.2}'
    #[method]
    fn sendmany(
        call: &Call<'_>,
        dummy: &Value,
        #[arg(kind = "amounts")] amounts: &Value,
        #[arg(kind = "numeric")] _minconf: Option<&Value>,
        comment: Option<&str>,
        #[arg(kind = "array")] subtractfeefrom: Option<&Value>,
        replaceable: Option<bool>,
        #[arg(kind = "numeric")] conf_target: Option<&Value>,
        #[arg(kind = "string")] estimate_mode: Option<&Value>,
        #[arg(kind = "amount")] fee_rate: Option<&Value>,
        #[arg(default = false)] verbose: bool,
    ) -> Result<Value, RpcError> {
        // The order of the checks is that of Bitcoin Core 29: first the fee payers, then the addresses, then the state of the
        // wallet.
        let wallet = call.wallet()?;
        check_dummy(dummy)?;
        let metadata = metadata(&[("comment", comment)])?;
        let fee = fee_choice(conf_target, estimate_mode, fee_rate, false)?;
        let names: Vec<&str> = typed::object(amounts)?.keys().map(String::as_str).collect();
        let payers = fee_payers(subtractfeefrom, &names)?;
        let mut recipients = Recipient::of(&outputs(amounts, call.network()?)?, &payers);
        wallet.check_unlocked()?;
        require_private_keys(&wallet)?;
        // Shuffling hides the order of the request. Otherwise the outputs would show it, and the recipient that pays the
        // odd satoshi of a shared fee.
        recipients.shuffle(&mut thread_rng());
        // As in bitcoind, sendmany spends coins of reused addresses even if the wallet avoids reuse.
        let control = CoinControl { replaceable, fee, signable_only: true, ..CoinControl::default() };
        pay(call, &recipients, &control, metadata, verbose)
    }
}

/// Checks `dummy`, which named an account in old releases.
fn check_dummy(value: &Value) -> Result<(), RpcError> {
    match value {
        Value::Null => Ok(()),
        Value::String(text) if text.is_empty() => Ok(()),
        Value::String(_) => Err(RpcError::invalid_parameter("Dummy value must be set to \"\"")),
        other => Err(typed::wrong_argument(1, "dummy", other, Type::String)),
    }
}

fn require_private_keys(wallet: &WalletInfo) -> Result<(), RpcError> {
    if wallet.signs() {
        return Ok(());
    }
    Err(RpcError::wallet("Error: Private keys are disabled for this wallet"))
}

/// The signed payment; `None` if an input could not be signed.
pub fn sign(call: &Call<'_>, funded: &Funded) -> Result<Option<Transaction>, RpcError> {
    let mut known = SolvingSet::default();
    let owned: HashSet<&ScriptBuf> = funded.spent.iter().map(|output| &output.script_pubkey).collect();
    for (script, info) in owned.iter().filter_map(|script| Some((script, funded.scripts.get(*script)?))) {
        known.add(script, info.solving.clone());
    }
    let spent: Vec<Option<TxOut>> = funded.spent.iter().cloned().map(Some).collect();
    let keys = WalletKeys::new(&*call.host.signer, call.scope, owned.into_iter().cloned().collect());
    let mut transaction = funded.transaction.clone();
    let errors = sign_transaction(&mut transaction, &spent, &known, &keys, Sighash::DEFAULT, &|| true)
        .map_err(ServiceError::from)?;
    Ok(errors.iter().all(Option::is_none).then_some(transaction))
}

/// Sends the payment. Returns its id, and the reason if the mempool refused it.
///
/// The wallet keeps a payment that the node refused or did not answer, and submits it again later. So the call succeeds,
/// as in bitcoind: after an error, the sender might pay a second time.
pub fn submit(
    call: &Call<'_>,
    signed: &Transaction,
    metadata: Vec<(String, String)>,
    replaced: Option<Txid>,
) -> Result<(Txid, Option<String>), RpcError> {
    let (raw, pay) = (Blob(consensus::serialize(signed)), &call.host.pay);
    let admission = match replaced {
        None => pay.send(call.scope, raw, metadata)?,
        Some(replaced) => pay.replace(call.scope, replaced, raw, metadata)?,
    };
    Ok((signed.compute_txid(), admission.and_then(|admission| admission.refusal())))
}
