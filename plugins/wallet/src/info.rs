//! `getwalletinfo`, `getwalletbackupinfo` and `settxfee`.

use outrigger_sdk::service::wallet::{Balances, WalletInfo};
use outrigger_sdk::{CallContext, FeeRate, RpcError, amount};
use serde_json::{Map, Value, json};

use crate::balances::{balances, last_processed_block};

/// The `walletversion` of Bitcoin Core 29 (`FEATURE_LATEST`).
pub const WALLET_VERSION: i32 = 169_900;

const MILLION: f64 = 1_000_000.0;

/// The answer has the keys of bitcoind in its order and no others, because typed clients refuse unknown keys.
pub fn get_wallet_info(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    let wallet = context.wallet()?;
    let rules = context.rules;
    let mine = rules.wallet_info_balances.then(|| balances(context, 0, wallet.avoid_reuse)).transpose()?;
    let scanning = match &wallet.rescan {
        Some(scan) => json!({"duration": scan.duration, "progress": f64::from(scan.millionths) / MILLION}),
        None => json!(false),
    };
    let settings = context.host.wallet.spend_settings(context.scope)?;
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
    put("private_keys_enabled", json!(wallet.private_keys_enabled));
    put("avoid_reuse", json!(wallet.avoid_reuse));
    put("scanning", scanning);
    put("descriptors", json!(true));
    // createwallet refuses external signers, so no wallet has one.
    put("external_signer", json!(false));
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

/// The flags in bitcoind's order. Each wallet uses descriptors and stores the public keys of their last hardened steps.
fn flags(wallet: &WalletInfo) -> Vec<&'static str> {
    let flags = [
        ("avoid_reuse", wallet.avoid_reuse),
        ("last_hardened_xpub_cached", true),
        ("disable_private_keys", !wallet.private_keys_enabled),
        ("blank", wallet.blank),
        ("descriptor_wallet", true),
    ];
    flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
}

pub fn set_tx_fee(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    context.wallet()?;
    let feerate = FeeRate::from_sat_per_kvb(amount::from_json(context.params.get(0))?.to_sat());
    let settings = context.host.wallet.spend_settings(context.scope)?;
    let relay = context.host.mempool.info(context.scope)?.relay_feerate;
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
    context.host.pay.set_pay_feerate(context.scope, Some(feerate).filter(|feerate| *feerate > FeeRate::ZERO))?;
    Ok(Value::Bool(true))
}

pub fn get_wallet_backup_info(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    let wallet = context.wallet()?;
    Ok(json!({"walletname": wallet.name, "backup_needed": wallet.backup_needed, "last_backup": wallet.last_backup}))
}
