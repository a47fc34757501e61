//! Backups, the keypool, and the wallet's flags.

use outrigger_kit::without_nulls;
use outrigger_sdk::params::int32;
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::{Call, RpcError, RpcErrorCode, methods};
use serde_json::{Value, json};

use crate::WalletPlugin;
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

#[methods(category = "Wallet")]
impl WalletPlugin {
    /// Copies the wallet to a file for restorewallet. The wallet stays usable during the copy. A complete copy
    /// replaces an older backup at the destination, but no other file.
    ///
    /// * `destination` - The file on the host's system, outside its data directory. The path may have no symbolic
    ///   links.
    #[method(long_running)]
    fn backupwallet(call: &Call<'_>, destination: String) -> Result<(), RpcError> {
        call.wallet()?;
        Ok(call.host.admin.backup(call.scope, destination)?)
    }

    /// Copies the wallet without its private keys to a new file for restorewallet: descriptors, labels, transactions,
    /// persistent locks. Of descriptors with hardened steps after the public key it has the addresses derived so far.
    ///
    /// * `destination` - The file on the host's system, outside its data directory. It must not exist. The path may
    ///   have no symbolic links.
    ///
    /// # Result
    /// {"exported_file": "..."}    (json object) The file.
    #[method(long_running)]
    fn exportwatchonlywallet(call: &Call<'_>, destination: String) -> Result<Value, RpcError> {
        call.wallet()?;
        if destination.is_empty() {
            return Err(RpcError::wallet("Error: Export destination cannot be empty"));
        }
        call.host.admin.export_watch_only(call.scope, destination.clone())?;
        Ok(json!({"exported_file": destination}))
    }

    /// Creates a wallet from a backup and loads it. The wallet then follows the chain from the time of the backup.
    ///
    /// * `wallet_name` - The name of the new wallet.
    /// * `backup_file` - The backup file on the host's system, outside its data directory. The path may have no
    ///   symbolic links.
    /// * `load_on_startup` (default: null) - Whether the host loads the wallet at every start; null keeps the
    ///   setting.
    ///
    /// # Result
    /// {"name": "...", "warnings": ["...", ...]}    (json object) "warnings" is omitted if there are none.
    #[method(long_running, private_keys)]
    fn restorewallet(
        call: &Call<'_>,
        wallet_name: String,
        backup_file: String,
        load_on_startup: Option<bool>,
    ) -> Result<Value, RpcError> {
        check_name(call, &wallet_name)?;
        let restored = call.host.admin.restore(call.scope, wallet_name.clone(), backup_file, load_on_startup);
        let warnings = restored.map_err(|error| match error.kind {
            ErrorKind::NotFound => RpcError::invalid_parameter("Backup file does not exist"),
            ErrorKind::WalletExists => RpcError::new(RpcErrorCode::WALLET_ALREADY_EXISTS, error.detail),
            _ => error.into(),
        })?;
        Ok(named(Some(wallet_name), warnings))
    }

    /// Refills the keypool: derives unused scripts in advance, for each active descriptor.
    ///
    /// * `newsize` (default: the host's wallet.keypool) - The number of unused scripts.
    #[method(private_keys, needs_tip = false)]
    fn keypoolrefill(call: &Call<'_>, #[arg(kind = "numeric")] newsize: Option<&Value>) -> Result<(), RpcError> {
        let wallet = call.wallet()?;
        let size = newsize.map_or(Ok(0), int32)?;
        let size =
            u32::try_from(size).map_err(|_| RpcError::invalid_parameter("Invalid parameter, expected valid size."))?;
        wallet.check_unlocked()?;
        // As in bitcoind, 0 stands for the default size.
        call.host.book.refill_keypool(call.scope, Some(size).filter(|size| *size > 0))?;
        // bitcoind compares the size with the sum of both pools. A wallet without keys derives nothing, so its sum
        // stays 0.
        let wallet = call.wallet()?;
        let ahead = wallet.keypool_external.saturating_add(wallet.keypool_internal);
        if ahead < size.into() {
            return Err(RpcError::wallet("Error refreshing keypool."));
        }
        Ok(())
    }

    /// Changes a flag of the wallet. With avoid_reuse, the wallet counts the coins of reused addresses separately and
    /// does not choose them for payments. An address is reused once the wallet has spent from it.
    ///
    /// * `flag` - avoid_reuse.
    /// * `value` - The new value.
    ///
    /// # Result
    /// {"flag_name": "...", "flag_state": true|false, "warnings": "..."}    (json object) "warnings" is omitted if
    /// there are none.
    ///
    /// # Example
    /// avoid_reuse
    #[method(needs_tip = false)]
    fn setwalletflag(call: &Call<'_>, flag: &str, #[arg(default = true)] value: bool) -> Result<Value, RpcError> {
        let wallet = call.wallet()?;
        if IMMUTABLE.contains(&flag) {
            return Err(RpcError::invalid_parameter(format!("Wallet flag is immutable: {flag}")));
        }
        if flag != AVOID_REUSE {
            return Err(RpcError::invalid_parameter(format!("Unknown wallet flag: {flag}")));
        }
        if wallet.avoid_reuse == value {
            return Err(RpcError::invalid_parameter(format!("Wallet flag is already set to {value}: {flag}")));
        }
        call.host.admin.set_avoid_reuse(call.scope, value)?;
        let warnings = value.then_some(RESCAN_NEEDED);
        Ok(without_nulls(json!({"flag_name": flag, "flag_state": value, "warnings": warnings})))
    }
}
