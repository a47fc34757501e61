//! The entries of a transaction: what was sent and what was received, as the three listing RPCs show them.
//!
//! Written straight from the wallet's row into the reply, in Bitcoin Core 29's order of keys.

use bitcoin::hashes::Hash;
use bitcoin::{Amount, SignedAmount};
use outrigger_sdk::amount::Saturating;
use outrigger_sdk::service::wallet::{
    HistoryBatchView, HistoryRowView, Ownership, Replaceable, TxState, UnsettledStateView, WalletOutputView,
    WalletTransactionView,
};
use outrigger_sdk::standard::address;

use crate::CallContext;
use crate::error::HistoryError;
use crate::json;
use crate::replaceable::Replaceability;
use crate::texts::DescriptorTexts;
use crate::viewpoint::{WalletViewpoint, signed};

/// A transaction of the wallet, with the batch that it came in.
#[derive(Clone, Copy)]
pub struct WalletTx<'a> {
    /// It.
    pub transaction: WalletTransactionView<'a>,
    /// What the moment says of it.
    pub unsettled: UnsettledStateView<'a>,
    /// The batch.
    pub batch: HistoryBatchView<'a>,
}

impl<'a> WalletTx<'a> {
    /// Opens a row of a batch.
    pub fn open(row: &HistoryRowView<'a>, batch: HistoryBatchView<'a>) -> Result<Self, HistoryError> {
        let (transaction, unsettled) = row.open()?;
        Ok(Self { transaction, unsettled, batch })
    }
}

/// What a listing selects.
#[derive(Clone, Copy, Default)]
pub struct Selection<'a> {
    /// Only what was received with this label; the empty one also stands for outputs without an entry in the address book.
    pub label: Option<&'a str>,
    /// Receive entries also of transactions that another one made impossible.
    pub any_depth: bool,
    /// Entries also of the change of transactions that spend ours.
    pub change: bool,
}

/// One entry.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    output: WalletOutputView<'a>,
    vout: usize,
    /// The fee, for a send entry.
    sent: Option<SignedAmount>,
}

/// The entries of a transaction: all sent ones in the order of the outputs, then all received ones.
pub fn entries<'a>(
    viewpoint: WalletViewpoint,
    transaction: &WalletTransactionView<'a>,
    selection: Selection<'_>,
) -> impl Iterator<Item = Entry<'a>> {
    let (fee, outputs) = (viewpoint.fee(transaction), transaction.outputs);
    // In a transaction that spends ours, change is shown only where it was asked for.
    let change = selection.change || fee.is_none();
    let shown = move || outputs.iter().enumerate().filter(move |(_, output)| change || !output.change);
    let sent = fee.filter(|_| selection.label.is_none()).into_iter();
    let sent = sent.flat_map(move |fee| shown().map(move |(vout, output)| Entry { output, vout, sent: Some(fee) }));
    let wanted = move |output: &WalletOutputView<'_>| {
        selection.label.is_none_or(|label| output.label.unwrap_or_default() == label)
    };
    let received = (selection.any_depth || viewpoint.depth(transaction) >= 0).then(shown).into_iter().flatten();
    let received = received.filter(move |(_, output)| viewpoint.owns(output.ownership) && wanted(output));
    sent.chain(received.map(|(vout, output)| Entry { output, vout, sent: None }))
}

/// Writes the entries of gettransaction, listtransactions and listsinceblock as JSON, one after the other.
pub struct EntryWriter<'q> {
    /// From where transactions are looked at.
    pub viewpoint: WalletViewpoint,
    texts: DescriptorTexts<'q>,
    replaceability: Replaceability<'q>,
    /// The keys that all entries of the transaction at hand share, written once, led by a comma.
    shared: Vec<u8>,
    /// Where an address is written first.
    address: String,
}

impl<'q> EntryWriter<'q> {
    /// A writer for one call.
    pub fn new(context: &'q CallContext<'q>, viewpoint: WalletViewpoint) -> Self {
        Self {
            viewpoint,
            texts: DescriptorTexts::new(context),
            replaceability: Replaceability::new(context),
            shared: Vec::new(),
            address: String::new(),
        }
    }

    /// Prepares for the entries of a transaction, with the keys that all three RPCs share.
    pub fn begin(&mut self, tx: &WalletTx<'_>) -> Result<(), HistoryError> {
        let mut shared = std::mem::take(&mut self.shared);
        shared.clear();
        self.write_shared(&mut shared, tx)?;
        self.shared = shared;
        Ok(())
    }

    /// Writes the keys that all three RPCs share.
    pub fn write_shared(&mut self, out: &mut Vec<u8>, tx: &WalletTx<'_>) -> Result<(), HistoryError> {
        let replaceable = self.replaceability.of(tx)?;
        write_shared(out, self.viewpoint, tx, replaceable);
        Ok(())
    }

    /// Writes an entry of the transaction that was begun, without the keys that it shares with the others where these
    /// stand around it (`details`).
    pub fn write(
        &mut self,
        out: &mut Vec<u8>,
        tx: &WalletTx<'_>,
        entry: Entry<'_>,
        with_block: bool,
    ) -> Result<(), HistoryError> {
        let (viewpoint, transaction, output) = (self.viewpoint, &tx.transaction, &entry.output);
        out.push(b'{');
        if transaction.debit_watch_only > Amount::ZERO || output.ownership == Ownership::WatchOnly {
            json::key!(out, "involvesWatchonly");
            json::boolean(out, true);
        }
        self.address.clear();
        if address::write_address(output.script, viewpoint.network, &mut self.address) {
            json::key!(out, "address");
            json::plain(out, &self.address);
        }
        if entry.sent.is_none() {
            self.texts.write(out, output.descriptors, tx.batch)?;
        }
        let value = match entry.sent {
            Some(_) => SignedAmount::ZERO.saturating_sub(signed(output.value)),
            None => signed(output.value),
        };
        json::key!(out, "category");
        json::plain(out, if entry.sent.is_some() { "send" } else { viewpoint.category(transaction) });
        json::key!(out, "amount");
        json::bitcoin(out, value);
        if let Some(label) = output.label {
            json::key!(out, "label");
            json::text(out, label);
        }
        json::key!(out, "vout");
        json::unsigned(out, entry.vout as u64);
        // What was sent says at its end whether it was given up, what was received before the shared keys.
        let abandoned = transaction.state == TxState::Abandoned;
        match entry.sent {
            Some(fee) => {
                json::key!(out, "fee");
                json::bitcoin(out, fee);
            }
            None => write_abandoned(out, abandoned),
        }
        if with_block {
            out.extend_from_slice(&self.shared);
        }
        if entry.sent.is_some() {
            write_abandoned(out, abandoned);
        }
        out.push(b'}');
        Ok(())
    }

    /// Writes all entries of a transaction as items of an array.
    pub fn write_all(
        &mut self,
        out: &mut Vec<u8>,
        tx: &WalletTx<'_>,
        selection: Selection<'_>,
    ) -> Result<(), HistoryError> {
        self.begin(tx)?;
        for entry in entries(self.viewpoint, &tx.transaction, selection) {
            json::item(out);
            self.write(out, tx, entry, true)?;
        }
        Ok(())
    }
}

fn write_abandoned(out: &mut Vec<u8>, abandoned: bool) {
    json::key!(out, "abandoned");
    json::boolean(out, abandoned);
}

fn write_shared(out: &mut Vec<u8>, viewpoint: WalletViewpoint, tx: &WalletTx<'_>, replaceable: Replaceable) {
    let (transaction, depth) = (&tx.transaction, viewpoint.depth(&tx.transaction));
    json::key!(out, "confirmations");
    json::signed(out, depth);
    if transaction.coinbase {
        json::key!(out, "generated");
        json::boolean(out, true);
    }
    match transaction.state {
        TxState::Confirmed { block, height, index, time } => {
            json::key!(out, "blockhash");
            json::hash(out, block.as_byte_array());
            json::key!(out, "blockheight");
            json::unsigned(out, height.into());
            json::key!(out, "blockindex");
            json::unsigned(out, index.into());
            json::key!(out, "blocktime");
            json::unsigned(out, time.into());
        }
        _ => {
            json::key!(out, "trusted");
            json::boolean(out, tx.unsettled.trusted);
        }
    }
    json::key!(out, "txid");
    json::hash(out, transaction.txid.as_byte_array());
    json::key!(out, "wtxid");
    json::hash(out, transaction.wtxid.as_byte_array());
    json::key!(out, "walletconflicts");
    json::hashes(out, tx.unsettled.conflicts.iter());
    json::key!(out, "mempoolconflicts");
    json::hashes(out, tx.unsettled.mempool_conflicts.iter());
    json::key!(out, "time");
    json::unsigned(out, transaction.time);
    json::key!(out, "timereceived");
    json::unsigned(out, transaction.time_received);
    json::key!(out, "bip125-replaceable");
    json::plain(
        out,
        match replaceable {
            _ if depth > 0 => "no",
            Replaceable::No => "no",
            Replaceable::Yes => "yes",
            Replaceable::Unknown => "unknown",
        },
    );
    for (key, value) in transaction.metadata {
        json::text_key(out, key);
        json::text(out, value);
    }
}
