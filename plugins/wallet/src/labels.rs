//! `listlabels` and `getaddressesbylabel`: the address book.

use std::collections::BTreeMap;

use outrigger_sdk::methods::Json;
use outrigger_sdk::service::wallet::LabelledScript;
use outrigger_sdk::standard::address;
use outrigger_sdk::{Call, RpcError, RpcErrorCode, methods};

use crate::{WalletPlugin, arguments};

#[methods(category = "Wallet", needs_tip = false)]
impl WalletPlugin {
    /// Lists the labels of the address book.
    ///
    /// * `purpose` (default: all purposes) - receive: labels of the wallet's own addresses; send: labels of other
    ///   addresses.
    ///
    /// # Result
    /// ["...", ...]    (json array) Sorted.
    #[method]
    fn listlabels(call: &Call<'_>, purpose: Option<&str>) -> Result<Vec<String>, RpcError> {
        call.wallet()?;
        let sending = match purpose.unwrap_or_default() {
            "" => None,
            "receive" => Some(false),
            "send" => Some(true),
            // Only old releases of bitcoind gave this purpose to addresses.
            "refund" => return Ok(Vec::new()),
            _ => {
                return Err(RpcError::invalid_parameter(
                    "Invalid 'purpose' argument, must be a known purpose string, typically 'send', or 'receive'.",
                ));
            }
        };
        Ok(call.host.wallet.label_names(call.scope, sending)?)
    }

    /// Lists the addresses with a label.
    ///
    /// * `label` - The label.
    ///
    /// # Result
    /// {"address": {"purpose": "receive" or "send"}, ...}    (json object) By address. The purpose is receive for an
    /// address of the wallet, send for any other address.
    #[method]
    fn getaddressesbylabel(call: &Call<'_>, label: &str) -> Result<Json, RpcError> {
        call.wallet()?;
        let label = arguments::label(label)?;
        let network = call.network()?;
        let mut addresses = BTreeMap::new();
        for LabelledScript { script, sending, .. } in call.host.wallet.labelled(call.scope, label.clone())? {
            let text = address::from_script(&script, network);
            let text = text.ok_or_else(|| RpcError::internal("a script without an address has a label"))?;
            addresses.insert(text, if sending { "send" } else { "receive" });
        }
        if addresses.is_empty() {
            let message = format!("No addresses with label {label}");
            return Err(RpcError::new(RpcErrorCode::WALLET_INVALID_LABEL, message));
        }
        // The answer may be long, so it is written directly as text. Neither addresses nor purposes need JSON escapes.
        let entries: Vec<String> =
            addresses.into_iter().map(|(text, purpose)| format!("\"{text}\":{{\"purpose\":\"{purpose}\"}}")).collect();
        Ok(Json(format!("{{{}}}", entries.join(",")).into_bytes()))
    }
}
