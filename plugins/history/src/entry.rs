//! The entries of a transaction in gettransaction, listtransactions and listsinceblock: one for each payment.
//!
//! The writer converts the wallet's row directly to JSON in the reply, with the keys in bitcoind's order.

use std::collections::{BTreeMap, BTreeSet};

use bitcoin::hashes::Hash;
use bitcoin::{Amount, SignedAmount, Txid, Wtxid};
use outrigger_sdk::amount::Saturating;
use outrigger_sdk::service::ServiceError;
use outrigger_sdk::service::wallet::{
    HistoryBatchView, HistoryRowView, Ownership, Replaceable, TxState, UnsettledStateView, WalletOutputView,
    WalletTransactionView,
};
use outrigger_sdk::standard::address;
use outrigger_sdk::wire::ListView;
use serde_json::Value;

use crate::json;
use crate::viewpoint::{WalletViewpoint, signed};
use outrigger_sdk::Call;

/// A transaction of the wallet, with its batch.
#[derive(Clone, Copy)]
pub struct WalletTx<'a> {
    pub transaction: WalletTransactionView<'a>,
    /// The state that depends on the mempool and on other transactions.
    pub unsettled: UnsettledStateView<'a>,
    pub batch: HistoryBatchView<'a>,
}

impl<'a> WalletTx<'a> {
    pub fn open(row: &HistoryRowView<'a>, batch: HistoryBatchView<'a>) -> Result<Self, ServiceError> {
        let (transaction, unsettled) = row.open()?;
        Ok(Self { transaction, unsettled, batch })
    }
}

/// The filter of a listing.
#[derive(Clone, Copy, Default)]
pub struct Selection<'a> {
    /// Only receive entries with this label. The empty label includes outputs without an entry in the address book.
    pub label: Option<&'a str>,
    /// Includes receive entries of conflicted transactions.
    pub any_depth: bool,
    /// Includes the change of transactions that spend the wallet's coins.
    pub change: bool,
}

#[derive(Clone, Copy)]
pub struct Entry<'a> {
    output: WalletOutputView<'a>,
    vout: usize,
    /// The fee of a send entry; `None` for a receive entry.
    sent: Option<SignedAmount>,
}

/// The entries of a transaction: all send entries in the order of the outputs, then all receive entries.
pub fn entries<'a>(
    viewpoint: WalletViewpoint,
    transaction: &WalletTransactionView<'a>,
    selection: Selection<'_>,
) -> impl Iterator<Item = Entry<'a>> {
    let (fee, outputs) = (viewpoint.fee(transaction), transaction.outputs);
    // Outputs to change addresses appear on request, and always if the transaction spends none of the wallet's coins.
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

/// If more answers than this are kept, the next request discards them first. The same descriptor occurs in many batches.
const KEPT: usize = 1_000;

/// The host's answers about data that the rows do not contain: for the current batch and some earlier ones, by key.
struct Answers<K, V>(BTreeMap<K, V>);

impl<K: Ord + Copy, V> Answers<K, V> {
    /// The answer about a key. One request covers the keys that `collect` finds in the transactions of the batch.
    fn of(
        &mut self,
        key: K,
        batch: HistoryBatchView<'_>,
        collect: impl Fn(&WalletTransactionView<'_>, &UnsettledStateView<'_>, &mut BTreeSet<K>),
        ask: impl FnOnce(Vec<K>) -> Result<Vec<V>, ServiceError>,
    ) -> Result<Option<&V>, ServiceError> {
        if !self.0.contains_key(&key) {
            let mut keys = BTreeSet::new();
            for row in batch.rows.iter() {
                let (transaction, unsettled) = row.open()?;
                collect(&transaction, &unsettled, &mut keys);
            }
            let answers = ask(keys.iter().copied().collect())?;
            if self.0.len() > KEPT {
                self.0.clear();
            }
            self.0.extend(keys.into_iter().zip(answers));
        }
        Ok(self.0.get(&key))
    }
}

/// Writes entries as JSON.
pub struct EntryWriter<'q> {
    pub viewpoint: WalletViewpoint,
    pub call: &'q Call<'q>,
    /// What is written.
    pub out: Vec<u8>,
    /// The texts of descriptors by number, as JSON with its quotes; `None` if the wallet does not know the number.
    texts: Answers<u32, Option<String>>,
    replaceable: Answers<Txid, Replaceable>,
    /// The wtxids of a transaction's other witnesses.
    alternates: Answers<Txid, Vec<Wtxid>>,
    /// The JSON of the keys that all entries of the current transaction share, with a comma before it.
    shared: Vec<u8>,
    /// A buffer for addresses.
    address: String,
}

impl<'q> EntryWriter<'q> {
    pub fn new(call: &'q Call<'q>, viewpoint: WalletViewpoint) -> Self {
        Self {
            viewpoint,
            call,
            out: Vec::new(),
            texts: Answers(BTreeMap::new()),
            replaceable: Answers(BTreeMap::new()),
            alternates: Answers(BTreeMap::new()),
            shared: Vec::new(),
            address: String::new(),
        }
    }

    /// Writes the shared keys for the entries of a transaction.
    pub fn begin(&mut self, tx: &WalletTx<'_>) -> Result<(), ServiceError> {
        let before = std::mem::replace(&mut self.out, std::mem::take(&mut self.shared));
        self.out.clear();
        let written = self.write_shared(tx);
        self.shared = std::mem::replace(&mut self.out, before);
        written
    }

    /// Writes the keys that all entries of a transaction share, which are also keys of gettransaction's object.
    pub fn write_shared(&mut self, tx: &WalletTx<'_>) -> Result<(), ServiceError> {
        write_place(&mut self.out, self.viewpoint, tx);
        let (call, txid) = (self.call, tx.transaction.txid);
        if call.rules.alternate_wtxids {
            let wtxids = self.alternates.of(
                txid,
                tx.batch,
                |transaction, _, txids| txids.extend([transaction.txid]),
                |txids| call.host.wallet.alternate_wtxids(call.scope, txids),
            )?;
            json::key!(&mut self.out, "alternate_wtxids", hashes, wtxids.into_iter().flatten().copied());
        }
        let out = &mut self.out;
        json::key!(out, "walletconflicts", hashes, tx.unsettled.conflicts.iter());
        json::key!(out, "mempoolconflicts", hashes, tx.unsettled.mempool_conflicts.iter());
        json::key!(out, "time", number, tx.transaction.time);
        json::key!(out, "timereceived", number, tx.transaction.time_received);
        if call.rules.bip125_key {
            let text = match self.replaceability(tx)? {
                _ if self.viewpoint.depth(&tx.transaction) > 0 => "no",
                Replaceable::No => "no",
                Replaceable::Yes => "yes",
                Replaceable::Unknown => "unknown",
            };
            json::key!(&mut self.out, "bip125-replaceable", plain, text);
        }
        for (key, value) in tx.transaction.metadata.iter() {
            json::text_key(&mut self.out, key);
            json::text(&mut self.out, value);
        }
        Ok(())
    }

    /// Whether a transaction can be replaced (BIP 125).
    fn replaceability(&mut self, tx: &WalletTx<'_>) -> Result<Replaceable, ServiceError> {
        if !needs_node(&tx.transaction, &tx.unsettled) {
            return Ok(tx.unsettled.replaceable);
        }
        let call = self.call;
        let found = self.replaceable.of(
            tx.transaction.txid,
            tx.batch,
            |transaction, unsettled, txids| {
                txids.extend(needs_node(transaction, unsettled).then_some(transaction.txid));
            },
            |txids| call.host.wallet.replaceable(call.scope, txids),
        )?;
        Ok(found.copied().unwrap_or(Replaceable::Unknown))
    }

    /// Writes the key `parent_descs` with the texts of these descriptors.
    fn write_descriptors(
        &mut self,
        numbers: ListView<'_, u32>,
        batch: HistoryBatchView<'_>,
    ) -> Result<(), ServiceError> {
        let (call, out) = (self.call, &mut self.out);
        json::key!(out, "parent_descs");
        out.push(b'[');
        for number in numbers.iter() {
            let text = self.texts.of(
                number,
                batch,
                |transaction, _, numbers| {
                    numbers.extend(transaction.outputs.iter().flat_map(|output| output.descriptors.iter()));
                },
                |numbers| {
                    let texts = call.host.wallet.descriptor_texts(call.scope, numbers)?.into_iter();
                    Ok(texts.map(|text| Some(Value::String(text?).to_string())).collect())
                },
            )?;
            if let Some(Some(text)) = text {
                json::item(out);
                out.extend_from_slice(text.as_bytes());
            }
        }
        out.push(b']');
        Ok(())
    }

    /// Writes an entry. `with_shared` writes the shared keys of [`EntryWriter::begin`] into it; gettransaction writes them
    /// around its `details`.
    pub fn write(&mut self, tx: &WalletTx<'_>, entry: Entry<'_>, with_shared: bool) -> Result<(), ServiceError> {
        let (viewpoint, transaction, output) = (self.viewpoint, &tx.transaction, &entry.output);
        let out = &mut self.out;
        out.push(b'{');
        if transaction.debit_watch_only > Amount::ZERO || output.ownership == Ownership::WatchOnly {
            json::key!(out, "involvesWatchonly", boolean, true);
        }
        self.address.clear();
        if address::write_address(output.script, viewpoint.network, &mut self.address) {
            json::key!(out, "address", plain, &self.address);
        }
        if entry.sent.is_none() {
            self.write_descriptors(output.descriptors, tx.batch)?;
        }
        let out = &mut self.out;
        let value = match entry.sent {
            Some(_) => SignedAmount::ZERO.saturating_sub(signed(output.value)),
            None => signed(output.value),
        };
        json::key!(out, "category", plain, if entry.sent.is_some() { "send" } else { viewpoint.category(transaction) });
        json::key!(out, "amount", bitcoin, value);
        if let Some(label) = output.label {
            json::key!(out, "label", text, label);
        }
        json::key!(out, "vout", number, entry.vout);
        // `abandoned` is the last key of a send entry, but precedes the shared keys of a receive entry.
        let abandoned = transaction.state == TxState::Abandoned;
        match entry.sent {
            Some(fee) => json::key!(out, "fee", bitcoin, fee),
            None => json::key!(out, "abandoned", boolean, abandoned),
        }
        if with_shared {
            out.extend_from_slice(&self.shared);
        }
        if entry.sent.is_some() {
            json::key!(out, "abandoned", boolean, abandoned);
        }
        out.push(b'}');
        Ok(())
    }

    /// Writes all entries of a transaction as items of an array.
    pub fn write_all(&mut self, tx: &WalletTx<'_>, selection: Selection<'_>) -> Result<(), ServiceError> {
        self.begin(tx)?;
        for entry in entries(self.viewpoint, &tx.transaction, selection) {
            json::item(&mut self.out);
            self.write(tx, entry, true)?;
        }
        Ok(())
    }
}

/// Whether only the node knows if a transaction can be replaced: without the signal it may have an ancestor with the signal.
fn needs_node(transaction: &WalletTransactionView<'_>, unsettled: &UnsettledStateView<'_>) -> bool {
    transaction.state == TxState::InMempool && unsettled.replaceable == Replaceable::Unknown
}

fn write_place(out: &mut Vec<u8>, viewpoint: WalletViewpoint, tx: &WalletTx<'_>) {
    let transaction = &tx.transaction;
    json::key!(out, "confirmations", number, viewpoint.depth(transaction));
    if transaction.coinbase {
        json::key!(out, "generated", boolean, true);
    }
    match transaction.state {
        TxState::Confirmed { block, height, index, time } => {
            json::key!(out, "blockhash", hash, block.as_byte_array());
            json::key!(out, "blockheight", number, height);
            json::key!(out, "blockindex", number, index);
            json::key!(out, "blocktime", number, time);
        }
        _ => json::key!(out, "trusted", boolean, tx.unsettled.trusted),
    }
    json::key!(out, "txid", hash, transaction.txid.as_byte_array());
    json::key!(out, "wtxid", hash, transaction.wtxid.as_byte_array());
}
