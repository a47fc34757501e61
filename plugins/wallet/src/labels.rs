//! `listlabels` and `getaddressesbylabel`: the address book.

use std::collections::BTreeMap;

use outrigger_sdk::params::text;
use outrigger_sdk::service::wallet::LabelledAddress;
use outrigger_sdk::standard::address;
use outrigger_sdk::{CallContext, RpcError, RpcErrorCode};
use serde_json::{Value, json};

use crate::arguments::label;

pub fn list_labels(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    context.wallet()?;
    let sending = match context.params.given(0).map_or(Ok(""), text)? {
        "" => None,
        "receive" => Some(false),
        "send" => Some(true),
        // Only old releases of bitcoind gave this purpose to addresses.
        "refund" => return Ok(json!([])),
        _ => {
            return Err(RpcError::invalid_parameter(
                "Invalid 'purpose' argument, must be a known purpose string, typically 'send', or 'receive'.",
            ));
        }
    };
    Ok(json!(context.host.wallet.label_names(context.scope, sending)?))
}

pub fn get_addresses_by_label(context: &mut CallContext<'_>) -> Result<Vec<u8>, RpcError> {
    context.wallet()?;
    let label = label(Some(context.params.get(0)))?;
    let network = context.network()?;
    let mut addresses = BTreeMap::new();
    for LabelledAddress { script, sending } in context.host.wallet.labelled(context.scope, label.clone())? {
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
    Ok(format!("{{{}}}", entries.join(",")).into_bytes())
}
