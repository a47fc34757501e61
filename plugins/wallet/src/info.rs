//! `getwalletinfo`, `getwalletbackupinfo` and `settxfee`.

use outrigger_kit::without_nulls;
use outrigger_sdk::service::wallet::WalletInfo;
use outrigger_sdk::{Call, FeeRate, RpcError, amount, methods};
use serde_json::{Value, json};

use crate::WalletPlugin;
use crate::balances::{balances, last_processed_block};

/// The `walletversion` of Bitcoin Core 29 (`FEATURE_LATEST`).
pub const WALLET_VERSION: i32 = 169_900;

const MILLION: f64 = 1_000_000.0;

/// The flags in bitcoind's order. Each wallet uses descriptors and stores the public keys of their last hardened steps.
fn flags(wallet: &WalletInfo) -> Vec<&'static str> {
    let flags = [
        ("avoid_reuse", wallet.avoid_reuse),
        ("last_hardened_xpub_cached", true),
        ("disable_private_keys", !wallet.signs()),
        ("blank", wallet.blank),
        ("descriptor_wallet", true),
        ("external_signer", wallet.signer.is_some()),
    ];
    flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
}

#[methods(category = "Wallet")]
impl WalletPlugin {
    /// Gives the state of the wallet.
    ///
    /// # Result
    /// {"walletname": "...", "balance": n, ..., "keypoolsize": n, ..., "unlocked_until": n, ..., "scanning":
    /// {"duration": n, "progress": n} or false, ...}    (json object) Amounts are in BTC, times in seconds since
    /// 1970. Only encrypted wallets have unlocked_until; it is 0 in a locked wallet. See getwalletbackupinfo for
    /// backups.
    #[method(inline)]
    fn getwalletinfo(call: &Call<'_>) -> Result<Value, RpcError> {
        let wallet = call.wallet()?;
        let rules = call.rules;
        let balances = rules.wallet_info_balances.then(|| balances(call, 0, wallet.avoid_reuse)).transpose()?;
        let mine = balances.map(|balances| balances.mine);
        let scanning = match &wallet.rescan {
            Some(scan) => json!({"duration": scan.duration, "progress": f64::from(scan.millionths) / MILLION}),
            None => json!(false),
        };
        let settings = call.host.wallet.spend_settings(call.scope)?;
        // Typed clients refuse unknown keys, so the answer has bitcoind's keys in its order and no others.
        let pay_feerate = || amount::to_json(settings.pay_feerate.unwrap_or(FeeRate::ZERO));
        Ok(without_nulls(json!({
            "walletname": wallet.name,
            "walletversion": WALLET_VERSION,
            "format": "lmdb",
            "balance": mine.map(|mine| amount::to_json(mine.trusted)),
            "unconfirmed_balance": mine.map(|mine| amount::to_json(mine.untrusted_pending)),
            "immature_balance": mine.map(|mine| amount::to_json(mine.immature)),
            "txcount": wallet.transactions,
            "keypoolsize": wallet.keypool_external,
            "keypoolsize_hd_internal": wallet.keypool_internal,
            "unlocked_until": wallet.encrypted.then_some(wallet.unlocked_until),
            "paytxfee": rules.wallet_info_feerate.then(pay_feerate),
            "private_keys_enabled": wallet.signs(),
            "avoid_reuse": wallet.avoid_reuse,
            "scanning": scanning,
            "descriptors": true,
            "external_signer": wallet.signer.is_some(),
            "blank": wallet.blank,
            "birthtime": Some(wallet.birth_time).filter(|time| *time > 0),
            "flags": rules.wallet_info_flags.then(|| flags(&wallet)),
            "lastprocessedblock": last_processed_block(&wallet.synced),
            "warnings": Some(&wallet.warnings).filter(|warnings| !warnings.is_empty()),
        })))
    }

    /// Gives the time of the last backup, and whether the wallet needs a new one. (Only in Outrigger, not in
    /// bitcoind.)
    ///
    /// # Result
    /// {"walletname": "...", "backup_needed": true|false, "last_backup": n}    (json object) backup_needed: whether
    /// there were imports, new keys or new descriptors since the last backup. last_backup: in seconds since 1970; 0
    /// without a backup.
    #[method(inline, needs_tip = false)]
    fn getwalletbackupinfo(call: &Call<'_>) -> Result<Value, RpcError> {
        let wallet = call.wallet()?;
        Ok(json!({"walletname": wallet.name, "backup_needed": wallet.backup_needed, "last_backup": wallet.last_backup}))
    }

    /// Sets the default feerate of the wallet's payments, until the wallet is unloaded.
    ///
    /// * `amount` - The feerate in BTC for 1000 virtual bytes; 0 to use the node's estimate again.
    ///
    /// # Result
    /// true    (json boolean)
    ///
    /// # Example
    /// 0.00001
    #[method(needs_tip = false)]
    fn settxfee(call: &Call<'_>, #[arg(kind = "amount")] amount: &Value) -> Result<bool, RpcError> {
        call.wallet()?;
        let feerate = FeeRate::from_sat_per_kvb(amount::from_json(amount)?.to_sat());
        let settings = call.host.wallet.spend_settings(call.scope)?;
        let relay = call.host.mempool.info(call.scope)?.relay_feerate;
        let maximum = FeeRate::from_sat_per_kvb(settings.max_fee.to_sat());
        let broken = match feerate {
            FeeRate::ZERO => None,
            low if low < relay => Some(("less than min relay tx fee", relay)),
            low if low < settings.min_feerate => Some(("less than wallet min fee", settings.min_feerate)),
            high if high > maximum => Some(("more than wallet max tx fee", maximum)),
            _ => None,
        };
        if let Some((rule, limit)) = broken {
            let message = format!("txfee cannot be {rule} ({} BTC/kvB)", amount::to_text(limit));
            return Err(RpcError::invalid_parameter(message));
        }
        call.host.pay.set_pay_feerate(call.scope, Some(feerate).filter(|feerate| *feerate > FeeRate::ZERO))?;
        Ok(true)
    }
}
