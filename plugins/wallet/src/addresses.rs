//! New addresses, and the labels of addresses.

use bitcoin::ScriptBuf;
use outrigger_sdk::service::wallet::WalletInfo;
use outrigger_sdk::standard::address;
use outrigger_sdk::{Call, RpcError, methods};

use crate::{WalletPlugin, arguments};

/// Fails unless the wallet can derive a change address (`internal`) or a receiving address of some type.
fn require_keys(wallet: &WalletInfo, internal: bool) -> Result<(), RpcError> {
    if wallet.sources.iter().any(|source| source.internal == internal && source.available) {
        return Ok(());
    }
    Err(RpcError::wallet("Error: This wallet has no available keys"))
}

fn address_text(call: &Call<'_>, script: &ScriptBuf) -> Result<String, RpcError> {
    let text = address::from_script(script, call.network()?);
    text.ok_or_else(|| RpcError::internal("the wallet derived a script that has no address"))
}

#[methods(category = "Wallet", needs_tip = false)]
impl WalletPlugin {
    /// Gives a new address for receiving.
    ///
    /// * `label` (default: "") - The label of the address in the address book.
    /// * `address_type` (default: bech32) - legacy, p2sh-segwit, bech32 or bech32m.
    ///
    /// # Result
    /// "..."    (string) The address.
    ///
    /// # Example
    /// "invoice 17" bech32m
    #[method(private_keys)]
    fn getnewaddress(call: &Call<'_>, label: Option<&str>, address_type: Option<&str>) -> Result<String, RpcError> {
        let wallet = call.wallet()?;
        require_keys(&wallet, false)?;
        let label = arguments::label(label.unwrap_or_default())?;
        let settings = call.host.wallet.spend_settings(call.scope)?;
        let kind = address_type.map_or(Ok(settings.address_type), arguments::address_type)?;
        let script = call.host.book.new_address(call.scope, kind, false, Some(label))?;
        address_text(call, &script)
    }

    /// Gives a new change address, for use with raw transactions.
    ///
    /// * `address_type` (default: bech32) - legacy, p2sh-segwit, bech32 or bech32m.
    ///
    /// # Result
    /// "..."    (string) The address.
    #[method(private_keys)]
    fn getrawchangeaddress(call: &Call<'_>, address_type: Option<&str>) -> Result<String, RpcError> {
        let wallet = call.wallet()?;
        require_keys(&wallet, true)?;
        let settings = call.host.wallet.spend_settings(call.scope)?;
        let default = settings.change_type.unwrap_or(settings.address_type);
        let kind = address_type.map_or(Ok(default), arguments::address_type)?;
        let script = call.host.book.new_address(call.scope, kind, true, None)?;
        address_text(call, &script)
    }

    /// Sets the label of an address.
    ///
    /// * `address` - The address.
    /// * `label` - The label.
    #[method]
    fn setlabel(call: &Call<'_>, address: &str, label: &str) -> Result<(), RpcError> {
        call.wallet()?;
        let script = arguments::single_address(address, call.network()?)?;
        let label = arguments::label(label)?;
        Ok(call.host.book.set_label(call.scope, script, label)?)
    }
}
