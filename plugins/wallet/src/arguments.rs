//! Arguments that several methods of this group read.
//!
//! The host has checked the types of top-level arguments. Elements of arrays are checked here, with the messages of Bitcoin
//! Core 29.

use std::collections::HashSet;

use bitcoin::{Network, ScriptBuf};
use outrigger_kit::invalid_label;
use outrigger_sdk::service::wallet::{AddressType, MAX_LABEL_LEN, WalletInfo};
use outrigger_sdk::standard::address;
use outrigger_sdk::{RpcError, RpcErrorCode, typed};
use serde_json::Value;

pub fn address_type(name: &str) -> Result<AddressType, RpcError> {
    AddressType::named(name).ok_or_else(|| RpcError::not_found(format!("Unknown address type '{name}'")))
}

/// Reads a label. Unlike bitcoind, Outrigger limits the length.
pub fn label(text: &str) -> Result<String, RpcError> {
    match text {
        "*" => Err(invalid_label()),
        label if label.len() > MAX_LABEL_LEN => {
            let len = label.len();
            let message = format!("Invalid label name: it has {len} bytes, and at most {MAX_LABEL_LEN} are stored");
            Err(RpcError::new(RpcErrorCode::WALLET_INVALID_LABEL, message))
        }
        label => Ok(label.to_owned()),
    }
}

/// The script of an address, for methods that take one address.
pub fn single_address(text: &str, network: Network) -> Result<ScriptBuf, RpcError> {
    address::to_script(text, network).map_err(|_| RpcError::not_found("Invalid Bitcoin address"))
}

/// The script of an address. The error names the address, because the call may have several.
pub fn listed_address(text: &str, network: Network) -> Result<ScriptBuf, RpcError> {
    address::to_script(text, network).map_err(|_| RpcError::not_found(format!("Invalid Bitcoin address: {text}")))
}

/// The scripts of a list of addresses.
pub fn addresses(values: &[Value], network: Network) -> Result<HashSet<ScriptBuf>, RpcError> {
    let mut scripts = HashSet::new();
    for value in values {
        let text = typed::text(value)?;
        if !scripts.insert(listed_address(text, network)?) {
            return Err(RpcError::invalid_parameter(format!("Invalid parameter, duplicated address: {text}")));
        }
    }
    Ok(scripts)
}

/// The argument `avoid_reuse`, by default the wallet's flag. Fails for true if the wallet lacks the flag.
pub fn avoid_reuse(value: Option<bool>, wallet: &WalletInfo) -> Result<bool, RpcError> {
    let avoid = value.unwrap_or(wallet.avoid_reuse);
    if avoid && !wallet.avoid_reuse {
        return Err(RpcError::wallet("wallet does not have the \"avoid reuse\" feature enabled"));
    }
    Ok(avoid)
}
