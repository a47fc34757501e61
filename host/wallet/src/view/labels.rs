use std::collections::BTreeSet;

use bitcoin::ScriptBuf;
use outrigger_service::Result as ServiceResult;
use outrigger_service::wallet::{LabelBatch, LabelledScript, Ownership};
use outrigger_service::wire::Blob;

use super::{MAX_BATCH, WalletView, page};
use crate::error::Result;
use crate::labels::{Entry, Labels};
use crate::store::{ScriptRow, get, script_key};

impl WalletView {
    /// The labels of the snapshot, read once.
    pub(super) fn all_labels(&self) -> Result<&Labels> {
        match self.labels.get() {
            Some(labels) => Ok(labels),
            None => {
                let labels = self.wallet.labels.at(self.t(), &self.txn)?;
                Ok(self.labels.get_or_init(|| labels))
            }
        }
    }

    /// A batch of the address book, after the key `after`.
    pub fn labels(&self, after: Option<Blob>, limit: u32) -> Result<LabelBatch> {
        let (t, txn) = (self.t(), &*self.txn);
        let (rows, more) = page(t.labels, txn, after.as_deref(), limit.clamp(1, MAX_BATCH) as usize)?;
        let next = more.then(|| rows.last().map(|(key, _)| Blob(key.clone()))).flatten();
        let mut entries = Vec::with_capacity(rows.len());
        for (key, label) in rows {
            let label = String::from_utf8_lossy(&label).into_owned();
            let row: Option<ScriptRow> = get(t.scripts, txn, &key)?;
            let ownership = row.as_ref().map_or(Ownership::None, ScriptRow::ownership);
            let entered = t.address_book.get(txn, &key)?.map(|script| ScriptBuf::from_bytes(script.to_vec()));
            // An address that was labelled as foreign and imported later is ours.
            let sending = entered.is_some() && t.imported_watch.get(txn, &key)?.is_none();
            let script = row.map(|row| row.script).or(entered);
            entries.extend(script.map(|script| LabelledScript { script, label, ownership, sending }));
        }
        Ok(LabelBatch { entries, next })
    }

    /// The labels in use, sorted. `sending` limits them to foreign addresses (true) or to the others (false).
    pub fn label_names(&self, sending: Option<bool>) -> ServiceResult<Vec<String>> {
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for (script, entry) in self.all_labels()?.iter() {
            if names.contains(&*entry.label) {
                continue;
            }
            if sending.is_none() || sending == Some(self.is_sending(script, entry)?) {
                names.insert(&entry.label);
            }
        }
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    pub fn labelled(&self, label: &str) -> ServiceResult<Vec<LabelledScript>> {
        let found = self.all_labels()?.iter().filter(|(_, entry)| &*entry.label == label);
        let address = |(script, entry): (&ScriptBuf, &Entry)| {
            let row: Option<ScriptRow> = get(self.t().scripts, &self.txn, &script_key(script))?;
            let ownership = row.as_ref().map_or(Ownership::None, ScriptRow::ownership);
            let sending = self.is_sending(script, entry)?;
            Ok(LabelledScript { script: script.clone(), label: label.to_owned(), ownership, sending })
        };
        Ok(found.map(address).collect::<Result<_>>()?)
    }

    /// Whether the address's purpose is `send`.
    fn is_sending(&self, script: &ScriptBuf, entry: &Entry) -> Result<bool> {
        // An address that was labelled as foreign and imported later is ours.
        Ok(entry.entered && self.t().imported_watch.get(&self.txn, &script_key(script))?.is_none())
    }
}
