//! `listdescriptors`.

use outrigger_sdk::methods::Json;
use outrigger_sdk::service::wallet::DescriptorInfo;
use outrigger_sdk::{Call, RpcError, methods};
use serde::Serialize;

use crate::{WalletPlugin, to_json};

#[derive(Serialize)]
struct Answer<'a> {
    wallet_name: &'a str,
    descriptors: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    desc: &'a str,
    timestamp: u64,
    active: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    internal: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<(u32, u32)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_index: Option<u32>,
}

impl<'a> Entry<'a> {
    fn new(descriptor: &'a DescriptorInfo) -> Self {
        let next = descriptor.range.map(|_| descriptor.next_index);
        Self {
            desc: descriptor.text.expose(),
            timestamp: descriptor.timestamp,
            active: descriptor.active,
            internal: descriptor.internal.filter(|_| descriptor.active),
            range: descriptor.range,
            next,
            next_index: next,
        }
    }
}

#[methods(category = "Wallet", needs_tip = false)]
impl WalletPlugin {
    /// Lists the wallet's descriptors. Imported keys and scripts are listed as descriptors.
    ///
    /// * `private` - Whether to show private keys.
    ///
    /// # Result
    /// {"wallet_name": "...", "descriptors": [{"desc": "...", "timestamp": n, "active": true|false, "internal":
    /// true|false, "range": [n, n], "next": n, "next_index": n}, ...]}    (json object) Sorted by text. Only active
    /// descriptors have internal, only ranged descriptors have range, next and next_index.
    #[method(private_keys)]
    fn listdescriptors(call: &Call<'_>, #[arg(default = false)] private: bool) -> Result<Json, RpcError> {
        let wallet = call.wallet()?;
        let mixed = call.rules.private_of_mixed;
        if private && mixed && !wallet.private_keys_enabled {
            return Err(RpcError::wallet("Can't get private descriptor string for watch-only wallets"));
        }
        if private {
            wallet.check_unlocked()?;
        }
        let (host, scope) = (call.host, call.scope);
        let descriptors =
            if private { host.keys.private_descriptors(scope)? } else { host.wallet.descriptors(scope)? };
        if private && !mixed {
            // The two texts are equal if the wallet lacks the private keys of the descriptor.
            let public = host.wallet.descriptors(scope)?;
            let same = |(with, without): (&DescriptorInfo, &DescriptorInfo)| with.text == without.text;
            if descriptors.iter().zip(&public).any(same) {
                return Err(RpcError::wallet("Can't get descriptor string."));
            }
        }
        // Single keys and scripts may be watch-only, so the check does not apply to them.
        // Each request for private keys asks the wallet's policies.
        let public = host.wallet.imported_descriptors(scope)?;
        let imported =
            if private && !public.is_empty() { host.keys.private_imported_descriptors(scope)? } else { public };
        let mut entries: Vec<Entry<'_>> = descriptors.iter().chain(&imported).map(Entry::new).collect();
        entries.sort_by_key(|entry| entry.desc);
        // A `serde_json::Value` would hold more copies of the private keys.
        to_json(Answer { wallet_name: &wallet.name, descriptors: entries })
    }
}
