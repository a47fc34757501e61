//! `listlabels` and `getaddressesbylabel`: the address book.

use std::collections::BTreeMap;

use outrigger_sdk::RpcError;
use outrigger_sdk::params::text;
use outrigger_sdk::service::wallet::LabelledAddress;
use outrigger_sdk::standard::address;
use serde_json::{Value, json};

use crate::CallContext;
use crate::arguments::label;
use crate::error::WalletError;

/// What an address in the address book is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    Receive,
    Send,
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::Receive => "receive",
            Self::Send => "send",
        }
    }
}

/// `listlabels`: the labels in use, sorted; those of one purpose if the call names one.
pub fn list_labels(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    context.wallet()?;
    let purpose = match context.params.given(0).map(text).transpose()? {
        None | Some("") => None,
        Some("receive") => Some(Purpose::Receive),
        // A purpose of old releases: no entry has it.
        Some("refund") => return Ok(json!([])),
        Some("send") => Some(Purpose::Send),
        Some(_) => return Err(WalletError::UnknownPurpose),
    };
    let sending = purpose.map(|purpose| purpose == Purpose::Send);
    Ok(json!(context.host.wallet.label_names(context.scope, sending)?))
}

/// `getaddressesbylabel`: the addresses with a label.
pub fn get_addresses_by_label(context: &mut CallContext<'_>) -> Result<Vec<u8>, WalletError> {
    context.wallet()?;
    let label = label(Some(context.params.get(0)))?;
    let network = context.network()?;
    let mut found = BTreeMap::new();
    for LabelledAddress { script, sending } in context.host.wallet.labelled(context.scope, label.clone())? {
        let text = address::from_script(&script, network);
        let text = text.ok_or_else(|| RpcError::internal("a script without an address has a label"))?;
        let purpose = if sending { Purpose::Send } else { Purpose::Receive };
        found.insert(text, purpose.name());
    }
    if found.is_empty() {
        return Err(WalletError::NoSuchLabel(label));
    }
    // Neither an address nor a purpose has a character that JSON escapes.
    let entries: Vec<String> =
        found.into_iter().map(|(text, purpose)| format!("\"{text}\":{{\"purpose\":\"{purpose}\"}}")).collect();
    Ok(format!("{{{}}}", entries.join(",")).into_bytes())
}
