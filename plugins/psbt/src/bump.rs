//! `psbtbumpfee`: the PSBT of a replacement with a higher fee.

use bitcoin::Txid;
use bitcoin::hashes::Hash;
use bitcoin::secp256k1::rand::thread_rng;
use outrigger_sdk::params::{Type, hash};
use outrigger_sdk::psbt::Psbt;
use outrigger_sdk::spend::{replace, replacement};
use outrigger_sdk::{RpcError, amount, typed};
use serde_json::{Value, json};

use crate::sign::SignOptions;
use crate::wallet::fill;
use crate::{Context, psbt_version};

/// Removes the option `psbt_version`, because bumpfee shares the parser of the other options. Below release 32 the parser refuses
/// it.
fn take_version(context: &Context<'_>, options: Option<&mut Value>) -> Result<Option<Value>, RpcError> {
    const OPTION: &str = "psbt_version";
    let Some(Value::Object(options)) = options.filter(|_| !context.rules.lacks("psbtbumpfee", OPTION)) else {
        return Ok(None);
    };
    let taken = options.remove(OPTION);
    if let Some(version) = &taken {
        let version = json!({OPTION: version});
        typed::check_options(typed::object(&version)?, &[(OPTION, Some(Type::Number))])?;
    }
    Ok(taken)
}

pub fn psbt_bump_fee(context: &Context<'_>) -> Result<Value, RpcError> {
    let wallet = context.wallet()?;
    let txid = Txid::from_byte_array(hash(context.params.get(0), "txid")?);
    let mut options = context.params.given(1).cloned();
    let version = take_version(context, options.as_mut())?;
    let mut replacement = replacement(options.as_ref(), context.network()?)?;
    let version = psbt_version::<u32>(context, version.as_ref())?;
    wallet.check_unlocked()?;
    replacement.control.include_watching = !wallet.private_keys_enabled;
    let settings = context.host.wallet.spend_settings(context.scope)?;
    let replaced = replace(context.services(), &settings, txid, replacement, &mut thread_rng())?;
    let mut psbt = Psbt::of_version(replaced.funded.transaction.clone(), version);
    fill(context, &wallet, &mut psbt, false, SignOptions { sighash: None, bip32_derivs: true, finalize: true })?;
    Ok(json!({
        "psbt": psbt.to_base64(),
        "origfee": amount::to_json(replaced.old_fee),
        "fee": amount::to_json(replaced.funded.fee),
        "errors": [],
    }))
}
