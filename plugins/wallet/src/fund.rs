//! `fundrawtransaction`.

use outrigger_kit::spend::options::fee_payers;
use outrigger_kit::spend::{CoinControl, fund_transaction};
use outrigger_sdk::params::{Type, decode_hex, encode_hex};
use outrigger_sdk::standard::decode::transaction_as;
use outrigger_sdk::standard::transaction_to_bytes;
use outrigger_sdk::{Call, RpcError, amount, methods, typed};
use serde_json::{Value, json};

use crate::WalletPlugin;

#[methods(category = "Wallet", long_running)]
impl WalletPlugin {
    /// Adds inputs of the wallet to a transaction until they pay for its outputs and the fee. Adds change unless it
    /// would be too small. Nothing is signed, stored or sent. The existing inputs must belong to the wallet, or be
    /// unspent in the chain or the mempool.
    ///
    /// * `hexstring` - The transaction in hexadecimal.
    /// * `options` - Options, which a call by name can also give as arguments of their own; true alone is
    ///   {"includeWatching": true}:
    ///   * `add_inputs` (boolean; default: true) - Whether to add coins if the inputs do not suffice.
    ///   * `include_unsafe` (boolean; default: false) - Whether to add unconfirmed coins from other senders.
    ///   * `minconf` (numeric; default: 0) - The minimum number of confirmations of added coins.
    ///   * `maxconf` (numeric; default: 9999999) - The maximum number of confirmations of added coins.
    ///   * `changeAddress` (string; default: a new address) - The change address.
    ///   * `changePosition` (numeric; default: random) - The position of the change among the outputs.
    ///   * `change_type` (string; default: a type that suits the recipients) - The type of a new change address:
    ///     legacy, p2sh-segwit, bech32 or bech32m.
    ///   * `includeWatching` (boolean; default: true for wallets without private keys) - Whether to add watch-only
    ///     coins.
    ///   * `lockUnspents` (boolean; default: false) - Whether to lock the spent coins.
    ///   * `fee_rate` (amount; default: the estimate, or the fallback) - The feerate in satoshi per virtual byte,
    ///     with at most three decimals.
    ///   * `feeRate` (amount; default: as fee_rate) - The feerate in BTC for 1000 virtual bytes.
    ///   * `subtractFeeFromOutputs` (array; default: []) - The positions of the outputs whose recipients pay the fee
    ///     in equal shares, before change is added.
    ///   * `input_weights` (array) - The weights of the signed inputs, as {"txid": "hex", "vout": n, "weight": n}.
    ///   * `max_tx_weight` (numeric; default: 400000) - The maximum weight of the transaction.
    ///   * `conf_target` (numeric; default: 6) - The confirmation target in blocks, from 1 to 1008.
    ///   * `estimate_mode` (string; default: unset) - unset, economical or conservative.
    ///   * `replaceable` (boolean; default: true) - Whether the transaction signals replaceability (BIP 125).
    ///   * `solving_data` (object) - Data for spending inputs of others: {"pubkeys": [...], "scripts": [...],
    ///     "descriptors": [...]}. It serves only to estimate the fee.
    /// * `iswitness` (default: detected) - Whether the transaction is serialized with witnesses (BIP 144).
    ///
    /// # Result
    /// {"hex": "hex", "fee": n, "changepos": n}    (json object) changepos is -1 without change.
    ///
    /// # Example
    /// 0200000000010065cd1d000000001600140000000000000000000000000000000000000000
    #[method]
    fn fundrawtransaction(
        call: &Call<'_>,
        hexstring: String,
        options: Option<&Value>,
        iswitness: Option<bool>,
    ) -> Result<Value, RpcError> {
        // bitcoind, too, reports a missing wallet first.
        call.wallet()?;
        let bytes = decode_hex(&hexstring);
        // A long text is freed before the transaction is built.
        drop(hexstring);
        let transaction = bytes.and_then(|bytes| transaction_as(&bytes, iswitness));
        let transaction = transaction.ok_or_else(|| RpcError::undecodable("TX decode failed"))?;
        let options = match options {
            None => None,
            // Old clients pass only `includeWatching`, which has no effect in a descriptor wallet.
            Some(Value::Bool(_)) if call.rules.boolean_fund_options => None,
            // The manifest cannot declare the type, because releases before 32 also accept a boolean.
            Some(other) if !other.is_object() && !call.rules.boolean_fund_options => {
                return Err(typed::wrong_argument(2, "options", other, Type::Object));
            }
            Some(options) => Some(typed::object(options)?),
        };
        let payers =
            options.and_then(|options| options.get("subtractFeeFromOutputs")).filter(|payers| !payers.is_null());
        let payers = fee_payers(payers, &vec!["dummy"; transaction.output.len()])?;
        let services = outrigger_kit::services(call);
        let settings = call.host.wallet.spend_settings(call.scope)?;
        let funded =
            fund_transaction(services, &settings, &transaction, &payers, options, true, CoinControl::default())?;
        Ok(json!({
            "hex": encode_hex(&transaction_to_bytes(&funded.transaction)),
            "fee": amount::to_json(funded.fee),
            "changepos": funded.change_position.map_or(json!(-1), |position| json!(position)),
        }))
    }
}
