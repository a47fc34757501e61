//! Fresh addresses, and their labels.

use bitcoin::ScriptBuf;
use outrigger_sdk::RpcError;
use outrigger_sdk::service::wallet::WalletInfo;
use outrigger_sdk::standard::address;
use serde_json::{Value, json};

use crate::CallContext;
use crate::arguments::{address_type, label};
use crate::error::WalletError;

/// `getnewaddress`: a fresh address for receiving, entered in the address book.
pub fn get_new_address(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let wallet = context.wallet()?;
    require_keys(&wallet, false)?;
    let label = label(context.params.given(0))?;
    let settings = context.host.wallet.spend_settings(context.scope)?;
    let kind = address_type(context.params.given(1), settings.address_type)?;
    let script = context.host.wallet.new_address(context.scope, kind, false, Some(label))?;
    address_json(context, &script)
}

/// `getrawchangeaddress`: a fresh address for change.
pub fn get_raw_change_address(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let wallet = context.wallet()?;
    require_keys(&wallet, true)?;
    let settings = context.host.wallet.spend_settings(context.scope)?;
    let default = settings.change_type.unwrap_or(settings.address_type);
    let kind = address_type(context.params.given(0), default)?;
    let script = context.host.wallet.new_address(context.scope, kind, true, None)?;
    address_json(context, &script)
}

/// Refuses where no source of a side, of any type, has an address to give.
fn require_keys(wallet: &WalletInfo, internal: bool) -> Result<(), WalletError> {
    let available = wallet.sources.iter().any(|source| source.internal == internal && source.available);
    if available { Ok(()) } else { Err(WalletError::NoKeys) }
}

fn address_json(context: &CallContext<'_>, script: &ScriptBuf) -> Result<Value, WalletError> {
    let text = address::from_script(script, context.network()?);
    Ok(json!(text.ok_or_else(|| RpcError::internal("the wallet derived a script that has no address"))?))
}

/// `setlabel`: sets the label of an address, ours or not.
pub fn set_label(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    context.wallet()?;
    let text = context.params.text(0)?;
    let script = address::to_script(text, context.network()?).map_err(|_| WalletError::Address)?;
    let label = label(context.params.given(1))?;
    context.host.wallet.set_label(context.scope, script, label)?;
    Ok(Value::Null)
}
