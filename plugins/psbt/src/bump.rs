//! `psbtbumpfee`: the PSBT of a replacement with a higher fee.

use bitcoin::Txid;
use bitcoin::hashes::Hash;
use bitcoin::secp256k1::rand::thread_rng;
use outrigger_sdk::params::hash;
use outrigger_sdk::psbt::Psbt;
use outrigger_sdk::sign::Sighash;
use outrigger_sdk::spend::{replace, replacement};
use outrigger_sdk::{RpcError, amount};
use serde_json::{Value, json};

use crate::Context;
use crate::sign::SignOptions;
use crate::wallet::fill;

pub fn psbt_bump_fee(context: &Context<'_>) -> Result<Value, RpcError> {
    let wallet = context.wallet()?;
    let txid = Txid::from_byte_array(hash(context.params.get(0), "txid")?);
    let mut replacement = replacement(context.params.given(1), context.network()?)?;
    wallet.check_unlocked()?;
    replacement.control.include_watching = !wallet.private_keys_enabled;
    let settings = context.host.wallet.spend_settings(context.scope)?;
    let replaced = replace(context.services(), &settings, txid, replacement, &mut thread_rng())?;
    let mut psbt = Psbt::new(replaced.funded.transaction.clone());
    fill(context, &mut psbt, false, SignOptions { sighash: Sighash::DEFAULT, bip32_derivs: true, finalize: true })?;
    Ok(json!({
        "psbt": psbt.to_base64(),
        "origfee": amount::to_json(replaced.old_fee),
        "fee": amount::to_json(replaced.funded.fee),
        "errors": [],
    }))
}
