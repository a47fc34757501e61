//! `getwalletinfo`, `getwalletbackupinfo` and `settxfee`.

use outrigger_sdk::service::wallet::{Balances, WalletInfo};
use outrigger_sdk::{Call, FeeRate, RpcError, amount, methods};
use serde_json::{Map, Value, json};

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
        let mine = rules.wallet_info_balances.then(|| balances(call, 0, wallet.avoid_reuse)).transpose()?;
        let scanning = match &wallet.rescan {
            Some(scan) => json!({"duration": scan.duration, "progress": f64::from(scan.millionths) / MILLION}),
            None => json!(false),
        };
        let settings = call.host.wallet.spend_settings(call.scope)?;
        // Typed clients refuse unknown keys, so the answer has bitcoind's keys in its order and no others.
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put("walletname", json!(wallet.name));
        put("walletversion", json!(WALLET_VERSION));
        put("format", json!("lmdb"));
        if let Some(Balances { mine, .. }) = mine {
            put("balance", amount::to_json(mine.trusted));
            put("unconfirmed_balance", amount::to_json(mine.untrusted_pending));
            put("immature_balance", amount::to_json(mine.immature));
        }
        put("txcount", json!(wallet.transactions));
        put("keypoolsize", json!(wallet.keypool_external));
        put("keypoolsize_hd_internal", json!(wallet.keypool_internal));
        if wallet.encrypted {
            put("unlocked_until", json!(wallet.unlocked_until));
        }
        if rules.wallet_info_feerate {
            put("paytxfee", amount::to_json(settings.pay_feerate.unwrap_or(FeeRate::ZERO)));
        }
        put("private_keys_enabled", json!(wallet.signs()));
        put("avoid_reuse", json!(wallet.avoid_reuse));
        put("scanning", scanning);
        put("descriptors", json!(true));
        put("external_signer", json!(wallet.signer.is_some()));
        put("blank", json!(wallet.blank));
        if wallet.birth_time > 0 {
            put("birthtime", json!(wallet.birth_time));
        }
        if rules.wallet_info_flags {
            put("flags", json!(flags(&wallet)));
        }
        put("lastprocessedblock", last_processed_block(&wallet.synced));
        if !wallet.warnings.is_empty() {
            put("warnings", json!(wallet.warnings));
        }
        Ok(Value::Object(object))
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
