//! Backups, the keypool, and the flags of a wallet.

use outrigger_sdk::params::{flag, int32};
use outrigger_sdk::service::ErrorKind;
use serde_json::{Value, json};

use crate::CallContext;
use crate::error::WalletError;
use crate::manage::named;

/// The wallet flag that can be changed, and those that cannot (Bitcoin Core 29).
const AVOID_REUSE: &str = "avoid_reuse";
const IMMUTABLE: [&str; 6] = [
    "blank",
    "descriptor_wallet",
    "disable_private_keys",
    "external_signer",
    "key_origin_metadata",
    "last_hardened_xpub_cached",
];

/// The warning of setwalletflag when it sets `avoid_reuse`.
const RESCAN_NEEDED: &str = "You need to rescan the blockchain in order to correctly mark used destinations in the past. Until this is done, some destinations may be considered unused, even if the opposite is the case.";

/// `backupwallet`: copies the wallet to a file on the host's machine.
pub fn backup_wallet(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    context.wallet()?;
    let file = context.params.text(0)?.to_owned();
    context.host.wallet.backup(context.scope, file)?;
    Ok(Value::Null)
}

/// `restorewallet`: makes a wallet from a backup and loads it.
pub fn restore_wallet(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let name = context.params.text(0)?.to_owned();
    let file = context.params.text(1)?.to_owned();
    let load_on_startup = context.params.given(2).map(flag).transpose()?;
    let restored = context.host.wallet.restore(context.scope, name.clone(), file, load_on_startup);
    let warnings = restored.map_err(|error| match error.kind {
        ErrorKind::NotFound => WalletError::NoBackup,
        ErrorKind::WalletExists => WalletError::CannotRestore(error.detail),
        ErrorKind::WalletNotLoaded if !error.detail.is_empty() => WalletError::CannotLoad(error.detail),
        _ => error.into(),
    })?;
    Ok(named(Some(name), warnings))
}

/// `keypoolrefill`: derives scripts ahead.
pub fn keypool_refill(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let wallet = context.wallet()?;
    let size = match context.params.given(0) {
        None => None,
        Some(size) => Some(u32::try_from(int32(size)?).map_err(|_| WalletError::KeypoolSize)?),
    };
    if wallet.locked {
        return Err(ErrorKind::WalletLocked.into());
    }
    // As in bitcoind, 0 stands for the default.
    context.host.wallet.refill_keypool(context.scope, size.filter(|size| *size > 0))?;
    // The sum of both pools counts. It stays 0 in a wallet without keys to derive from.
    let wallet = context.wallet()?;
    let ahead = wallet.keypool_external.saturating_add(wallet.keypool_internal);
    if ahead < size.unwrap_or(0).into() { Err(WalletError::KeypoolNotFilled) } else { Ok(Value::Null) }
}

/// `setwalletflag`: of the flags of Bitcoin Core 29 only `avoid_reuse` can be changed.
pub fn set_wallet_flag(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let wallet = context.wallet()?;
    let name = context.params.text(0)?.to_owned();
    let value = context.params.flag_or(1, true)?;
    if IMMUTABLE.contains(&name.as_str()) {
        return Err(WalletError::ImmutableFlag(name));
    }
    if name != AVOID_REUSE {
        return Err(WalletError::UnknownFlag(name));
    }
    if wallet.avoid_reuse == value {
        return Err(WalletError::FlagIsSet { name, value });
    }
    context.host.wallet.set_avoid_reuse(context.scope, value)?;
    let mut answer = json!({"flag_name": name, "flag_state": value});
    if value && let Some(object) = answer.as_object_mut() {
        object.insert("warnings".to_owned(), json!(RESCAN_NEEDED));
    }
    Ok(answer)
}
