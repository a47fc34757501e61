//! `bumpfee`: replaces an unconfirmed payment with a payment that has a higher fee.

use bitcoin::secp256k1::rand::thread_rng;
use outrigger_kit::spend::{replace, replacement};
use outrigger_sdk::params::hash_text;
use outrigger_sdk::{Call, RpcError, amount, methods};
use serde_json::{Value, json};

use crate::WalletPlugin;
use crate::send::{sign, submit};

#[methods(category = "Wallet", long_running, private_keys)]
impl WalletPlugin {
    /// Replaces an unconfirmed payment of the wallet with a payment that has a higher fee. The change pays the
    /// difference. If it does not suffice, confirmed coins are added.
    ///
    /// * `txid` - The payment.
    /// * `options` - Options, which a call by name can also give as arguments of their own:
    ///   * `conf_target` (numeric; default: the host's wallet.txconfirmtarget) - The confirmation target in blocks,
    ///     from 1 to 1008.
    ///   * `fee_rate` (amount; default: the node's estimate, at least 5 satoshi per virtual byte more than before) -
    ///     The feerate in satoshi per virtual byte.
    ///   * `replaceable` (boolean; default: true) - Whether the new payment signals replaceability (BIP 125).
    ///   * `estimate_mode` (string; default: unset) - unset, economical or conservative.
    ///   * `outputs` (array; default: the outputs of the payment) - New outputs, as in createrawtransaction.
    ///   * `original_change_index` (numeric; default: the output that the wallet recorded as change) - The position
    ///     of the change among the outputs of the payment.
    ///
    /// # Result
    /// {"txid": "hex", "origfee": n, "fee": n, "errors": ["...", ...]}    (json object) Fees are in BTC.
    #[method]
    fn bumpfee(
        call: &Call<'_>,
        txid: &str,
        #[arg(kind = "object")] options: Option<&Value>,
    ) -> Result<Value, RpcError> {
        let wallet = call.wallet()?;
        if !wallet.signs() {
            return Err(RpcError::wallet(
                "bumpfee is not available with wallets that have private keys disabled. Use psbtbumpfee instead.",
            ));
        }
        let txid = hash_text(txid, "txid")?;
        let services = outrigger_kit::services(call);
        let settings = call.host.wallet.spend_settings(call.scope)?;
        let mut request = replacement(options, call.network()?)?;
        wallet.check_unlocked()?;
        request.own_inputs_only = true;
        request.control.signable_only = true;
        call.host.pay.begin_payment(call.scope)?;
        let replaced = replace(services, &settings, txid, request, &mut thread_rng())?;
        let (fee, old_fee) = (replaced.funded.fee, replaced.old_fee);
        let sent = sign(call, &replaced.funded)
            .and_then(|signed| signed.ok_or_else(|| RpcError::wallet("Can't sign transaction.")))
            .and_then(|signed| submit(call, &signed, replaced.metadata, Some(txid)));
        let (new, refusal) = sent.inspect_err(|_| replaced.funded.give_back(services))?;
        let errors: Vec<String> = refusal.into_iter().collect();
        Ok(json!({"txid": new, "origfee": amount::to_json(old_fee), "fee": amount::to_json(fee), "errors": errors}))
    }
}
