//! `walletcreatefundedpsbt`.

use outrigger_kit::psbt::Psbt;
use outrigger_kit::spend::funding_options::take_input_weights;
use outrigger_kit::spend::options::fee_payers;
use outrigger_kit::spend::{CoinControl, fund_transaction};
use outrigger_kit::{given, services};
use outrigger_sdk::params::Type;
use outrigger_sdk::standard::{output_names, transaction_from_params};
use outrigger_sdk::{Call, RpcError, amount, methods, typed};
use serde_json::{Map, Value, json};

use crate::PsbtPlugin;
use crate::sign::SignOptions;
use crate::wallet::fill;

#[methods(category = "Wallet", long_running)]
impl PsbtPlugin {
    /// Makes a PSBT of inputs and outputs. The wallet adds inputs to pay for the outputs and the fee, and a change
    /// output if it is not dust. The call signs, stores and sends nothing.
    ///
    /// * `inputs` - The preset inputs: objects with txid, vout and optionally sequence and weight. null and [] mean
    ///   none.
    /// * `outputs` - The outputs: an object, or an array of objects with one key each. A key is an address with an
    ///   amount in BTC, or "data" with hexadecimal for an OP_RETURN output.
    /// * `locktime` (default: 0) - The locktime. A locktime other than 0 also sets the sequences so that it applies.
    /// * `options` (default: {}) - The options. A call with named arguments can also pass each option as an argument:
    ///   * `add_inputs` (boolean; default: false where inputs are given) - Whether to add coins if the inputs do not
    ///     suffice.
    ///   * `include_unsafe` (boolean; default: false) - Whether to add unconfirmed coins from other payers.
    ///   * `minconf` (numeric; default: 0) - The least number of confirmations of added coins.
    ///   * `maxconf` (numeric; default: 9999999) - The greatest number of confirmations of added coins.
    ///   * `changeAddress` (string; default: a fresh one) - The address of the change.
    ///   * `changePosition` (numeric; default: random) - The position of the change output.
    ///   * `change_type` (string; default: one that suits the recipients) - The type of a new change address: legacy,
    ///     p2sh-segwit, bech32 or bech32m.
    ///   * `includeWatching` (boolean; default: true for wallets without private keys) - Whether to add watch-only
    ///     coins.
    ///   * `lockUnspents` (boolean; default: false) - Whether to lock the spent coins.
    ///   * `fee_rate` (amount; default: the estimate, or the fallback) - The feerate in satoshi per virtual byte,
    ///     with at most three decimals.
    ///   * `feeRate` (amount; default: as fee_rate) - The feerate in BTC for 1000 virtual bytes.
    ///   * `subtractFeeFromOutputs` (array; default: []) - The positions of the outputs that pay the fee in equal
    ///     shares. The change output does not count.
    ///   * `max_tx_weight` (numeric; default: 400000) - The greatest weight of the transaction.
    ///   * `conf_target` (numeric; default: 6) - The confirmation target in blocks, from 1 to 1008.
    ///   * `estimate_mode` (string; default: unset) - unset, economical or conservative.
    ///   * `replaceable` (boolean; default: true) - Whether the transaction signals replaceability (BIP 125).
    ///   * `solving_data` (object) - Solving data of inputs outside the wallet: {"pubkeys": [...], "scripts": [...],
    ///     "descriptors": [...]}. The call uses it only to estimate the fee.
    /// * `bip32derivs` - Whether to add the origins of public keys, as far as they are known.
    /// * `version` (default: 2) - The version of the transaction, from 1 to 3. Bitcoin Core has this argument since
    ///   release 30.
    /// * `psbt_version` (default: 2) - The version of the PSBT, 2 (BIP 370) or 0. Bitcoin Core has this argument
    ///   since release 32; before, PSBTs are of version 0.
    ///
    /// # Result
    /// {"psbt": "str", "fee": n, "changepos": n}    (json object) changepos is -1 without a change output.
    ///
    /// # Example
    /// '[]' '[{"data":"00010203"}]'
    #[method]
    fn walletcreatefundedpsbt(
        call: &Call<'_>,
        inputs: &Value,
        #[arg(kind = "outputs")] outputs: &Value,
        #[arg(kind = "numeric")] locktime: Option<&Value>,
        options: Option<&mut Map<String, Value>>,
        #[arg(default = true)] bip32derivs: bool,
        #[arg(kind = "numeric")] version: Option<&Value>,
        #[arg(kind = "numeric")] psbt_version: Option<&Value>,
    ) -> Result<Value, RpcError> {
        // The manifest accepts any type, because this required array may be null.
        if !inputs.is_null() && !inputs.is_array() {
            return Err(typed::wrong_argument(1, "inputs", inputs, Type::Array));
        }
        let wallet = call.wallet()?;
        let mut options = options.map(std::mem::take).unwrap_or_default();
        let settings = &call.host.wallet.spend_settings(call.scope)?;
        let replaceable = given(&options, "replaceable").map_or(Ok(settings.replaceable), typed::flag)?;
        let preset = Some(inputs).filter(|inputs| !inputs.is_null());
        let network = call.network()?;
        let transaction = transaction_from_params(preset, outputs, locktime, Some(replaceable), version, network)?;
        let payers = fee_payers(given(&options, "subtractFeeFromOutputs"), &output_names(outputs))?;
        let control = CoinControl { add_inputs: transaction.input.is_empty(), ..CoinControl::default() };
        take_input_weights(inputs, &mut options)?;
        let version_two = crate::is_version_two::<i32>(call, psbt_version);
        if version_two.is_err() {
            // bitcoind reports a failure to fund the transaction first. The call fails in any case, so it must not lock coins.
            for name in ["lockUnspents", "lock_unspents"] {
                if let Some(Value::Bool(lock)) = options.get_mut(name) {
                    *lock = false;
                }
            }
        }
        let funded = fund_transaction(services(call), settings, &transaction, &payers, Some(&options), true, control)?;
        let mut psbt = Psbt::of_version(funded.transaction.clone(), version_two?);
        let sign_options = SignOptions { sighash: None, bip32_derivs: bip32derivs, finalize: true };
        fill(call, &wallet, &mut psbt, false, sign_options)?;
        Ok(json!({
            "psbt": psbt.to_base64(),
            "fee": amount::to_json(funded.fee),
            "changepos": funded.change_position.map_or(json!(-1), |position| json!(position)),
        }))
    }
}
