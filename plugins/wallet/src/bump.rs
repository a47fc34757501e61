//! `bumpfee`: replaces an unconfirmed payment by one with a higher fee.

use bitcoin::Txid;
use bitcoin::hashes::Hash;
use bitcoin::secp256k1::rand::thread_rng;
use outrigger_sdk::amount;
use outrigger_sdk::params::hash;
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::spend::{replace, replacement};
use serde_json::{Value, json};

use crate::CallContext;
use crate::error::WalletError;
use crate::send::{sign, submit};

/// `bumpfee`.
pub fn bump_fee(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let wallet = context.wallet()?;
    if !wallet.private_keys_enabled {
        return Err(WalletError::BumpWithoutKeys);
    }
    let txid = Txid::from_byte_array(hash(context.params.get(0), "txid")?);
    let services = context.services();
    let settings = context.host.wallet.spend_settings(context.scope)?;
    let mut asked = replacement(context.params.given(1), context.network()?)?;
    if wallet.locked {
        return Err(ErrorKind::WalletLocked.into());
    }
    asked.own_inputs_only = true;
    asked.control.signable_only = true;
    context.host.wallet.begin_payment(context.scope)?;
    let replaced = replace(services, &settings, txid, asked, &mut thread_rng())?;
    let (fee, old_fee) = (replaced.funded.fee, replaced.old_fee);
    let sent = sign(context, &replaced.funded)
        .map_err(|error| if error == WalletError::SigningFailed { WalletError::CannotSign } else { error })
        .and_then(|signed| submit(context, &signed, replaced.metadata, Some(txid)));
    let (new, refusal) = sent.inspect_err(|_| replaced.funded.give_back(services))?;
    let errors: Vec<String> = refusal.into_iter().collect();
    Ok(json!({"txid": new, "origfee": amount::to_json(old_fee), "fee": amount::to_json(fee), "errors": errors}))
}
