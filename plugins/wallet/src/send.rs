//! `sendtoaddress` and `sendmany`.

use std::collections::HashSet;

use bitcoin::secp256k1::rand::seq::SliceRandom;
use bitcoin::secp256k1::rand::thread_rng;
use bitcoin::{ScriptBuf, Transaction, TxOut, Txid, consensus};
use outrigger_sdk::params::{flag, text};
use outrigger_sdk::service::wallet::{MAX_TEXT_LEN, WalletInfo};
use outrigger_sdk::sign::{Sighash, SolvingSet, WalletKeys, sign_transaction};
use outrigger_sdk::spend::options::fee_choice;
use outrigger_sdk::spend::{CoinControl, Funded, Recipient, fund};
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{CallContext, RpcError, RpcErrorCode, amount};
use serde_json::{Value, json};

use crate::arguments::{avoid_reuse, listed_address};
use crate::recipients;

/// The checked arguments of a call.
struct Request {
    recipients: Vec<Recipient>,
    control: CoinControl,
    verbose: bool,
    /// Texts to store with the payment, by key.
    metadata: Vec<(String, String)>,
}

pub fn send_to_address(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    send(context, Request::to_address)
}

pub fn send_many(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    send(context, Request::to_many)
}

fn send(
    context: &CallContext<'_>,
    read: fn(&CallContext<'_>, &WalletInfo) -> Result<Request, RpcError>,
) -> Result<Value, RpcError> {
    let request = read(context, &context.wallet()?)?;
    context.host.pay.begin_payment(context.scope)?;
    let services = context.services();
    let settings = context.host.wallet.spend_settings(context.scope)?;
    let funded = fund(services, &settings, &request.recipients, &request.control, &mut thread_rng())
        .map_err(|error| error.with_code(RpcErrorCode::WALLET_INSUFFICIENT_FUNDS))?;
    let fee_reason = funded.fee_reason;
    let refusal = || RpcError::new(RpcErrorCode::WALLET_INSUFFICIENT_FUNDS, "Signing transaction failed");
    let paid = sign(context, &funded)
        .and_then(|signed| signed.ok_or_else(refusal))
        .and_then(|signed| submit(context, &signed, request.metadata, None));
    let (txid, _) = paid.inspect_err(|_| funded.give_back(services))?;
    Ok(if request.verbose { json!({"txid": txid, "fee_reason": fee_reason}) } else { json!(txid) })
}

/// The arguments at these positions with the keys that the wallet stores them under. Empty texts are omitted.
fn metadata(context: &CallContext<'_>, texts: &[(usize, &'static str)]) -> Result<Vec<(String, String)>, RpcError> {
    let mut metadata = Vec::new();
    for (index, key) in texts {
        let text = context.params.given(*index).map(text).transpose()?.unwrap_or_default();
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

impl Request {
    /// Reads the arguments of `sendtoaddress` in Bitcoin Core 29's order of checks.
    fn to_address(context: &CallContext<'_>, wallet: &WalletInfo) -> Result<Self, RpcError> {
        let params = &context.params;
        let metadata = metadata(context, &[(2, "comment"), (3, "to")])?;
        let replaceable = params.given(5).map(flag).transpose()?;
        let avoid_reuse = avoid_reuse(params.given(8), wallet)?;
        let fee = fee_choice(params.given(6), params.given(7), params.given(9), false)?;
        wallet.check_unlocked()?;
        let script = listed_address(params.text(0)?, context.network()?)?;
        let amount = amount::from_json(params.get(1))?;
        let subtract_fee = params.flag_or(4, false)?;
        let verbose = params.flag_or(10, false)?;
        require_private_keys(wallet)?;
        let recipients = vec![Recipient { script, amount, subtract_fee }];
        let control = CoinControl {
            avoid_reuse,
            avoid_partial_spends: avoid_reuse,
            replaceable,
            fee,
            signable_only: true,
            ..CoinControl::default()
        };
        Ok(Self { recipients, control, verbose, metadata })
    }

    /// Reads the arguments of `sendmany` in Bitcoin Core 29's order of checks: the recipients come before the wallet. As
    /// in bitcoind, sendmany spends coins of reused addresses even if the wallet avoids reuse.
    fn to_many(context: &CallContext<'_>, wallet: &WalletInfo) -> Result<Self, RpcError> {
        let params = &context.params;
        recipients::check_dummy(params.given(0))?;
        let metadata = metadata(context, &[(3, "comment")])?;
        let replaceable = params.given(5).map(flag).transpose()?;
        let fee = fee_choice(params.given(6), params.given(7), params.given(8), false)?;
        let mut recipients = recipients::read(params.get(1), params.given(4), context.network()?)?;
        let verbose = params.flag_or(9, false)?;
        wallet.check_unlocked()?;
        require_private_keys(wallet)?;
        // Shuffled recipients keep the order of the request private. It would show in the outputs, and in the recipient
        // that pays the odd satoshi of a shared fee.
        recipients.shuffle(&mut thread_rng());
        let control = CoinControl { replaceable, fee, signable_only: true, ..CoinControl::default() };
        Ok(Self { recipients, control, verbose, metadata })
    }
}

fn require_private_keys(wallet: &WalletInfo) -> Result<(), RpcError> {
    if wallet.private_keys_enabled {
        return Ok(());
    }
    Err(RpcError::wallet("Error: Private keys are disabled for this wallet"))
}

/// The signed payment; `None` if an input could not be signed.
pub fn sign(context: &CallContext<'_>, funded: &Funded) -> Result<Option<Transaction>, RpcError> {
    let mut known = SolvingSet::default();
    let owned: HashSet<&ScriptBuf> = funded.spent.iter().map(|output| &output.script_pubkey).collect();
    for (script, info) in owned.iter().filter_map(|script| Some((script, funded.scripts.get(*script)?))) {
        known.add(script, info.solving.clone());
    }
    let spent: Vec<Option<TxOut>> = funded.spent.iter().cloned().map(Some).collect();
    let keys = WalletKeys::new(&*context.host.signer, context.scope, owned.into_iter().cloned().collect());
    let mut transaction = funded.transaction.clone();
    let errors = sign_transaction(&mut transaction, &spent, &known, &keys, Sighash::DEFAULT)?;
    Ok(errors.iter().all(Option::is_none).then_some(transaction))
}

/// Sends the payment. Returns its id, and the reason if the mempool refused it.
///
/// The wallet keeps a payment that the node refused or did not answer for, and offers it again later. As in bitcoind, the
/// call succeeds then, because the sender would pay twice after an error.
pub fn submit(
    context: &CallContext<'_>,
    signed: &Transaction,
    metadata: Vec<(String, String)>,
    replaced: Option<Txid>,
) -> Result<(Txid, Option<String>), RpcError> {
    let (raw, pay) = (Blob(consensus::serialize(signed)), &context.host.pay);
    let admission = match replaced {
        None => pay.send(context.scope, raw, metadata)?,
        Some(replaced) => pay.replace(context.scope, replaced, raw, metadata)?,
    };
    Ok((signed.compute_txid(), admission.and_then(|admission| admission.refusal())))
}
