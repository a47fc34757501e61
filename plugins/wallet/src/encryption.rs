//! Encrypting, unlocking and locking a wallet.

use outrigger_sdk::params::int64;
use outrigger_sdk::service::wallet::WalletInfo;
use outrigger_sdk::service::{ErrorKind, ServiceError};
use outrigger_sdk::wire::Secret;
use outrigger_sdk::{Call, RpcError, RpcErrorCode, methods};
use serde_json::Value;

use crate::WalletPlugin;

/// The longest time to unlock a wallet for, in seconds. As in bitcoind, a longer time is capped.
const MAX_UNLOCK_SECONDS: u64 = 100_000_000;

const ENCRYPTED: &str = "wallet encrypted; The keypool has been flushed and a new HD seed was generated. You need to make a new backup with the backupwallet RPC.";

// Before version 25.0, bitcoind ended a passphrase at its first null character.
const NULL_IN_PASSPHRASE: &str = "Error: The wallet passphrase entered is incorrect. It contains a null character (ie - a zero byte). If the passphrase was set with a version of this software prior to 25.0, please try again with only the characters up to — but not including — the first null character. If this is successful, please set a new passphrase to avoid this issue in the future.";
const NULL_IN_OLD_PASSPHRASE: &str = "Error: The old wallet passphrase entered is incorrect. It contains a null character (ie - a zero byte). If the old passphrase was set with a version of this software prior to 25.0, please try again with only the characters up to — but not including — the first null character.";

/// Converts an error. For a wrong passphrase, `hint` replaces the message if present.
fn or_hint(error: ServiceError, hint: Option<&str>) -> RpcError {
    match hint {
        Some(hint) if error.kind == ErrorKind::PassphraseIncorrect => {
            RpcError::new(RpcErrorCode::WALLET_PASSPHRASE_INCORRECT, hint)
        }
        _ => error.into(),
    }
}

fn require_encrypted(wallet: &WalletInfo, method: &str) -> Result<(), RpcError> {
    if wallet.encrypted {
        return Ok(());
    }
    let message = format!("Error: running with an unencrypted wallet, but {method} was called.");
    Err(RpcError::new(RpcErrorCode::WALLET_WRONG_ENC_STATE, message))
}

fn refuse_during_rescan(wallet: &WalletInfo, action: &str) -> Result<(), RpcError> {
    if wallet.rescan.is_none() {
        return Ok(());
    }
    Err(RpcError::wallet(format!(
        "Error: the wallet is currently being used to rescan the blockchain for related transactions. Please call `abortrescan` before {action}."
    )))
}

fn require_nonempty(passphrase: &Secret) -> Result<(), RpcError> {
    if passphrase.expose().is_empty() {
        return Err(RpcError::invalid_parameter("passphrase cannot be empty"));
    }
    Ok(())
}

#[methods(category = "Wallet", needs_tip = false)]
impl WalletPlugin {
    /// Encrypts the wallet for the first time, generates new keys for new addresses, and locks the wallet.
    ///
    /// * `passphrase` - The passphrase, at least one character.
    ///
    /// # Result
    /// "..."    (string) A message about the next steps.
    ///
    /// # Example
    /// "my pass phrase"
    #[method(private_keys)]
    fn encryptwallet(call: &Call<'_>, passphrase: Secret) -> Result<&'static str, RpcError> {
        let wallet = call.wallet()?;
        if let Some(signer) = &wallet.signer {
            return Err(RpcError::wallet(format!(
                "Error: the plugin '{signer}' holds the keys of this wallet, nothing to encrypt."
            )));
        }
        if !wallet.private_keys_enabled {
            let message = "Error: wallet does not contain private keys, nothing to encrypt.";
            return Err(RpcError::new(RpcErrorCode::WALLET_ENCRYPTION_FAILED, message));
        }
        if wallet.encrypted {
            let message = "Error: running with an encrypted wallet, but encryptwallet was called.";
            return Err(RpcError::new(RpcErrorCode::WALLET_WRONG_ENC_STATE, message));
        }
        refuse_during_rescan(&wallet, "proceeding")?;
        require_nonempty(&passphrase)?;
        call.host.admin.encrypt(call.scope, passphrase)?;
        Ok(ENCRYPTED)
    }

    /// Unlocks the wallet for a limited time. In an unlocked wallet, the new time replaces the old one.
    ///
    /// * `passphrase` - The passphrase.
    /// * `timeout` - The time in seconds, at most 100000000.
    ///
    /// # Example
    /// "my pass phrase" 60
    #[method(private_keys)]
    fn walletpassphrase(
        call: &Call<'_>,
        passphrase: Secret,
        #[arg(kind = "numeric")] timeout: &Value,
    ) -> Result<(), RpcError> {
        require_encrypted(&call.wallet()?, "walletpassphrase")?;
        let seconds = int64(timeout)?;
        let seconds = u64::try_from(seconds).map_err(|_| RpcError::invalid_parameter("Timeout cannot be negative."))?;
        require_nonempty(&passphrase)?;
        let hint = passphrase.expose().contains('\0').then_some(NULL_IN_PASSPHRASE);
        let unlocked = call.host.admin.unlock(call.scope, passphrase, seconds.min(MAX_UNLOCK_SECONDS));
        unlocked.map_err(|error| or_hint(error, hint))
    }

    /// Changes the passphrase.
    ///
    /// * `oldpassphrase` - The old passphrase.
    /// * `newpassphrase` - The new passphrase.
    ///
    /// # Example
    /// "old one" "new one"
    #[method(private_keys)]
    fn walletpassphrasechange(call: &Call<'_>, oldpassphrase: Secret, newpassphrase: Secret) -> Result<(), RpcError> {
        let wallet = call.wallet()?;
        require_encrypted(&wallet, "walletpassphrasechange")?;
        refuse_during_rescan(&wallet, "changing the passphrase")?;
        require_nonempty(&oldpassphrase)?;
        require_nonempty(&newpassphrase)?;
        let hint = oldpassphrase.expose().contains('\0').then_some(NULL_IN_OLD_PASSPHRASE);
        let changed = call.host.admin.change_passphrase(call.scope, oldpassphrase, newpassphrase);
        changed.map_err(|error| or_hint(error, hint))
    }

    /// Locks the wallet now.
    #[method]
    fn walletlock(call: &Call<'_>) -> Result<(), RpcError> {
        let wallet = call.wallet()?;
        require_encrypted(&wallet, "walletlock")?;
        refuse_during_rescan(&wallet, "locking the wallet")?;
        Ok(call.host.admin.lock(call.scope)?)
    }
}
