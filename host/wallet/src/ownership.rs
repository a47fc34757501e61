//! The ownership of outputs: computed when a row is written, and recomputed by a write that imports their scripts.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use bitcoin::{Amount, OutPoint, Script, ScriptBuf, Txid};
use outrigger_service::wallet::{Ownership, WalletOutput, WalletTransaction};
use outrigger_standard::{ScriptKind, classify};
use outrigger_values::amount::Saturating;

use super::error::Result;
use super::labels::Entry as LabelEntry;
use super::store::{Reading, ScriptRow, Tables, hash160, script_key, txid_from};
use super::write::Write;

/// Whether the address book lists a script. One without an address, like pay-to-pubkey, is not listed.
pub fn has_address(script: &Script) -> bool {
    use ScriptKind::{Multisig, NonStandard, NullData, PubKey};
    !matches!(classify(script), PubKey { .. } | NonStandard | Multisig { .. } | NullData)
}

pub fn p2pkh(hash: &[u8; 20]) -> ScriptBuf {
    ScriptBuf::from_bytes([&[0x76, 0xa9, 20], hash.as_slice(), &[0x88, 0xac]].concat())
}

/// The key of a script in `outputs`. A pay-to-pubkey script has the key of its P2PKH script.
pub fn outputs_key(script: &Script) -> [u8; 32] {
    match classify(script) {
        ScriptKind::PubKey { key } => script_key(&p2pkh(&hash160(key))),
        _ => script_key(script),
    }
}

/// An output in its stored form: without a label, and as change if it is ours. Readers add the current label.
pub fn owned_output(value: Amount, script: &Script, row: Option<&ScriptRow>) -> WalletOutput {
    let ownership = row.map_or(Ownership::None, ScriptRow::ownership);
    let mut descriptors: Vec<u32> = row.iter().flat_map(|row| row.owners.iter().map(|(number, _)| *number)).collect();
    descriptors.dedup();
    let change = ownership != Ownership::None;
    WalletOutput { value, script: script.to_owned(), ownership, change, label: None, descriptors }
}

/// The outputs of the wallet's transactions that other transactions spend. Reads each transaction's row once.
#[derive(Default)]
pub struct Parents(HashMap<Txid, Vec<(Ownership, Amount)>>);

impl Parents {
    /// Ownership and value of an output; `None` if the wallet does not have it.
    pub fn output(
        &mut self,
        t: &Tables,
        txn: &Reading<'_>,
        outpoint: &OutPoint,
    ) -> Result<Option<(Ownership, Amount)>> {
        let outputs = match self.0.entry(outpoint.txid) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let row = t.transaction_view(txn, &outpoint.txid)?;
                let outputs = row.iter().flat_map(|row| row.outputs.iter());
                entry.insert(outputs.map(|output| (output.ownership, output.value)).collect())
            }
        };
        Ok(outputs.get(outpoint.vout as usize).copied())
    }

    pub fn is_ours(&mut self, t: &Tables, txn: &Reading<'_>, outpoint: &OutPoint) -> Result<bool> {
        Ok(self.output(t, txn, outpoint)?.is_some_and(|(ownership, _)| ownership != Ownership::None))
    }
}

/// The values that a transaction spends from the wallet: spendable and watched.
pub fn debit(t: &Tables, txn: &Reading<'_>, inputs: &[OutPoint]) -> Result<(Amount, Amount)> {
    let (mut spendable, mut watched) = (Amount::ZERO, Amount::ZERO);
    let mut parents = Parents::default();
    for input in inputs {
        match parents.output(t, txn, input)? {
            Some((Ownership::Spendable, value)) => spendable = spendable.saturating_add(value),
            Some((Ownership::WatchOnly, value)) => watched = watched.saturating_add(value),
            Some((Ownership::None, _)) | None => {}
        }
    }
    Ok((spendable, watched))
}

impl Write<'_> {
    /// Sets the label of a script's address, with purpose `receive` if `ours`. No effect if it has no address.
    pub fn put_label(&mut self, script: &Script, label: &str, ours: bool) -> Result<()> {
        if has_address(script) {
            let key = script_key(script);
            self.put(self.t.labels, &key, label.as_bytes())?;
            let entered = !ours || self.t.scripts.get(self.reads(), &key)?.is_none();
            if entered {
                self.put(self.t.address_book, &key, script.as_bytes())?;
            } else {
                self.delete(self.t.address_book, &key)?;
            }
            self.labels.push((script.to_owned(), LabelEntry { label: label.into(), entered }));
        }
        Ok(())
    }

    /// Recomputes the rows of transactions that pay to scripts whose ownership changed, and of transactions that spend those
    /// outputs.
    pub fn rederive(&mut self) -> Result<()> {
        let mut paying = BTreeSet::new();
        let scripts = std::mem::take(&mut self.touched);
        for key in scripts.iter().map(|script| outputs_key(script)).collect::<BTreeSet<_>>() {
            for entry in self.t.outputs.prefix_iter(self.reads(), &key)? {
                let (key, _) = entry?;
                paying.insert(txid_from(key.get(32..64).unwrap_or_default())?);
            }
        }
        let mut spending = BTreeSet::new();
        for txid in paying {
            self.rederive_outputs(txid, &mut spending)?;
        }
        for txid in spending {
            self.rederive_debit(txid)?;
        }
        Ok(())
    }

    fn rederive_outputs(&mut self, txid: Txid, spending: &mut BTreeSet<Txid>) -> Result<()> {
        let Some(mut row) = self.t.transaction(self.reads(), &txid)? else { return Ok(()) };
        let (mut outputs, mut owned_anew) = (Vec::with_capacity(row.outputs.len()), false);
        for (vout, output) in (0_u32..).zip(&row.outputs) {
            let known = self.t.script(self.reads(), &output.script)?;
            let fresh = owned_output(output.value, &output.script, known.as_ref());
            if fresh.ownership != output.ownership {
                owned_anew = true;
                spending.extend(self.t.spenders(self.reads(), &OutPoint { txid, vout })?);
            }
            outputs.push(fresh);
        }
        if outputs != row.outputs {
            if owned_anew {
                self.note_payments_changed(&row)?;
            }
            row.outputs = outputs;
            self.put_transaction(&row)?;
        }
        Ok(())
    }

    pub fn rederive_debit(&mut self, txid: Txid) -> Result<()> {
        let Some(mut row) = self.t.transaction(self.reads(), &txid)? else { return Ok(()) };
        let fresh = debit(&self.t, self.reads(), &row.inputs)?;
        if fresh != (row.debit_spendable, row.debit_watch_only) {
            self.note_payments_changed(&row)?;
            (row.debit_spendable, row.debit_watch_only) = fresh;
            self.put_transaction(&row)?;
        }
        Ok(())
    }

    /// Writes a transaction's row, and updates the coins that it creates or spends.
    pub fn put_transaction(&mut self, row: &WalletTransaction) -> Result<()> {
        self.put_row(row)?;
        self.refresh_coins(row)
    }

    /// Writes a transaction's row. Only for changes that do not affect coins.
    pub fn put_row(&mut self, row: &WalletTransaction) -> Result<()> {
        self.store_row(self.t.transactions, &row.order_position.to_be_bytes(), row)?;
        self.changed.insert(row.txid);
        Ok(())
    }
}
