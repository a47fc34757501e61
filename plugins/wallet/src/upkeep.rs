//! Backups, the keypool, and the flags of a wallet.

use outrigger_sdk::params::{flag, int32};
use outrigger_sdk::service::ErrorKind;
use serde_json::{Value, json};

use crate::Question;
use crate::error::WalletError;
use crate::manage::named;

/// The flag that can be changed, and those that cannot.
const AVOID_REUSE: &str = "avoid_reuse";
const IMMUTABLE: [&str; 6] = [
    "blank",
    "descriptor_wallet",
    "disable_private_keys",
    "external_signer",
    "key_origin_metadata",
    "last_hardened_xpub_cached",
];

/// What setwalletflag says of a wallet that begins to avoid reused addresses.
const RESCAN_NEEDED: &str = "You need to rescan the blockchain in order to correctly mark used destinations in the past. Until this is done, some destinations may be considered unused, even if the opposite is the case.";

/// `backupwallet`: copies the wallet to a file of the host's system.
pub fn backup_wallet(question: &mut Question<'_>) -> Result<Value, WalletError> {
    question.wallet()?;
    let file = question.params.text(0)?.to_owned();
    question.host.wallet.backup(question.scope, file)?;
    Ok(Value::Null)
}

/// `restorewallet`: makes a wallet from a backup and loads it.
pub fn restore_wallet(question: &mut Question<'_>) -> Result<Value, WalletError> {
    let name = question.params.text(0)?.to_owned();
    let file = question.params.text(1)?.to_owned();
    let load_on_startup = question.params.given(2).map(flag).transpose()?;
    let restored = question.host.wallet.restore(question.scope, name.clone(), file, load_on_startup);
    let warnings = restored.map_err(|error| match error.kind {
        ErrorKind::NotFound => WalletError::NoBackup,
        ErrorKind::WalletExists => WalletError::CannotRestore(error.detail),
        ErrorKind::WalletNotLoaded if !error.detail.is_empty() => WalletError::CannotLoad(error.detail),
        _ => error.into(),
    })?;
    Ok(named(Some(name), warnings))
}

/// `keypoolrefill`: derives scripts ahead.
pub fn keypool_refill(question: &mut Question<'_>) -> Result<Value, WalletError> {
    let wallet = question.wallet()?;
    let size = match question.params.given(0) {
        None => None,
        Some(size) => Some(u32::try_from(int32(size)?).map_err(|_| WalletError::KeypoolSize)?),
    };
    if wallet.locked {
        return Err(ErrorKind::WalletLocked.into());
    }
    // bitcoind takes 0 for its default, too.
    question.host.wallet.refill_keypool(question.scope, size.filter(|size| *size > 0))?;
    // The sum of all kinds counts. A wallet that has nothing to derive from has none of what was asked for.
    let wallet = question.wallet()?;
    let ahead = wallet.keypool_external.saturating_add(wallet.keypool_internal);
    if ahead < size.unwrap_or(0).into() { Err(WalletError::KeypoolNotFilled) } else { Ok(Value::Null) }
}

/// `setwalletflag`: of the flags of release 29 only `avoid_reuse` can be changed.
pub fn set_wallet_flag(question: &mut Question<'_>) -> Result<Value, WalletError> {
    let wallet = question.wallet()?;
    let name = question.params.text(0)?.to_owned();
    let value = question.params.flag_or(1, true)?;
    if IMMUTABLE.contains(&name.as_str()) {
        return Err(WalletError::ImmutableFlag(name));
    }
    if name != AVOID_REUSE {
        return Err(WalletError::UnknownFlag(name));
    }
    if wallet.avoid_reuse == value {
        return Err(WalletError::FlagIsSet { name, value });
    }
    question.host.wallet.set_avoid_reuse(question.scope, value)?;
    let mut answer = json!({"flag_name": name, "flag_state": value});
    if value && let Some(object) = answer.as_object_mut() {
        object.insert("warnings".to_owned(), json!(RESCAN_NEEDED));
    }
    Ok(answer)
}
