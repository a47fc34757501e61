//! New addresses, and the labels of addresses.

use bitcoin::ScriptBuf;
use outrigger_sdk::service::wallet::WalletInfo;
use outrigger_sdk::standard::address;
use outrigger_sdk::{CallContext, RpcError};
use serde_json::{Value, json};

use crate::arguments::{address_type, label, single_address};

pub fn get_new_address(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    let wallet = context.wallet()?;
    require_keys(&wallet, false)?;
    let label = label(context.params.given(0))?;
    let settings = context.host.wallet.spend_settings(context.scope)?;
    let kind = address_type(context.params.given(1), settings.address_type)?;
    let script = context.host.book.new_address(context.scope, kind, false, Some(label))?;
    address_json(context, &script)
}

pub fn get_raw_change_address(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    let wallet = context.wallet()?;
    require_keys(&wallet, true)?;
    let settings = context.host.wallet.spend_settings(context.scope)?;
    let default = settings.change_type.unwrap_or(settings.address_type);
    let kind = address_type(context.params.given(0), default)?;
    let script = context.host.book.new_address(context.scope, kind, true, None)?;
    address_json(context, &script)
}

/// Requires that a source of any type has an address for change (`internal`) or for receiving.
fn require_keys(wallet: &WalletInfo, internal: bool) -> Result<(), RpcError> {
    if wallet.sources.iter().any(|source| source.internal == internal && source.available) {
        return Ok(());
    }
    Err(RpcError::wallet("Error: This wallet has no available keys"))
}

fn address_json(context: &CallContext<'_>, script: &ScriptBuf) -> Result<Value, RpcError> {
    let text = address::from_script(script, context.network()?);
    Ok(json!(text.ok_or_else(|| RpcError::internal("the wallet derived a script that has no address"))?))
}

pub fn set_label(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    context.wallet()?;
    let script = single_address(context.params.text(0)?, context.network()?)?;
    let label = label(context.params.given(1))?;
    context.host.book.set_label(context.scope, script, label)?;
    Ok(Value::Null)
}
