//! `psbtbumpfee`: the PSBT of a payment that replaces an unconfirmed one and pays more.

use bitcoin::Txid;
use bitcoin::hashes::Hash;
use bitcoin::secp256k1::rand::thread_rng;
use outrigger_sdk::amount;
use outrigger_sdk::params::hash;
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::sign::Sighash;
use outrigger_sdk::spend::{replace, replacement};
use serde_json::json;

use crate::error::PsbtError;
use crate::wallet::{Filling, fill};
use crate::{Context, Outcome};
use outrigger_sdk::psbt::Psbt;

pub fn psbt_bump_fee(context: &Context<'_>) -> Outcome {
    let wallet = context.wallet()?;
    let txid = Txid::from_byte_array(hash(context.params.get(0), "txid")?);
    let mut asked = replacement(context.params.given(1), context.network()?)?;
    if wallet.locked {
        return Err(PsbtError::Service(ErrorKind::WalletLocked.into()));
    }
    asked.control.include_watching = !wallet.private_keys_enabled;
    let settings = context.host.wallet.spend_settings(context.scope)?;
    let replaced = replace(context.services(), &settings, txid, asked, &mut thread_rng())?;
    let mut psbt = Psbt::new(replaced.funded.transaction.clone());
    fill(context, &mut psbt, Filling { signs: false, sighash: Sighash::DEFAULT, tells_origins: true, finalize: true })?;
    Ok(json!({
        "psbt": psbt.to_base64(),
        "origfee": amount::to_json(replaced.old_fee),
        "fee": amount::to_json(replaced.funded.fee),
        "errors": [],
    }))
}
