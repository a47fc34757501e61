//! getreceivedbyaddress, getreceivedbylabel, listreceivedbyaddress, listreceivedbylabel: what addresses received.
//!
//! Each goes once through the wallet's transactions. What a row tells of an output, its owner and label included, is all that
//! is needed; the address book is read only for the addresses that received nothing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

use bitcoin::{Amount, Script, ScriptBuf, Txid};
use outrigger_sdk::CallContext;
use outrigger_sdk::amount::{self, Saturating};
use outrigger_sdk::params::{int32, text};
use outrigger_sdk::service::wallet::{HistoryRange, LabelledScript, Ownership, WalletTransactionView};
use outrigger_sdk::standard::address;
use serde_json::Value;

use crate::destination;
use crate::error::HistoryError;
use crate::json;
use crate::list::{Batches, walk};
use crate::viewpoint::{COINBASE_MATURITY_DEPTH, WalletViewpoint, signed};

/// The most entries of the address book to ask the host for at a time.
const BATCH: u32 = 1000;

/// Which transactions count.
struct Counted {
    viewpoint: WalletViewpoint,
    min_depth: i64,
    immature: bool,
}

impl Counted {
    /// The depth of a transaction that counts. A coinbase without a confirmation is in no block any more.
    fn depth(&self, transaction: &WalletTransactionView<'_>) -> Option<i64> {
        let depth = self.viewpoint.depth(transaction);
        let least = match (transaction.coinbase, self.immature) {
            (false, _) => self.min_depth,
            (true, true) => self.min_depth.max(1),
            (true, false) => self.min_depth.max(COINBASE_MATURITY_DEPTH),
        };
        (depth >= least).then_some(depth)
    }
}

/// getreceivedbyaddress: watched addresses are the wallet's, too.
pub fn by_address(context: &CallContext<'_>) -> Result<Vec<u8>, HistoryError> {
    context.wallet()?;
    let script = address::to_script(context.params.text(0)?, context.network()?).map_err(|_| HistoryError::Address)?;
    let known = context.host.wallet.scripts(context.scope, vec![script.clone()])?.pop().flatten();
    let ours = known.is_some_and(|info| info.ownership != Ownership::None);
    total(context, ours.then_some(script).into_iter().collect())
}

/// getreceivedbylabel.
pub fn by_label(context: &CallContext<'_>) -> Result<Vec<u8>, HistoryError> {
    context.wallet()?;
    let label = context.params.text(0)?;
    if label == "*" {
        return Err(HistoryError::ReservedLabel);
    }
    let mut entries = address_book(context)?;
    entries.retain(|entry| entry.label == label);
    if entries.is_empty() {
        return Err(HistoryError::UnknownLabel);
    }
    let ours = entries.into_iter().filter(|entry| entry.ownership != Ownership::None);
    total(context, ours.map(|entry| entry.script).collect())
}

/// What these scripts received, as the amount that is answered.
fn total(context: &CallContext<'_>, scripts: HashSet<ScriptBuf>) -> Result<Vec<u8>, HistoryError> {
    if scripts.is_empty() {
        return Err(HistoryError::UnknownAddress);
    }
    let min_depth = context.params.given(1).map_or(Ok(1), int32)?.into();
    let immature = context.params.flag_or(2, false)?;
    let viewpoint = WalletViewpoint::of(context, &context.wallet()?, &Value::Bool(true))?;
    let counted = Counted { viewpoint, min_depth, immature };
    let mut total = Amount::ZERO;
    walk(Batches::new(context, HistoryRange::All, false, u32::MAX), |tx| {
        if counted.depth(&tx.transaction).is_some() {
            let received = tx.transaction.outputs.iter().filter(|output| scripts.contains(output.script));
            total = received.fold(total, |total, output| total.saturating_add(output.value));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(amount::to_json(total).to_string().into_bytes())
}

/// What an address received.
#[derive(Default)]
struct Received {
    amount: Amount,
    /// The least depth of its transactions; none where it received nothing.
    depth: Option<i64>,
    txids: Vec<Txid>,
    watched: bool,
    label: String,
}

/// listreceivedbyaddress.
pub fn list_by_address(context: &CallContext<'_>) -> Result<Vec<u8>, HistoryError> {
    let mut reply = Vec::from(b"[".as_slice());
    let network = context.network()?;
    let mut address = String::new();
    for (script, received) in listed(context, true)? {
        address.clear();
        address::write_address(&script, network, &mut address);
        json::item(&mut reply);
        reply.push(b'{');
        write_watched(&mut reply, received.watched);
        json::key!(&mut reply, "address");
        json::plain(&mut reply, &address);
        write_sum(&mut reply, received.amount, received.depth, &received.label);
        json::key!(&mut reply, "txids");
        json::hashes(&mut reply, received.txids.into_iter());
        reply.push(b'}');
    }
    reply.push(b']');
    Ok(reply)
}

/// listreceivedbylabel. Of the addresses of a label the last one says whether it is watched, as in bitcoind.
pub fn list_by_label(context: &CallContext<'_>) -> Result<Vec<u8>, HistoryError> {
    let mut labels = BTreeMap::<String, Received>::new();
    for (_, received) in listed(context, false)? {
        let sum = labels.entry(received.label).or_default();
        sum.amount = sum.amount.saturating_add(received.amount);
        sum.depth = sum.depth.into_iter().chain(received.depth).min();
        sum.watched = received.watched;
    }
    let mut reply = Vec::from(b"[".as_slice());
    for (label, sum) in labels {
        json::item(&mut reply);
        reply.push(b'{');
        write_watched(&mut reply, sum.watched);
        write_sum(&mut reply, sum.amount, sum.depth, &label);
        reply.push(b'}');
    }
    reply.push(b']');
    Ok(reply)
}

fn write_watched(out: &mut Vec<u8>, watched: bool) {
    if watched {
        json::key!(out, "involvesWatchonly");
        json::boolean(out, true);
    }
}

fn write_sum(out: &mut Vec<u8>, amount: Amount, depth: Option<i64>, label: &str) {
    json::key!(out, "amount");
    json::bitcoin(out, signed(amount));
    json::key!(out, "confirmations");
    json::signed(out, depth.unwrap_or(0));
    json::key!(out, "label");
    json::text(out, label);
}

/// The addresses of the address book with what they received, in bitcoind's order, by the arguments of the two listings.
fn listed(context: &CallContext<'_>, by_address: bool) -> Result<Vec<(ScriptBuf, Received)>, HistoryError> {
    let wallet = context.wallet()?;
    let params = &context.params;
    let min_depth = params.given(0).map_or(Ok(1), int32)?.into();
    let include_empty = params.flag_or(1, false)?;
    let viewpoint = WalletViewpoint::of(context, &wallet, params.get(2))?;
    let only = match params.given(3).filter(|_| by_address).map(text).transpose()? {
        None | Some("") => None,
        Some(given) => Some(address::to_script(given, viewpoint.network).map_err(|_| HistoryError::AddressFilter)?),
    };
    let immature = params.flag_or(if by_address { 4 } else { 3 }, false)?;
    let counted = Counted { viewpoint, min_depth, immature };
    let mut tally = HashMap::new();
    walk(Batches::new(context, HistoryRange::All, false, u32::MAX), |tx| {
        add(&mut tally, &counted, &tx.transaction, only.as_deref());
        Ok(ControlFlow::Continue(()))
    })?;
    if include_empty {
        add_entries(context, &mut tally, only)?;
    }
    let mut listed: Vec<_> = tally.into_iter().collect();
    listed.sort_by_cached_key(|(script, _)| destination::order(script));
    Ok(listed)
}

/// Adds the outputs of a transaction. Those without an entry in the address book are change, or have no address.
fn add(
    tally: &mut HashMap<ScriptBuf, Received>,
    counted: &Counted,
    transaction: &WalletTransactionView<'_>,
    only: Option<&Script>,
) {
    let Some(depth) = counted.depth(transaction) else { return };
    for output in transaction.outputs {
        let wanted = counted.viewpoint.owns(&output) && only.is_none_or(|only| only == output.script);
        let Some(label) = output.label.filter(|_| wanted) else { continue };
        let received = match tally.get_mut(output.script) {
            Some(received) => received,
            None => tally.entry(output.script.to_owned()).or_default(),
        };
        if received.depth.is_none() {
            label.clone_into(&mut received.label);
        }
        received.amount = received.amount.saturating_add(output.value);
        received.depth = Some(received.depth.map_or(depth, |least| least.min(depth)));
        received.watched |= output.ownership == Ownership::WatchOnly;
        received.txids.push(transaction.txid);
    }
}

/// Adds the addresses that received nothing: those of others, too.
fn add_entries(
    context: &CallContext<'_>,
    tally: &mut HashMap<ScriptBuf, Received>,
    only: Option<ScriptBuf>,
) -> Result<(), HistoryError> {
    let entries: Vec<(ScriptBuf, String)> = match only {
        Some(script) => {
            let known = context.host.wallet.scripts(context.scope, vec![script.clone()])?.pop().flatten();
            known.and_then(|info| info.label).map(|label| (script, label)).into_iter().collect()
        }
        None => address_book(context)?.into_iter().map(|entry| (entry.script, entry.label)).collect(),
    };
    for (script, label) in entries {
        tally.entry(script).or_insert_with(|| Received { label, ..Received::default() });
    }
    Ok(())
}

/// All entries of the address book.
fn address_book(context: &CallContext<'_>) -> Result<Vec<LabelledScript>, HistoryError> {
    let (mut entries, mut after) = (Vec::new(), None);
    loop {
        let batch = context.host.wallet.labels(context.scope, after, BATCH)?;
        entries.extend(batch.entries);
        after = batch.next;
        if after.is_none() {
            return Ok(entries);
        }
    }
}
