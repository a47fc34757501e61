//! `psbtbumpfee`: the PSBT of a replacement with a higher fee.

use bitcoin::secp256k1::rand::thread_rng;
use outrigger_kit::psbt::Psbt;
use outrigger_kit::services;
use outrigger_kit::spend::{replace, replacement};
use outrigger_sdk::params::{Type, hash_text};
use outrigger_sdk::{Call, RpcError, amount, methods, typed};
use serde_json::{Map, Value, json};

use crate::sign::SignOptions;
use crate::wallet::fill;
use crate::{PsbtPlugin, is_version_two};

/// Removes the option `psbt_version` and checks its type, because the parser of the other options, which bumpfee shares, rejects it.
/// Below release 32 the option stays, so the parser rejects it.
fn take_version(call: &Call<'_>, options: Option<&mut Map<String, Value>>) -> Result<Option<Value>, RpcError> {
    const OPTION: &str = "psbt_version";
    let Some(options) = options.filter(|_| !call.rules.lacks("psbtbumpfee", OPTION)) else {
        return Ok(None);
    };
    let taken = options.remove(OPTION);
    if let Some(version) = &taken {
        let version = json!({OPTION: version});
        typed::check_options(typed::object(&version)?, &[(OPTION, Some(Type::Number))])?;
    }
    Ok(taken)
}

#[methods(category = "Wallet", long_running)]
impl PsbtPlugin {
    /// Makes the PSBT of a replacement of an unconfirmed payment of the wallet, with a higher fee. The change pays
    /// the difference. If the change does not suffice, the call adds confirmed coins.
    ///
    /// * `txid` - The payment.
    /// * `options` - The options. A call with named arguments can also pass each option as an argument:
    ///   * `conf_target` (numeric; default: the host's wallet.txconfirmtarget) - The confirmation target in blocks,
    ///     from 1 to 1008.
    ///   * `fee_rate` (amount; default: the node's estimate, at least 5 satoshi per virtual byte more than before) -
    ///     The feerate in satoshi per virtual byte.
    ///   * `replaceable` (boolean; default: true) - Whether the replacement signals replaceability (BIP 125).
    ///   * `estimate_mode` (string; default: unset) - unset, economical or conservative.
    ///   * `outputs` (array; default: those of the payment) - New outputs, in the form of createrawtransaction.
    ///   * `original_change_index` (numeric; default: the wallet's change output) - The position of the payment's
    ///     change output.
    ///   * `psbt_version` (numeric; default: 2) - The version of the PSBT, 2 (BIP 370) or 0. Bitcoin Core has this
    ///     argument since release 32; before, PSBTs are of version 0.
    ///
    /// # Result
    /// {"psbt": "base64", "origfee": n, "fee": n, "errors": ["...", ...]}    (json object) Fees are in BTC.
    #[method]
    fn psbtbumpfee(call: &Call<'_>, txid: &str, options: Option<&mut Map<String, Value>>) -> Result<Value, RpcError> {
        let wallet = call.wallet()?;
        let txid = hash_text(txid, "txid")?;
        let mut options = options.map(std::mem::take);
        let version = take_version(call, options.as_mut())?;
        let mut replacement = replacement(options.map(Value::Object).as_ref(), call.network()?)?;
        let version_two = is_version_two::<u32>(call, version.as_ref())?;
        wallet.check_unlocked()?;
        replacement.control.include_watching = !wallet.signs();
        let settings = call.host.wallet.spend_settings(call.scope)?;
        let replaced = replace(services(call), &settings, txid, replacement, &mut thread_rng())?;
        let mut psbt = Psbt::of_version(replaced.funded.transaction.clone(), version_two);
        fill(call, &wallet, &mut psbt, false, SignOptions { sighash: None, bip32_derivs: true, finalize: true })?;
        Ok(json!({
            "psbt": psbt.to_base64(),
            "origfee": amount::to_json(replaced.old_fee),
            "fee": amount::to_json(replaced.funded.fee),
            "errors": [],
        }))
    }
}
