//! Backups, the keypool, and the wallet's flags.

use outrigger_sdk::params::{flag, int32};
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::{CallContext, RpcError, RpcErrorCode};
use serde_json::{Value, json};

use crate::manage::{check_name, named};

/// The only flag of Bitcoin Core 29 that setwalletflag can change.
const AVOID_REUSE: &str = "avoid_reuse";
const IMMUTABLE: [&str; 6] = [
    "blank",
    "descriptor_wallet",
    "disable_private_keys",
    "external_signer",
    "key_origin_metadata",
    "last_hardened_xpub_cached",
];

const RESCAN_NEEDED: &str = "You need to rescan the blockchain in order to correctly mark used destinations in the past. Until this is done, some destinations may be considered unused, even if the opposite is the case.";

pub fn backup_wallet(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    context.wallet()?;
    let file = context.params.text(0)?.to_owned();
    context.host.admin.backup(context.scope, file)?;
    Ok(Value::Null)
}

/// Writes a copy of the wallet without private keys.
pub fn export_watch_only_wallet(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    context.wallet()?;
    let file = context.params.text(0)?.to_owned();
    if file.is_empty() {
        return Err(RpcError::wallet("Error: Export destination cannot be empty"));
    }
    context.host.admin.export_watch_only(context.scope, file.clone())?;
    Ok(json!({"exported_file": file}))
}

pub fn restore_wallet(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    let name = context.params.text(0)?.to_owned();
    check_name(context, &name)?;
    let file = context.params.text(1)?.to_owned();
    let load_on_startup = context.params.given(2).map(flag).transpose()?;
    let restored = context.host.admin.restore(context.scope, name.clone(), file, load_on_startup);
    let warnings = restored.map_err(|error| match error.kind {
        ErrorKind::NotFound => RpcError::invalid_parameter("Backup file does not exist"),
        ErrorKind::WalletExists => RpcError::new(RpcErrorCode::WALLET_ALREADY_EXISTS, error.detail),
        _ => error.into(),
    })?;
    Ok(named(Some(name), warnings))
}

pub fn keypool_refill(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    let wallet = context.wallet()?;
    let size = context.params.given(0).map_or(Ok(0), int32)?;
    let size =
        u32::try_from(size).map_err(|_| RpcError::invalid_parameter("Invalid parameter, expected valid size."))?;
    wallet.check_unlocked()?;
    // As in bitcoind, 0 stands for the default size.
    context.host.book.refill_keypool(context.scope, Some(size).filter(|size| *size > 0))?;
    // bitcoind compares the size with the sum of both pools. A wallet without keys derives nothing, so its sum stays 0.
    let wallet = context.wallet()?;
    let ahead = wallet.keypool_external.saturating_add(wallet.keypool_internal);
    if ahead < size.into() {
        return Err(RpcError::wallet("Error refreshing keypool."));
    }
    Ok(Value::Null)
}

pub fn set_wallet_flag(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    let wallet = context.wallet()?;
    let name = context.params.text(0)?.to_owned();
    let value = context.params.flag_or(1, true)?;
    if IMMUTABLE.contains(&name.as_str()) {
        return Err(RpcError::invalid_parameter(format!("Wallet flag is immutable: {name}")));
    }
    if name != AVOID_REUSE {
        return Err(RpcError::invalid_parameter(format!("Unknown wallet flag: {name}")));
    }
    if wallet.avoid_reuse == value {
        return Err(RpcError::invalid_parameter(format!("Wallet flag is already set to {value}: {name}")));
    }
    context.host.admin.set_avoid_reuse(context.scope, value)?;
    let mut answer = json!({"flag_name": name, "flag_state": value});
    if value {
        answer["warnings"] = json!(RESCAN_NEEDED);
    }
    Ok(answer)
}
