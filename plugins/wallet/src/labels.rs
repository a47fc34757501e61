//! `listlabels` and `getaddressesbylabel`: the address book.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use bitcoin::ScriptBuf;
use outrigger_sdk::RpcError;
use outrigger_sdk::params::text;
use outrigger_sdk::service::wallet::LabelledScript;
use outrigger_sdk::standard::address;
use serde_json::{Map, Value, json};

use crate::CallContext;
use crate::arguments::label;
use crate::error::WalletError;

/// The most entries to ask the host for at a time.
const BATCH: u32 = 1000;

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

/// All entries of the address book. Our addresses are for receiving; others are for sending, and stay so even if they are
/// imported later.
fn address_book(context: &CallContext<'_>) -> Result<Vec<(LabelledScript, Purpose)>, WalletError> {
    let (mut entries, mut after) = (Vec::new(), None);
    loop {
        let batch = context.host.wallet.labels(context.scope, after, BATCH)?;
        let sending: HashSet<ScriptBuf> = batch.sending.into_iter().collect();
        let purpose = |entry: &LabelledScript| {
            if sending.contains(&entry.script) { Purpose::Send } else { Purpose::Receive }
        };
        entries.extend(batch.entries.into_iter().map(|entry| {
            let purpose = purpose(&entry);
            (entry, purpose)
        }));
        after = batch.next;
        if after.is_none() {
            return Ok(entries);
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
    let wanted = |(_, of): &(LabelledScript, Purpose)| purpose.is_none_or(|purpose| *of == purpose);
    let labels: BTreeSet<String> =
        address_book(context)?.into_iter().filter(wanted).map(|(entry, _)| entry.label).collect();
    Ok(json!(labels))
}

/// `getaddressesbylabel`: the addresses with a label.
pub fn get_addresses_by_label(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    context.wallet()?;
    let label = label(Some(context.params.get(0)))?;
    let network = context.network()?;
    let mut found = BTreeMap::new();
    for (entry, purpose) in address_book(context)?.into_iter().filter(|(entry, _)| entry.label == label) {
        let text = address::from_script(&entry.script, network);
        let text = text.ok_or_else(|| RpcError::internal("a script without an address has a label"))?;
        found.insert(text, purpose.name());
    }
    if found.is_empty() {
        return Err(WalletError::NoSuchLabel(label));
    }
    let object: Map<String, Value> =
        found.into_iter().map(|(text, purpose)| (text, json!({"purpose": purpose}))).collect();
    Ok(Value::Object(object))
}
