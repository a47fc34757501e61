//! The entries of a transaction: what was sent and what was received, as the three listing RPCs show them.
//!
//! Serialised straight from the wallet's row into the reply, in bitcoind's order of keys; what later releases added
//! stands behind the keys of 0.21.

use bitcoin::{Network, Txid};
use outrigger_sdk::amount::Btc;
use outrigger_sdk::service::wallet::{Ownership, Replaceable, Synced, TxState, WalletOutput, WalletTransaction};
use outrigger_sdk::standard::address;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// The depth from which a coinbase can be spent.
pub const COINBASE_MATURITY_DEPTH: i64 = 101;

/// From where a transaction is looked at.
#[derive(Clone, Copy)]
pub struct Lens {
    /// The block up to which the wallet has followed the chain: depths are counted from here.
    pub synced: Synced,
    /// Whether watched scripts count as ours.
    pub watch_only: bool,
    /// For addresses.
    pub network: Network,
}

impl Lens {
    /// How deep a transaction is: 0 when unconfirmed, negative when another one made it impossible.
    pub fn depth(&self, transaction: &WalletTransaction) -> i64 {
        let depth_of = |height: u32| i64::from(self.synced.height) - i64::from(height) + 1;
        match transaction.state {
            TxState::Confirmed { height, .. } => depth_of(height),
            TxState::Conflicted { height, .. } => -depth_of(height),
            TxState::InMempool | TxState::Inactive | TxState::Abandoned => 0,
        }
    }

    /// Whether an output counts as ours.
    pub fn owns(&self, output: &WalletOutput) -> bool {
        match output.ownership {
            Ownership::Spendable => true,
            Ownership::WatchOnly => self.watch_only,
            Ownership::None => false,
        }
    }

    /// What the transaction spends of ours, in satoshi.
    pub fn debit(&self, transaction: &WalletTransaction) -> i64 {
        let watched = if self.watch_only { transaction.debit_watch_only } else { 0 };
        satoshi(transaction.debit_spendable + watched)
    }

    /// What it pays to us, in satoshi; nothing while it is an immature coinbase.
    pub fn credit(&self, transaction: &WalletTransaction) -> i64 {
        if transaction.coinbase && self.depth(transaction) < COINBASE_MATURITY_DEPTH {
            return 0;
        }
        transaction.outputs.iter().filter(|output| self.owns(output)).map(|output| satoshi(output.value)).sum()
    }

    /// The fee as replies show it: outputs less what was spent, so normally negative; none when nothing of ours was spent.
    pub fn fee(&self, transaction: &WalletTransaction) -> Option<i64> {
        let debit = self.debit(transaction);
        (debit > 0).then(|| satoshi(transaction.total_output) - debit)
    }

    fn category(&self, transaction: &WalletTransaction) -> &'static str {
        if !transaction.coinbase {
            return "receive";
        }
        match self.depth(transaction) {
            ..1 => "orphan",
            1..COINBASE_MATURITY_DEPTH => "immature",
            _ => "generate",
        }
    }
}

/// Money fits in an `i64`: there are at most 2.1 * 10^15 satoshi.
fn satoshi(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// What a listing selects.
#[derive(Clone, Copy, Default)]
pub struct Selection<'a> {
    /// Only what was received with this label.
    pub label: Option<&'a str>,
    /// Receive entries also of transactions that another one made impossible.
    pub any_depth: bool,
}

/// The entries of a transaction: all sent ones in the order of the outputs, then all received ones.
pub fn entries<'a>(
    lens: Lens,
    transaction: &'a WalletTransaction,
    selection: Selection<'_>,
    with_block: bool,
) -> Vec<Entry<'a>> {
    let fee = lens.fee(transaction);
    // Of what we sent ourselves, change is not shown at all.
    let shown = || transaction.outputs.iter().enumerate().filter(|(_, output)| fee.is_none() || !output.change);
    let entry = |vout: usize, output: &'a WalletOutput, sent: Option<i64>| Entry {
        lens,
        transaction,
        output,
        vout,
        sent,
        with_block,
    };
    let mut entries = Vec::new();
    if let (Some(fee), None) = (fee, selection.label) {
        entries.extend(shown().map(|(vout, output)| entry(vout, output, Some(fee))));
    }
    if selection.any_depth || lens.depth(transaction) >= 0 {
        let wanted = |output: &WalletOutput| {
            selection.label.is_none_or(|label| output.label.as_deref().unwrap_or_default() == label)
        };
        let received = shown().filter(|(_, output)| lens.owns(output) && wanted(output));
        entries.extend(received.map(|(vout, output)| entry(vout, output, None)));
    }
    entries
}

/// One entry.
pub struct Entry<'a> {
    lens: Lens,
    transaction: &'a WalletTransaction,
    output: &'a WalletOutput,
    vout: usize,
    /// The fee, for a send entry.
    sent: Option<i64>,
    with_block: bool,
}

impl Serialize for Entry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { lens, transaction, output, .. } = self;
        let mut map = serializer.serialize_map(None)?;
        if transaction.debit_watch_only > 0 || output.ownership == Ownership::WatchOnly {
            map.serialize_entry("involvesWatchonly", &true)?;
        }
        if let Some(address) = address::destination_of(&output.script, lens.network) {
            map.serialize_entry("address", &address)?;
        }
        let value = satoshi(output.value);
        map.serialize_entry("category", if self.sent.is_some() { "send" } else { lens.category(transaction) })?;
        map.serialize_entry("amount", &Btc(if self.sent.is_some() { -value } else { value }))?;
        if let Some(label) = &output.label {
            map.serialize_entry("label", label)?;
        }
        map.serialize_entry("vout", &self.vout)?;
        if let Some(fee) = self.sent {
            map.serialize_entry("fee", &Btc(fee))?;
        }
        if self.with_block {
            serialize_block(&mut map, *lens, transaction)?;
        }
        if self.sent.is_some() {
            map.serialize_entry("abandoned", &(transaction.state == TxState::Abandoned))?;
        }
        if self.with_block {
            serialize_later_keys(&mut map, transaction)?;
        }
        if self.sent.is_none() && !output.parents.is_empty() {
            map.serialize_entry("parent_descs", &output.parents)?;
        }
        map.end()
    }
}

/// The keys that all three RPCs share.
pub fn serialize_block<M: SerializeMap>(
    map: &mut M,
    lens: Lens,
    transaction: &WalletTransaction,
) -> Result<(), M::Error> {
    let depth = lens.depth(transaction);
    map.serialize_entry("confirmations", &depth)?;
    if transaction.coinbase {
        map.serialize_entry("generated", &true)?;
    }
    match transaction.state {
        TxState::Confirmed { block, height, index, time } => {
            map.serialize_entry("blockhash", &block)?;
            map.serialize_entry("blockheight", &height)?;
            map.serialize_entry("blockindex", &index)?;
            map.serialize_entry("blocktime", &time)?;
        }
        _ => map.serialize_entry("trusted", &transaction.trusted)?,
    }
    map.serialize_entry("txid", &transaction.txid)?;
    map.serialize_entry("walletconflicts", &transaction.conflicts)?;
    map.serialize_entry("time", &transaction.time)?;
    map.serialize_entry("timereceived", &transaction.time_received)?;
    let replaceable = match transaction.replaceable {
        _ if depth > 0 => "no",
        Replaceable::No => "no",
        Replaceable::Yes => "yes",
        Replaceable::Unknown => "unknown",
    };
    map.serialize_entry("bip125-replaceable", replaceable)?;
    for (key, value) in &transaction.metadata {
        map.serialize_entry(key, value)?;
    }
    Ok(())
}

/// What release 29 adds to them.
pub fn serialize_later_keys<M: SerializeMap>(map: &mut M, transaction: &WalletTransaction) -> Result<(), M::Error> {
    map.serialize_entry("wtxid", &transaction.wtxid)?;
    map.serialize_entry::<str, Vec<Txid>>("mempoolconflicts", &transaction.mempool_conflicts)
}
