//! `bumpfee`: replaces an unconfirmed payment with a payment that has a higher fee.

use bitcoin::Txid;
use bitcoin::hashes::Hash;
use bitcoin::secp256k1::rand::thread_rng;
use outrigger_sdk::params::hash;
use outrigger_sdk::spend::{replace, replacement};
use outrigger_sdk::{CallContext, RpcError, amount};
use serde_json::{Value, json};

use crate::send::{sign, submit};

pub fn bump_fee(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    let wallet = context.wallet()?;
    if !wallet.private_keys_enabled {
        return Err(RpcError::wallet(
            "bumpfee is not available with wallets that have private keys disabled. Use psbtbumpfee instead.",
        ));
    }
    let txid = Txid::from_byte_array(hash(context.params.get(0), "txid")?);
    let services = context.services();
    let settings = context.host.wallet.spend_settings(context.scope)?;
    let mut request = replacement(context.params.given(1), context.network()?)?;
    wallet.check_unlocked()?;
    request.own_inputs_only = true;
    request.control.signable_only = true;
    context.host.pay.begin_payment(context.scope)?;
    let replaced = replace(services, &settings, txid, request, &mut thread_rng())?;
    let (fee, old_fee) = (replaced.funded.fee, replaced.old_fee);
    let sent = sign(context, &replaced.funded)
        .and_then(|signed| signed.ok_or_else(|| RpcError::wallet("Can't sign transaction.")))
        .and_then(|signed| submit(context, &signed, replaced.metadata, Some(txid)));
    let (new, refusal) = sent.inspect_err(|_| replaced.funded.give_back(services))?;
    let errors: Vec<String> = refusal.into_iter().collect();
    Ok(json!({"txid": new, "origfee": amount::to_json(old_fee), "fee": amount::to_json(fee), "errors": errors}))
}
