//! Arguments that several methods of this group take.
//!
//! The host has checked the types of top-level arguments; values inside arrays and objects are checked here, with the
//! messages of Bitcoin Core 29.

use std::collections::HashSet;

use bitcoin::{Network, ScriptBuf};
use outrigger_sdk::params::{Type, text};
use outrigger_sdk::service::wallet::{AddressType, MAX_LABEL_LEN, WalletInfo};
use outrigger_sdk::standard::address;
pub use outrigger_sdk::typed::wrong_type;
use serde_json::Value;

use crate::error::WalletError;

/// An address type.
pub fn address_type(value: Option<&Value>, default: AddressType) -> Result<AddressType, WalletError> {
    let Some(value) = value else { return Ok(default) };
    let name = text(value)?;
    AddressType::named(name).ok_or_else(|| WalletError::UnknownAddressType(name.to_owned()))
}

/// A label, empty by default. `*` is refused, since it stands for all labels. Unlike bitcoind, the length is limited.
pub fn label(value: Option<&Value>) -> Result<String, WalletError> {
    match value.map(text).transpose()? {
        Some("*") => Err(WalletError::InvalidLabel),
        Some(label) if label.len() > MAX_LABEL_LEN => Err(WalletError::LabelTooLong(label.len())),
        given => Ok(given.unwrap_or_default().to_owned()),
    }
}

/// The scripts of a list of addresses, which may not repeat.
pub fn addresses(value: &Value, network: Network) -> Result<HashSet<ScriptBuf>, WalletError> {
    let mut scripts = HashSet::new();
    for value in value.as_array().ok_or_else(|| wrong_type(value, Type::Array))? {
        let text = value.as_str().ok_or_else(|| wrong_type(value, Type::String))?;
        let script = address::to_script(text, network).map_err(|_| WalletError::AddressAmong(text.to_owned()))?;
        if !scripts.insert(script) {
            return Err(WalletError::DuplicatedAddress(text.to_owned()));
        }
    }
    Ok(scripts)
}

/// `avoid_reuse`, which may be true only for a wallet that has the flag.
pub fn avoid_reuse(value: Option<&Value>, wallet: &WalletInfo) -> Result<bool, WalletError> {
    let asked = value.map(outrigger_sdk::params::flag).transpose()?.unwrap_or(wallet.avoid_reuse);
    if asked && !wallet.avoid_reuse { Err(WalletError::NoAvoidReuse) } else { Ok(asked) }
}
