//! getreceivedbyaddress, getreceivedbylabel, listreceivedbyaddress, listreceivedbylabel.
//!
//! The wallet sums the payments by script. The plugin reads the address book only to list addresses without payments.

use std::collections::{BTreeMap, HashSet};

use bitcoin::{Amount, Script, ScriptBuf, Txid};
use outrigger_kit::invalid_label;
use outrigger_sdk::amount::{self, Saturating};
use outrigger_sdk::methods::Json;
use outrigger_sdk::params::int32;
use outrigger_sdk::service::ServiceError;
use outrigger_sdk::service::wallet::{Ownership, Received, ReceivedBy, ReceivedQuery, ReceivedView};
use outrigger_sdk::standard::address;
use outrigger_sdk::wire::{Encoded, ListView};
use outrigger_sdk::{Call, RpcError, methods};
use serde_json::Value;

use crate::viewpoint::{COINBASE_MATURITY_DEPTH, WalletViewpoint, signed};
use crate::{HistoryPlugin, destination, json};

/// The maximum number of address book entries in one request to the host.
const BATCH: u32 = 1000;
/// The approximate size of an address in a reply, and the size of each of its transaction ids, in bytes.
const ENTRY_BYTES: usize = 256;
const TXID_BYTES: usize = 67;

/// The payments with at least `min_depth` confirmations. `immature` includes immature coinbases.
fn received(
    call: &Call<'_>,
    by: ReceivedBy,
    min_depth: i64,
    immature: bool,
) -> Result<Encoded<Vec<Received>>, ServiceError> {
    // A coinbase without confirmations has left the chain.
    let min_coinbase_depth = min_depth.max(if immature { 1 } else { COINBASE_MATURITY_DEPTH });
    call.host.wallet.received(call.scope, ReceivedQuery { by, min_depth, min_coinbase_depth })
}

#[methods(category = "Wallet")]
impl HistoryPlugin {
    /// Returns the total of payments to an address of the wallet.
    ///
    /// * `address` - The address.
    /// * `minconf` (default: 1) - The minimum confirmations of a payment.
    /// * `include_immature_coinbase` - Whether immature coinbase outputs count.
    ///
    /// # Result
    /// n    (numeric) The amount in BTC.
    ///
    /// # Example
    /// bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080 6
    #[method]
    fn getreceivedbyaddress(
        call: &Call<'_>,
        address: &str,
        #[arg(kind = "numeric")] minconf: Option<&Value>,
        #[arg(default = false)] include_immature_coinbase: bool,
    ) -> Result<Value, RpcError> {
        call.wallet()?;
        let script = address::to_script(address, call.network()?);
        let script = script.map_err(|_| RpcError::not_found("Invalid Bitcoin address"))?;
        let known = call.host.wallet.scripts(call.scope, vec![script.clone()])?.pop().flatten();
        // Watched addresses count as the wallet's own.
        let ours = known.is_some_and(|info| info.ownership != Ownership::None);
        total(call, ours.then_some(script).into_iter().collect(), minconf, include_immature_coinbase)
    }

    /// Returns the total of payments to the addresses with a label.
    ///
    /// * `label` - The label. An empty label selects addresses without a label.
    /// * `minconf` (default: 1) - The minimum confirmations of a payment.
    /// * `include_immature_coinbase` - Whether immature coinbase outputs count.
    ///
    /// # Result
    /// n    (numeric) The amount in BTC.
    ///
    /// # Example
    /// rent 6
    #[method]
    fn getreceivedbylabel(
        call: &Call<'_>,
        label: &str,
        #[arg(kind = "numeric")] minconf: Option<&Value>,
        #[arg(default = false)] include_immature_coinbase: bool,
    ) -> Result<Value, RpcError> {
        call.wallet()?;
        if label == "*" {
            return Err(invalid_label());
        }
        let labelled = call.host.wallet.labelled(call.scope, label.to_owned())?;
        if labelled.is_empty() {
            return Err(RpcError::wallet("Label not found in wallet"));
        }
        let is_any_ours = labelled.iter().any(|address| address.ownership != Ownership::None);
        let scripts = labelled.into_iter().filter(|_| is_any_ours).map(|address| address.script).collect();
        total(call, scripts, minconf, include_immature_coinbase)
    }

    /// Lists the total of payments to each address.
    ///
    /// * `minconf` (default: 1) - The minimum confirmations of a payment.
    /// * `include_empty` - Whether to list addresses without payments.
    /// * `include_watchonly` (default: true for watch-only wallets, otherwise false) - Whether to list watched
    ///   addresses.
    /// * `address_filter` - List only this address. An empty text lists all addresses.
    /// * `include_immature_coinbase` - Whether immature coinbase outputs count.
    ///
    /// # Result
    /// [{"involvesWatchonly": true, "address": "...", "amount": n, "confirmations": n, "label": "...", "txids":
    /// ["..."]}, ...]    (json array) involvesWatchonly is present for watched addresses only. confirmations are
    /// those of the latest payment.
    ///
    /// # Example
    /// 6 true
    #[method]
    fn listreceivedbyaddress(
        call: &Call<'_>,
        #[arg(kind = "numeric")] minconf: Option<&Value>,
        #[arg(default = false)] include_empty: bool,
        include_watchonly: Option<bool>,
        address_filter: Option<&str>,
        #[arg(default = false)] include_immature_coinbase: bool,
    ) -> Result<Json, RpcError> {
        let network = call.network()?;
        let listing =
            Listing::of(call, minconf, include_empty, include_watchonly, address_filter, include_immature_coinbase)?;
        let entries = listing.entries()?;
        let txids: usize = entries.iter().map(|entry| entry.txids().len()).sum();
        let mut reply = Vec::with_capacity(entries.len() * ENTRY_BYTES + txids * TXID_BYTES);
        reply.push(b'[');
        let mut address = String::new();
        for entry in entries {
            address.clear();
            address::write_address(entry.script, network, &mut address);
            json::item(&mut reply);
            reply.push(b'{');
            write_watched(&mut reply, entry.watched());
            json::key!(&mut reply, "address", plain, &address);
            write_sum(&mut reply, entry.amount(), entry.received.map(|received| received.depth), entry.label);
            json::key!(&mut reply, "txids", hashes, entry.txids().iter());
            reply.push(b'}');
        }
        reply.push(b']');
        Ok(Json(reply))
    }

    /// Lists the total of payments to the addresses of each label.
    ///
    /// * `minconf` (default: 1) - The minimum confirmations of a payment.
    /// * `include_empty` - Whether to list labels without payments.
    /// * `include_watchonly` (default: true for watch-only wallets, otherwise false) - Whether watched addresses
    ///   count.
    /// * `include_immature_coinbase` - Whether immature coinbase outputs count.
    ///
    /// # Result
    /// [{"involvesWatchonly": true, "amount": n, "confirmations": n, "label": "..."}, ...]    (json array) Sorted by
    /// label. confirmations are those of the latest payment.
    ///
    /// # Example
    /// 6 true
    #[method]
    fn listreceivedbylabel(
        call: &Call<'_>,
        #[arg(kind = "numeric")] minconf: Option<&Value>,
        #[arg(default = false)] include_empty: bool,
        include_watchonly: Option<bool>,
        #[arg(default = false)] include_immature_coinbase: bool,
    ) -> Result<Json, RpcError> {
        let listing = Listing::of(call, minconf, include_empty, include_watchonly, None, include_immature_coinbase)?;
        let mut labels = BTreeMap::<&str, LabelSum>::new();
        for entry in listing.entries()? {
            let sum = labels.entry(entry.label).or_default();
            sum.amount = sum.amount.saturating_add(entry.amount());
            sum.depth = sum.depth.into_iter().chain(entry.received.map(|received| received.depth)).min();
            // As in bitcoind, only the last address of a label counts.
            sum.watched = entry.watched();
        }
        let mut reply = Vec::from(b"[".as_slice());
        for (label, sum) in labels {
            json::item(&mut reply);
            reply.push(b'{');
            write_watched(&mut reply, sum.watched);
            write_sum(&mut reply, sum.amount, sum.depth, label);
            reply.push(b'}');
        }
        reply.push(b']');
        Ok(Json(reply))
    }
}

/// The total of the payments to these scripts.
fn total(call: &Call<'_>, scripts: Vec<ScriptBuf>, minconf: Option<&Value>, immature: bool) -> Result<Value, RpcError> {
    if scripts.is_empty() {
        return Err(RpcError::wallet("Address not found in wallet"));
    }
    let min_depth = minconf.map_or(Ok(1), int32)?.into();
    let by = ReceivedBy::Scripts { scripts };
    let payments = received(call, by, min_depth, immature)?;
    let amounts = payments.view()?.iter().map(|received| received.amount);
    let total = amounts.fold(Amount::ZERO, |total, amount| total.saturating_add(amount));
    Ok(amount::to_json(total))
}

/// An address of the address book.
struct Entry<'a> {
    script: &'a Script,
    label: &'a str,
    /// `None` without payments.
    received: Option<ReceivedView<'a>>,
}

impl<'a> Entry<'a> {
    /// `None` for a script without an entry in the address book: change, or a script without an address.
    fn of(received: ReceivedView<'a>) -> Option<Self> {
        Some(Self { script: received.script, label: received.label?, received: Some(received) })
    }

    fn watched(&self) -> bool {
        self.received.is_some_and(|received| received.ownership == Ownership::WatchOnly)
    }

    fn txids(&self) -> ListView<'a, Txid> {
        self.received.map_or(ListView::EMPTY, |received| received.txids)
    }

    fn amount(&self) -> Amount {
        self.received.map_or(Amount::ZERO, |received| received.amount)
    }
}

/// The payments to the addresses of a label.
#[derive(Default)]
struct LabelSum {
    amount: Amount,
    depth: Option<i64>,
    watched: bool,
}

fn write_watched(out: &mut Vec<u8>, watched: bool) {
    if watched {
        json::key!(out, "involvesWatchonly", boolean, true);
    }
}

fn write_sum(out: &mut Vec<u8>, amount: Amount, depth: Option<i64>, label: &str) {
    json::key!(out, "amount", bitcoin, signed(amount));
    json::key!(out, "confirmations", number, depth.unwrap_or(0));
    json::key!(out, "label", text, label);
}

/// The payments and addresses of a listing.
struct Listing {
    viewpoint: WalletViewpoint,
    received: Encoded<Vec<Received>>,
    /// The addresses to list even without payments, with their labels. The address book also has addresses of others.
    book: Vec<(ScriptBuf, String)>,
}

impl Listing {
    fn of(
        call: &Call<'_>,
        minconf: Option<&Value>,
        include_empty: bool,
        include_watchonly: Option<bool>,
        address_filter: Option<&str>,
        immature: bool,
    ) -> Result<Self, RpcError> {
        let wallet = call.wallet()?;
        let min_depth = minconf.map_or(Ok(1), int32)?.into();
        let viewpoint = WalletViewpoint::of(call, &wallet, include_watchonly)?;
        let filter = address_filter.filter(|text| !text.is_empty());
        let only = filter.map(|address| address::to_script(address, viewpoint.network)).transpose();
        let only = only.map_err(|_| RpcError::wallet("address_filter parameter was invalid"))?;
        let by = match only.clone() {
            Some(script) => ReceivedBy::Scripts { scripts: vec![script] },
            None => ReceivedBy::AddressBook,
        };
        let received = received(call, by, min_depth, immature)?;
        let book = if include_empty { address_book(call, only)? } else { Vec::new() };
        Ok(Self { viewpoint, received, book })
    }

    /// The addresses in bitcoind's order.
    fn entries(&self) -> Result<Vec<Entry<'_>>, ServiceError> {
        let ours = self.received.view()?.iter().filter(|received| self.viewpoint.owns(received.ownership));
        let mut entries: Vec<Entry<'_>> = ours.filter_map(Entry::of).collect();
        if !self.book.is_empty() {
            let listed: HashSet<&Script> = entries.iter().map(|entry| entry.script).collect();
            let empty = self.book.iter().filter(|(script, _)| !listed.contains(script.as_script()));
            entries.extend(empty.map(|(script, label)| Entry { script, label, received: None }));
        }
        entries.sort_by_cached_key(|entry| destination::order(entry.script));
        Ok(entries)
    }
}

/// The address book, or the entry of one address.
fn address_book(call: &Call<'_>, only: Option<ScriptBuf>) -> Result<Vec<(ScriptBuf, String)>, ServiceError> {
    let shows = |ownership| !call.rules.received_of_own_only || ownership != Ownership::None;
    if let Some(script) = only {
        let known = call.host.wallet.scripts(call.scope, vec![script.clone()])?.pop().flatten();
        let known = known.filter(|info| shows(info.ownership));
        return Ok(known.and_then(|info| info.label).map(|label| (script, label)).into_iter().collect());
    }
    let (mut entries, mut after) = (Vec::new(), None);
    loop {
        let batch = call.host.wallet.labels(call.scope, after, BATCH)?;
        let shown = batch.entries.into_iter().filter(|entry| shows(entry.ownership));
        entries.extend(shown.map(|entry| (entry.script, entry.label)));
        after = batch.next;
        if after.is_none() {
            return Ok(entries);
        }
    }
}
