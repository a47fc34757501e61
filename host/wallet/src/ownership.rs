//! Whose an output is, whether it is change, and what its label is: computed when a row is written, and re-derived by the
//! write that imports a script or sets a label.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use bitcoin::{Amount, OutPoint, Script, ScriptBuf, Txid};
use heed::RoTxn;
use outrigger_service::wallet::{Ownership, WalletOutput, WalletTransaction};
use outrigger_standard::{ScriptKind, classify};
use outrigger_values::amount::Saturating;

use super::error::Result;
use super::store::Tables;
use super::store::rows::ScriptRow;
use super::store::tables::{hash160, put, script_key, txid_from};
use super::write::Write;

/// The script by which the address book knows a script: itself where it has an address, none where it has none, as
/// pay-to-pubkey.
pub fn address_script(script: &Script) -> Option<ScriptBuf> {
    match classify(script) {
        ScriptKind::PubKey { .. } | ScriptKind::NonStandard | ScriptKind::Multisig { .. } | ScriptKind::NullData => {
            None
        }
        _ => Some(script.to_owned()),
    }
}

/// The P2PKH script of a key hash.
pub fn p2pkh(hash: &[u8; 20]) -> ScriptBuf {
    ScriptBuf::from_bytes([&[0x76, 0xa9, 20], hash.as_slice(), &[0x88, 0xac]].concat())
}

/// The key in `outputs` under which a script's outputs are found; pay-to-pubkey goes by the P2PKH script of its key.
pub fn outputs_key(script: &Script) -> [u8; 32] {
    match classify(script) {
        ScriptKind::PubKey { key } => script_key(&p2pkh(&hash160(key))),
        _ => script_key(script),
    }
}

/// The label of a script's address; none where it has no address or no entry.
pub fn label(t: &Tables, txn: &RoTxn<'_>, script: &Script) -> Result<Option<String>> {
    let Some(address) = address_script(script) else { return Ok(None) };
    let label = t.labels.get(txn, &script_key(&address))?;
    Ok(label.map(|label| String::from_utf8_lossy(label).into_owned()))
}

/// The longest label, in bytes, that rows of transactions and coins have themselves; it is about as long as the script that is
/// beside it.
pub const SHORT_LABEL: usize = 64;
/// What rows have in the place of a longer one. Whoever tells of them looks it up: an address may be paid many times.
const LONG_LABEL: &str = "\0";

/// A label as rows have it.
pub fn row_label(label: &str) -> &str {
    if label.len() > SHORT_LABEL || label == LONG_LABEL { LONG_LABEL } else { label }
}

/// Whether a row has something else in the place of a label.
pub fn is_long_label(label: Option<&str>) -> bool {
    label == Some(LONG_LABEL)
}

/// An output as it is stored, given what the wallet knows of its script.
pub fn owned_output(
    t: &Tables,
    txn: &RoTxn<'_>,
    value: Amount,
    script: &Script,
    row: Option<&ScriptRow>,
) -> Result<WalletOutput> {
    let ownership = row.map_or(Ownership::None, ScriptRow::ownership);
    let label = label(t, txn, script)?.map(|label| row_label(&label).to_owned());
    let mut descriptors: Vec<u32> = row.iter().flat_map(|row| row.owners.iter().map(|(number, _)| *number)).collect();
    descriptors.dedup();
    let change = ownership != Ownership::None && label.is_none();
    Ok(WalletOutput { value, script: script.to_owned(), ownership, change, label, descriptors })
}

/// The outputs of the wallet's transactions that other transactions spend. The row of each transaction is read once, however
/// many of its outputs are asked for.
#[derive(Default)]
pub struct Parents(HashMap<Txid, Vec<(Ownership, Amount)>>);

impl Parents {
    /// The ownership and the value of an output; none where the wallet has no such output.
    pub fn output(&mut self, t: &Tables, txn: &RoTxn<'_>, outpoint: &OutPoint) -> Result<Option<(Ownership, Amount)>> {
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

    /// Whether an outpoint is an output of the wallet.
    pub fn is_ours(&mut self, t: &Tables, txn: &RoTxn<'_>, outpoint: &OutPoint) -> Result<bool> {
        Ok(self.output(t, txn, outpoint)?.is_some_and(|(ownership, _)| ownership != Ownership::None))
    }
}

/// What a transaction spends of ours: spendable and watched.
pub fn debit(t: &Tables, txn: &RoTxn<'_>, inputs: &[OutPoint]) -> Result<(Amount, Amount)> {
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
    /// Sets the label of a script's address, for receiving where it is `ours`, and notes what it touches. Nothing where it has
    /// no address form.
    pub fn put_label(&mut self, script: &Script, label: &str, ours: bool, touched: &mut Vec<ScriptBuf>) -> Result<()> {
        if let Some(address) = address_script(script) {
            let key = script_key(&address);
            self.t.labels.put(&mut self.txn, &key, label.as_bytes())?;
            if ours && self.t.scripts.get(&self.txn, &key)?.is_some() {
                self.t.address_book.delete(&mut self.txn, &key)?;
            } else {
                self.t.address_book.put(&mut self.txn, &key, address.as_bytes())?;
            }
            touched.push(address);
        }
        Ok(())
    }

    /// Re-derives the rows of the transactions that pay to these scripts, and of those that spend what they pay.
    pub fn rederive(&mut self, scripts: &[ScriptBuf]) -> Result<()> {
        let mut paying = BTreeSet::new();
        for key in scripts.iter().map(|script| outputs_key(script)).collect::<BTreeSet<_>>() {
            for entry in self.t.outputs.prefix_iter(&self.txn, &key)? {
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
        let Some(mut row) = self.t.transaction(&self.txn, &txid)? else { return Ok(()) };
        let mut outputs = Vec::with_capacity(row.outputs.len());
        for (vout, output) in (0_u32..).zip(&row.outputs) {
            let known = self.t.script(&self.txn, &output.script)?;
            let fresh = owned_output(&self.t, &self.txn, output.value, &output.script, known.as_ref())?;
            if fresh.ownership != output.ownership {
                spending.extend(self.t.spenders(&self.txn, &OutPoint { txid, vout })?);
            }
            outputs.push(fresh);
        }
        if outputs != row.outputs {
            if row.outputs.iter().any(|output| is_long_label(output.label.as_deref())) {
                // It may have been marked for the sake of a label alone.
                row.contested = self.is_contested(&row)?;
            }
            row.outputs = outputs;
            self.put_transaction(&row)?;
        } else if outputs.iter().any(|output| is_long_label(output.label.as_deref())) {
            // Another long label stands elsewhere, and is told with the row.
            self.changed.insert(txid);
        }
        Ok(())
    }

    /// Computes anew what a transaction spends of ours.
    pub fn rederive_debit(&mut self, txid: Txid) -> Result<()> {
        let Some(mut row) = self.t.transaction(&self.txn, &txid)? else { return Ok(()) };
        let fresh = debit(&self.t, &self.txn, &row.inputs)?;
        if fresh != (row.debit_spendable, row.debit_watch_only) {
            (row.debit_spendable, row.debit_watch_only) = fresh;
            self.put_transaction(&row)?;
        }
        Ok(())
    }

    /// Whether another transaction of the wallet spends what this one spends.
    fn is_contested(&self, row: &WalletTransaction) -> Result<bool> {
        for input in &row.inputs {
            if self.t.spenders(&self.txn, input)?.into_iter().any(|spender| spender != row.txid) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes a transaction's row, and the coins that it makes or spends.
    pub fn put_transaction(&mut self, row: &WalletTransaction) -> Result<()> {
        self.put_row(row)?;
        self.refresh_coins(row)
    }

    /// Writes a transaction's row, where nothing changes that coins show.
    pub fn put_row(&mut self, row: &WalletTransaction) -> Result<()> {
        // What is told of it is more than what is stored, so it is not passed on as it stands.
        let incomplete = row.outputs.iter().any(|output| is_long_label(output.label.as_deref()));
        let place = row.order_position.to_be_bytes();
        if incomplete && !row.contested {
            put(self.t.transactions, &mut self.txn, &place, &WalletTransaction { contested: true, ..row.clone() })?;
        } else {
            put(self.t.transactions, &mut self.txn, &place, row)?;
        }
        self.changed.insert(row.txid);
        Ok(())
    }
}
