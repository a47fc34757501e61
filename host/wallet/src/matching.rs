//! Decides whether a transaction concerns a wallet, and stores it.

use bitcoin::consensus::serialize;
use bitcoin::hashes::Hash;
use bitcoin::{Amount, OutPoint, Transaction, Txid};
use outrigger_service::wallet::{Ownership, TxState, WalletTransaction};
use outrigger_service::wire::from_bytes;
use outrigger_values::amount::Saturating;

use super::error::Result;
use super::ownership::{Parents, debit, outputs_key, owned_output};
use super::store::{Reading, ScriptRow, Table, Tables, height_key, outpoint_key};
use super::write::Write;

/// How far an earlier entry's time may be ahead of the clock and still bound later times, in seconds.
const TOLERATED_AHEAD: u64 = 300;
/// The highest sequence that signals replaceability (BIP 125).
const MAX_SIGNALLING_SEQUENCE: u32 = 0xffff_fffd;

pub enum Match {
    /// Neither pays to the wallet nor spends from it.
    Foreign,
    /// Already stored.
    Known(Box<WalletTransaction>),
    /// New, with the row of each output's script.
    New(Vec<Option<ScriptRow>>),
}

pub fn examine(t: &Tables, txn: &Reading<'_>, transaction: &Transaction, txid: &Txid) -> Result<Match> {
    if let Some(row) = t.transaction(txn, txid)? {
        return Ok(Match::Known(Box::new(row)));
    }
    let mut ours = false;
    let mut scripts = Vec::with_capacity(transaction.output.len());
    for output in &transaction.output {
        let row = t.script(txn, &output.script_pubkey)?;
        ours |= row.as_ref().is_some_and(|row| row.ownership() != Ownership::None);
        scripts.push(row);
    }
    let mut parents = Parents::default();
    for input in &transaction.input {
        ours = ours || parents.is_ours(t, txn, &input.previous_output)?;
    }
    Ok(if ours { Match::New(scripts) } else { Match::Foreign })
}

/// When and how the wallet receives a transaction; times in Unix seconds.
#[derive(Clone, Copy)]
pub enum Met {
    /// Live, from the mempool or a new block.
    Now(u64),
    Rescan(u64),
}

impl Met {
    fn time(self) -> u64 {
        match self {
            Self::Now(time) | Self::Rescan(time) => time,
        }
    }
}

/// The time shown for a transaction (`ComputeTimeSmart`): the time of receipt; for a transaction first seen in a block,
/// the block's time, bounded by the times of earlier entries unless a rescan found it.
fn smart_time(t: &Tables, txn: &Reading<'_>, met: Met, state: &TxState) -> Result<u64> {
    let (block_time, received) = match (state, met) {
        (TxState::Confirmed { time, .. }, Met::Rescan(_)) => return Ok(u64::from(*time)),
        (TxState::Confirmed { time, .. }, Met::Now(received)) => (time, received),
        (_, met) => return Ok(met.time()),
    };
    let (mut latest_now, mut latest_entry) = (received, 0);
    for entry in t.transactions.rev_iter(txn)? {
        let earlier: WalletTransaction = from_bytes(entry?.1)?;
        if earlier.time <= received.saturating_add(TOLERATED_AHEAD) {
            latest_entry = earlier.time;
            latest_now = latest_now.max(earlier.time);
            break;
        }
    }
    Ok(latest_entry.max(u64::from(*block_time).min(latest_now)))
}

impl Write<'_> {
    /// Stores a transaction if it concerns the wallet, or moves a stored one to `state`. Returns whether it concerns
    /// the wallet.
    pub fn consider(&mut self, transaction: &Transaction, txid: Txid, state: TxState, met: Met) -> Result<bool> {
        match examine(&self.t, self.reads(), transaction, &txid)? {
            Match::Foreign => return Ok(false),
            Match::Known(row) => self.meet_again(transaction, *row, state)?,
            Match::New(mut scripts) => {
                let before = self.grown.len();
                self.note_payments(transaction.output.iter().map(|output| output.script_pubkey.as_script()))?;
                if self.grown.len() > before {
                    // Other outputs may pay to scripts derived just now.
                    for (script, output) in scripts.iter_mut().zip(&transaction.output) {
                        *script = self.t.script(self.reads(), &output.script_pubkey)?;
                    }
                }
                self.insert(transaction, txid, state, &scripts, met)?;
            }
        }
        Ok(true)
    }

    /// Moves a stored transaction to `state`. Its scripts may have been imported since, and its witness may differ from
    /// the stored one.
    fn meet_again(&mut self, transaction: &Transaction, mut row: WalletTransaction, state: TxState) -> Result<()> {
        self.note_payments(transaction.output.iter().map(|output| output.script_pubkey.as_script()))?;
        // A payment may add its address to the address book, which rewrites the row.
        row = self.t.transaction(self.reads(), &row.txid)?.unwrap_or(row);
        let wtxid = transaction.compute_wtxid();
        if wtxid != row.wtxid {
            self.meet_witness(transaction, wtxid, &mut row, &state)?;
        }
        self.set_state(row, state)
    }

    pub fn insert(
        &mut self,
        transaction: &Transaction,
        txid: Txid,
        state: TxState,
        scripts: &[Option<ScriptRow>],
        met: Met,
    ) -> Result<()> {
        let coinbase = transaction.is_coinbase();
        let inputs: Vec<OutPoint> =
            if coinbase { Vec::new() } else { transaction.input.iter().map(|input| input.previous_output).collect() };
        let (debit_spendable, debit_watch_only) = debit(&self.t, self.reads(), &inputs)?;
        let mut outputs = Vec::with_capacity(transaction.output.len());
        for (output, script) in transaction.output.iter().zip(scripts) {
            outputs.push(owned_output(output.value, &output.script_pubkey, script.as_ref()));
        }
        let enforced = transaction.input.iter().any(|input| input.sequence.enables_absolute_lock_time());
        let row = WalletTransaction {
            contested: self.contest(&inputs)?,
            state,
            txid,
            wtxid: transaction.compute_wtxid(),
            order_position: self.meta.next_order_position,
            time: smart_time(&self.t, self.reads(), met, &state)?,
            time_received: met.time(),
            coinbase,
            signals: transaction.input.iter().any(|input| input.sequence.0 <= MAX_SIGNALLING_SEQUENCE),
            lock_time: if enforced { transaction.lock_time.to_consensus_u32() } else { 0 },
            total_output: outputs.iter().map(|output| output.value).fold(Amount::ZERO, Amount::saturating_add),
            debit_spendable,
            debit_watch_only,
            metadata: Vec::new(),
            inputs,
            outputs,
        };
        self.meta.next_order_position += 1;
        self.meta.birth_time = self.meta.birth_time.min(row.time);
        self.note_new(&row);
        self.index(&row)?;
        self.put(self.t.raw, &row.order_position.to_be_bytes(), &serialize(transaction))?;
        self.unlock_coins(&row.inputs)?;
        self.put_transaction(&row)?;
        self.rederive_spenders(&row)
    }

    /// Marks the wallet's other spenders of these outpoints as contested. Returns whether there are any.
    fn contest(&mut self, inputs: &[OutPoint]) -> Result<bool> {
        let spenders = self.spenders_of(inputs.iter().copied())?;
        for spender in &spenders {
            let Some(mut row) = self.t.transaction(self.reads(), spender)? else { continue };
            if !std::mem::replace(&mut row.contested, true) {
                self.put_row(&row)?;
            }
        }
        Ok(!spenders.is_empty())
    }

    /// Adds the index entries of a new transaction.
    fn index(&mut self, row: &WalletTransaction) -> Result<()> {
        let position = row.order_position.to_be_bytes();
        self.put(self.t.order_positions, row.txid.as_byte_array(), &position)?;
        for (table, key) in self.index_keys(row) {
            self.put(table, &key, &[])?;
        }
        self.put_history(row)
    }

    fn index_keys(&self, row: &WalletTransaction) -> Vec<(Table, Vec<u8>)> {
        let id = row.txid.as_byte_array();
        let spends = row.inputs.iter().map(|input| (self.t.spends, [outpoint_key(input).as_slice(), id].concat()));
        let outputs = (0_u32..).zip(&row.outputs).map(|(vout, output)| {
            (self.t.outputs, [outputs_key(&output.script).as_slice(), id, &vout.to_le_bytes()].concat())
        });
        spends.chain(outputs).collect()
    }

    pub fn remove_from_index(&mut self, row: &WalletTransaction) -> Result<()> {
        let place = row.order_position.to_be_bytes();
        let (history, key) = self.history_place(row);
        let rows = [(history, key), (self.t.raw, place.to_vec()), (self.t.transactions, place.to_vec())];
        for (table, key) in self.index_keys(row).into_iter().chain(rows) {
            self.delete(table, &key)?;
        }
        self.delete(self.t.order_positions, row.txid.as_byte_array())?;
        Ok(())
    }

    /// Recomputes the debits of transactions that spend this one and were received before it.
    fn rederive_spenders(&mut self, row: &WalletTransaction) -> Result<()> {
        let outputs = (0_u32..).zip(&row.outputs).filter(|(_, output)| output.ownership != Ownership::None);
        let spenders = self.spenders_of(outputs.map(|(vout, _)| OutPoint { txid: row.txid, vout }))?;
        spenders.into_iter().try_for_each(|spender| self.rederive_debit(spender))
    }

    /// Adds a transaction to the history, under the key of its state.
    pub fn put_history(&mut self, row: &WalletTransaction) -> Result<()> {
        self.wallet.follow_transaction(row);
        let (table, key) = self.history_place(row);
        self.put(table, &key, &row.order_position.to_be_bytes())
    }

    pub fn history_place(&self, row: &WalletTransaction) -> (Table, Vec<u8>) {
        let order_position = row.order_position.to_be_bytes();
        match row.state {
            TxState::Confirmed { height, index, .. } => (self.t.confirmed, height_key(height, &index.to_be_bytes())),
            TxState::Conflicted { height, .. } => (self.t.conflicted, height_key(height, &order_position)),
            TxState::InMempool | TxState::Inactive | TxState::Abandoned => {
                (self.t.unconfirmed, order_position.to_vec())
            }
        }
    }
}
