//! `sendtoaddress` and `sendmany`.

use std::collections::HashSet;

use bitcoin::secp256k1::rand::seq::SliceRandom;
use bitcoin::secp256k1::rand::thread_rng;
use bitcoin::{ScriptBuf, Transaction, TxOut, Txid, consensus};
use outrigger_sdk::amount;
use outrigger_sdk::params::{flag, text};
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::service::wallet::{MAX_TEXT_LEN, WalletInfo};
use outrigger_sdk::sign::{Sighash, SolvingSet, WalletKeys, sign_transaction};
use outrigger_sdk::spend::options::fee_choice;
use outrigger_sdk::spend::{CoinControl, Funded, Recipient, fund};
use outrigger_sdk::standard::address;
use outrigger_sdk::wire::Blob;
use serde_json::{Value, json};

use crate::arguments::avoid_reuse;
use crate::error::WalletError;
use crate::{CallContext, recipients};

/// A checked request.
struct Request {
    recipients: Vec<Recipient>,
    control: CoinControl,
    verbose: bool,
    /// The keys and texts to store with the payment.
    metadata: Vec<(String, String)>,
}

/// `sendtoaddress`: pays one recipient.
pub fn send_to_address(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    send(context, Request::to_address)
}

/// `sendmany`: pays several recipients in one transaction.
pub fn send_many(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    send(context, Request::to_many)
}

/// Makes a payment, signs it, sends it.
fn send(
    context: &CallContext<'_>,
    read: fn(&CallContext<'_>, &WalletInfo) -> Result<Request, WalletError>,
) -> Result<Value, WalletError> {
    let request = read(context, &context.wallet()?)?;
    context.host.wallet.begin_payment(context.scope)?;
    let services = context.services();
    let settings = context.host.wallet.spend_settings(context.scope)?;
    let funded = fund(services, &settings, &request.recipients, &request.control, &mut thread_rng())?;
    let fee_reason = funded.fee_reason;
    let paid = sign(context, &funded).and_then(|signed| submit(context, &signed, request.metadata, None));
    let (txid, _) = paid.inspect_err(|_| funded.give_back(services))?;
    Ok(if request.verbose { json!({"txid": txid, "fee_reason": fee_reason}) } else { json!(txid) })
}

/// The texts at these positions that are not empty, under the keys that they are stored with.
fn metadata(context: &CallContext<'_>, texts: &[(usize, &'static str)]) -> Result<Vec<(String, String)>, WalletError> {
    let mut metadata = Vec::new();
    for (index, key) in texts {
        let text = context.params.given(*index).map(text).transpose()?.unwrap_or_default();
        if text.len() > MAX_TEXT_LEN {
            return Err(WalletError::TextTooLong(key, text.len()));
        }
        if !text.is_empty() {
            metadata.push(((*key).to_owned(), text.to_owned()));
        }
    }
    Ok(metadata)
}

impl Request {
    /// Reads the arguments of `sendtoaddress` in Bitcoin Core 29's order of checks.
    fn to_address(context: &CallContext<'_>, wallet: &WalletInfo) -> Result<Self, WalletError> {
        let params = &context.params;
        let metadata = metadata(context, &[(2, "comment"), (3, "to")])?;
        let replaceable = params.given(5).map(flag).transpose()?;
        let avoid_reuse = avoid_reuse(params.given(8), wallet)?;
        let fee = fee_choice(params.given(6), params.given(7), params.given(9), false)?;
        if wallet.locked {
            return Err(ErrorKind::WalletLocked.into());
        }
        let text = params.text(0)?;
        let script =
            address::to_script(text, context.network()?).map_err(|_| WalletError::AddressAmong(text.to_owned()))?;
        let amount = amount::from_json(params.get(1))?;
        let subtract_fee = params.flag_or(4, false)?;
        let verbose = params.flag_or(10, false)?;
        if !wallet.private_keys_enabled {
            return Err(WalletError::PrivateKeysDisabled);
        }
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

    /// Reads the arguments of `sendmany`, whose recipients are looked at before the wallet is. It spends coins of used
    /// addresses also from a wallet that avoids reuse, as bitcoind's does.
    fn to_many(context: &CallContext<'_>, wallet: &WalletInfo) -> Result<Self, WalletError> {
        let params = &context.params;
        recipients::check_dummy(params.given(0))?;
        let metadata = metadata(context, &[(3, "comment")])?;
        let replaceable = params.given(5).map(flag).transpose()?;
        let fee = fee_choice(params.given(6), params.given(7), params.given(8), false)?;
        let mut recipients = recipients::read(params.get(1), params.given(4), context.network()?)?;
        let verbose = params.flag_or(9, false)?;
        if wallet.locked {
            return Err(ErrorKind::WalletLocked.into());
        }
        if !wallet.private_keys_enabled {
            return Err(WalletError::PrivateKeysDisabled);
        }
        // The order of the outputs, and who bears the odd satoshi of a shared fee, tell nothing of the request.
        recipients.shuffle(&mut thread_rng());
        let control = CoinControl { replaceable, fee, signable_only: true, ..CoinControl::default() };
        Ok(Self { recipients, control, verbose, metadata })
    }
}

/// The payment, signed.
pub fn sign(context: &CallContext<'_>, funded: &Funded) -> Result<Transaction, WalletError> {
    let mut known = SolvingSet::default();
    let owned: HashSet<&ScriptBuf> = funded.spent.iter().map(|output| &output.script_pubkey).collect();
    for (script, info) in owned.iter().filter_map(|script| Some((script, funded.scripts.get(*script)?))) {
        known.add(script, info.solving.clone());
    }
    let spent: Vec<Option<TxOut>> = funded.spent.iter().cloned().map(Some).collect();
    let keys = WalletKeys::new(&*context.host.signer, context.scope, owned.into_iter().cloned().collect());
    let mut transaction = funded.transaction.clone();
    let errors = sign_transaction(&mut transaction, &spent, &known, &keys, Sighash::DEFAULT)?;
    if errors.iter().any(Option::is_some) { Err(WalletError::SigningFailed) } else { Ok(transaction) }
}

/// Sends the payment. One of which the node did not say whether it took it, or that the mempool refuses, is kept by the wallet and
/// offered again: to its sender it is made, as bitcoind says, since an error would have it paid twice. Gives why it was refused, too.
pub fn submit(
    context: &CallContext<'_>,
    signed: &Transaction,
    metadata: Vec<(String, String)>,
    replaced: Option<Txid>,
) -> Result<(Txid, Option<String>), WalletError> {
    let (raw, wallet) = (Blob(consensus::serialize(signed)), &context.host.wallet);
    let admission = match replaced {
        None => wallet.send(context.scope, raw, metadata)?,
        Some(replaced) => wallet.replace(context.scope, replaced, raw, metadata)?,
    };
    Ok((signed.compute_txid(), admission.and_then(|admission| admission.refusal())))
}
