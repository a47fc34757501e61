//! Sealing a wallet's keys with a passphrase, unlocking and locking it.

use outrigger_sdk::service::wallet::WalletInfo;
use outrigger_sdk::service::{ErrorKind, ServiceError};
use serde_json::{Value, json};

use crate::CallContext;
use crate::error::WalletError;

/// The longest time to unlock for, in seconds; longer ones are cut to it.
const MAX_UNLOCK_SECONDS: u64 = 100_000_000;

/// What encryptwallet answers.
const ENCRYPTED: &str = "wallet encrypted; The keypool has been flushed and a new HD seed was generated. You need to make a new backup with the backupwallet RPC.";

/// `encryptwallet`: seals the keys and locks the wallet.
pub fn encrypt_wallet(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let passphrase = context.take_secret(0);
    let wallet = context.wallet()?;
    if !wallet.private_keys_enabled {
        return Err(WalletError::NothingToEncrypt);
    }
    if wallet.encrypted {
        return Err(WalletError::Encrypted);
    }
    refuse_during_rescan(&wallet, "proceeding")?;
    if passphrase.expose().is_empty() {
        return Err(WalletError::EmptyPassphrase);
    }
    context.host.wallet.encrypt(context.scope, passphrase)?;
    Ok(json!(ENCRYPTED))
}

/// `walletpassphrase`: unlocks the wallet for a time in seconds.
pub fn wallet_passphrase(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let passphrase = context.take_secret(0);
    require_encrypted(&context.wallet()?, "walletpassphrase")?;
    let seconds = outrigger_sdk::params::int64(context.params.get(1))?;
    let seconds = u64::try_from(seconds).map_err(|_| WalletError::NegativeTimeout)?;
    if passphrase.expose().is_empty() {
        return Err(WalletError::EmptyPassphrase);
    }
    let hint = passphrase.expose().contains('\0').then_some(WalletError::NullInUnlocking);
    let unlocked = context.host.wallet.unlock(context.scope, passphrase, seconds.min(MAX_UNLOCK_SECONDS));
    unlocked.map_err(|error| or_hint(error, hint))?;
    Ok(Value::Null)
}

/// `walletpassphrasechange`: seals the keys with another passphrase.
pub fn wallet_passphrase_change(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let (old, new) = (context.take_secret(0), context.take_secret(1));
    let wallet = context.wallet()?;
    require_encrypted(&wallet, "walletpassphrasechange")?;
    refuse_during_rescan(&wallet, "changing the passphrase")?;
    if old.expose().is_empty() || new.expose().is_empty() {
        return Err(WalletError::EmptyPassphrase);
    }
    let hint = old.expose().contains('\0').then_some(WalletError::NullInOld);
    context.host.wallet.change_passphrase(context.scope, old, new).map_err(|error| or_hint(error, hint))?;
    Ok(Value::Null)
}

/// The hint for a wrong passphrase, where there is one, else the error.
fn or_hint(error: ServiceError, hint: Option<WalletError>) -> WalletError {
    match hint {
        Some(hint) if error.kind == ErrorKind::PassphraseIncorrect => hint,
        _ => error.into(),
    }
}

/// `walletlock`: locks the wallet now.
pub fn wallet_lock(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let wallet = context.wallet()?;
    require_encrypted(&wallet, "walletlock")?;
    refuse_during_rescan(&wallet, "locking the wallet")?;
    context.host.wallet.lock(context.scope)?;
    Ok(Value::Null)
}

fn require_encrypted(wallet: &WalletInfo, method: &'static str) -> Result<(), WalletError> {
    if wallet.encrypted { Ok(()) } else { Err(WalletError::NotEncrypted(method)) }
}

fn refuse_during_rescan(wallet: &WalletInfo, what: &'static str) -> Result<(), WalletError> {
    if wallet.rescan.is_some() { Err(WalletError::Rescanning(what)) } else { Ok(()) }
}
