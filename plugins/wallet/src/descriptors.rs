//! `listdescriptors`.

use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::service::wallet::DescriptorInfo;
use serde::Serialize;

use crate::error::WalletError;
use crate::{CallContext, to_json};

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

/// `listdescriptors`: the wallet's descriptors by their text, with private keys where that is asked for. The texts go
/// into the answer without a copy that would not be wiped.
pub fn list_descriptors(context: &mut CallContext<'_>) -> Result<Vec<u8>, WalletError> {
    let wallet = context.wallet()?;
    let private = context.params.flag_or(0, false)?;
    if private && wallet.locked {
        return Err(ErrorKind::WalletLocked.into());
    }
    let descriptors = context.host.wallet.descriptors(context.scope, private)?;
    if private {
        // A descriptor that reads the same without private keys has none.
        let public = context.host.wallet.descriptors(context.scope, false)?;
        let same = |(with, without): (&DescriptorInfo, &DescriptorInfo)| with.text == without.text;
        if descriptors.iter().zip(&public).any(same) {
            return Err(WalletError::NoPrivateDescriptor);
        }
    }
    // Imported keys and scripts, of which some may be watched alone.
    let imported = context.host.wallet.imported_descriptors(context.scope, private)?;
    let mut entries: Vec<Entry<'_>> = descriptors.iter().chain(&imported).map(Entry::new).collect();
    entries.sort_by_key(|entry| entry.desc);
    to_json(Answer { wallet_name: &wallet.name, descriptors: entries })
}
