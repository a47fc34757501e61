//! What a wallet tells of its scripts, transactions and coins, computed anew for each answer.

use std::collections::BTreeSet;

use bitcoin::consensus::serialize;
use bitcoin::hashes::Hash;
use bitcoin::{OutPoint, ScriptBuf, Txid};

use super::Node;
use super::follow::{Met, outpoint_key};
use super::own::Own;
use crate::service::wallet::{
    CoinBatch, HistoryBatch, HistoryQuery, HistoryRange, HistoryRow, LabelBatch, LabelledScript, Outlook, Ownership,
    Replaceable, ScriptInfo, TxState, WalletCoin, WalletOutput, WalletTransaction,
};
use crate::service::{ErrorKind, Result};
use crate::wire::{Blob, Encoded, Framed};

/// The most rows of a batch, so few that a test meets several batches.
const MAX_BATCH: u32 = 3;
/// The longest place where a batch may go on, in bytes; longer ones are nobody's.
const MAX_PLACE: usize = 64;
/// The highest sequence by which an input signals replaceability (BIP 125).
const MAX_SIGNALLING_SEQUENCE: u32 = 0xffff_fffd;
/// Lock times below are heights, others seconds.
const LOCK_TIME_THRESHOLD: u32 = 500_000_000;

/// The rows after a place, of rows that stand by their places, and where the next batch goes on: a place is a row's own,
/// so that rows which come and go move no other.
fn page<T>(
    mut rows: Vec<(Vec<u8>, T)>,
    after: Option<&Blob>,
    limit: u32,
    reverse: bool,
) -> Result<(Vec<T>, Option<Blob>)> {
    rows.sort_by(|(one, _), (other, _)| if reverse { other.cmp(one) } else { one.cmp(other) });
    if let Some(Blob(after)) = after {
        if after.is_empty() || after.len() > MAX_PLACE {
            return Err(ErrorKind::Malformed.into());
        }
        rows.retain(|(place, _)| if reverse { place < after } else { place > after });
    }
    let more = rows.len() > limit.clamp(1, MAX_BATCH) as usize;
    rows.truncate(limit.clamp(1, MAX_BATCH) as usize);
    let next = rows.last().filter(|_| more).map(|(place, _)| Blob(place.clone()));
    Ok((rows.into_iter().map(|(_, row)| row).collect(), next))
}

/// The place of a transaction in a range of the history; none where it is not in it.
fn place(range: HistoryRange, state: TxState, arrival: u64) -> Option<Vec<u8>> {
    match (range, state) {
        (HistoryRange::Confirmed { from_height }, TxState::Confirmed { height, index, .. }) => {
            (height >= from_height).then(|| [height.to_be_bytes(), index.to_be_bytes()].concat())
        }
        (HistoryRange::Conflicted { from_height }, TxState::Conflicted { height, .. }) => {
            (height >= from_height).then(|| [height.to_be_bytes().as_slice(), &arrival.to_be_bytes()].concat())
        }
        (HistoryRange::Unconfirmed, TxState::InMempool | TxState::Inactive | TxState::Abandoned)
        | (HistoryRange::All, _) => Some(arrival.to_be_bytes().to_vec()),
        _ => None,
    }
}

impl Own {
    /// What is known of a script; none where nothing is.
    pub fn script(&self, script: &ScriptBuf) -> Option<ScriptInfo> {
        let (mut info, says) = self.imported.knowledge(script);
        info.ownership = self.ownership(script);
        info.label = self.label(script);
        if info.ownership == Ownership::None && info.label.is_none() && !says {
            return None;
        }
        info.change = info.ownership != Ownership::None && info.label.is_none();
        // What descriptors say outranks imports, and the first of them the others.
        for (number, index) in self.owners.get(script).into_iter().flatten().rev() {
            let Some(row) = self.descriptors.get(*number as usize) else { continue };
            (info.internal, info.timestamp) = (row.internal, row.timestamp);
            info.parents.insert(0, row.public.to_public_string());
            let found = row.expand(*index).into_iter().find(|found| found.script_pubkey == *script);
            if let Some(found) = found.filter(|_| row.public.is_solvable()) {
                (info.solvable, info.descriptor) = (true, found.definite);
                (info.solving, info.origins) = (found.solving, found.origins);
            }
        }
        Some(info)
    }

    fn debit(&self, met: &Met, whose: Ownership) -> u64 {
        let spent = met.inputs().into_iter().filter_map(|input| self.outpoint(&input));
        spent.filter(|(ownership, _)| *ownership == whose).map(|(_, value)| value).sum()
    }

    fn is_from_us(&self, met: &Met) -> bool {
        [Ownership::Spendable, Ownership::WatchOnly].into_iter().any(|whose| self.debit(met, whose) > 0)
    }

    /// The other transactions of the wallet that spend one of its inputs, by internal bytes.
    fn conflicts(&self, met: &Met) -> Vec<Txid> {
        let spenders = met.inputs().into_iter().flat_map(|input| self.spenders(&input));
        others(met.txid, spenders.filter_map(|at| self.met.get(at)).map(|other| other.txid).collect())
    }

    fn lock_time(met: &Met) -> u32 {
        let enforced = met.tx.input.iter().any(|input| input.sequence.enables_absolute_lock_time());
        if enforced { met.tx.lock_time.to_consensus_u32() } else { 0 }
    }

    fn transaction(&self, met: &Met, arrival: u64) -> WalletTransaction {
        let output = |output: &bitcoin::TxOut| {
            let (script, ownership) = (output.script_pubkey.clone(), self.ownership(&output.script_pubkey));
            let label = self.label(&script);
            let mut descriptors: Vec<u32> = self.owners.get(&script).into_iter().flatten().map(|(n, _)| *n).collect();
            descriptors.dedup();
            let change = ownership != Ownership::None && label.is_none();
            WalletOutput { value: output.value.to_sat(), script, ownership, change, label, descriptors }
        };
        WalletTransaction {
            contested: !self.conflicts(met).is_empty(),
            state: met.state,
            txid: met.txid,
            wtxid: met.tx.compute_wtxid(),
            arrival,
            time: met.time,
            time_received: met.received,
            coinbase: met.tx.is_coinbase(),
            signals: signals(met),
            lock_time: Self::lock_time(met),
            total_output: met.tx.output.iter().map(|output| output.value.to_sat()).sum(),
            debit_spendable: self.debit(met, Ownership::Spendable),
            debit_watch_only: self.debit(met, Ownership::WatchOnly),
            metadata: met.metadata.clone(),
            inputs: met.inputs(),
            outputs: met.tx.output.iter().map(output).collect(),
        }
    }

    fn row(&self, at: usize, node: &Node) -> Result<Option<HistoryRow>> {
        let Some(met) = self.met.get(at) else { return Ok(None) };
        let transaction = self.transaction(met, at as u64);
        let settled = matches!(met.state, TxState::Confirmed { .. }) && !transaction.contested;
        let outlook = if settled { None } else { Some(self.foresee(met, node)?) };
        Ok(Some(HistoryRow { transaction: Framed(transaction), outlook }))
    }

    /// The transactions of the mempool that spend what it spends, or what one does that it builds on, by internal bytes.
    fn mempool_conflicts(&self, met: &Met, node: &Node) -> Result<Vec<Txid>> {
        let spenders = node.mempool.spenders(super::NO_CALL, self.inputs_of_waiting(met))?;
        Ok(others(met.txid, spenders.into_iter().flatten().collect()))
    }

    fn foresee(&self, met: &Met, node: &Node) -> Result<Outlook> {
        let replaceable = match met.state {
            TxState::Confirmed { .. } => Replaceable::No,
            _ if signals(met) => Replaceable::Yes,
            TxState::InMempool => match node.mempool.entries(super::NO_CALL, vec![met.txid])?.pop().flatten() {
                Some(entry) if entry.replaceable => Replaceable::Yes,
                Some(_) => Replaceable::No,
                None => Replaceable::Unknown,
            },
            _ => Replaceable::Unknown,
        };
        Ok(Outlook {
            conflicts: self.conflicts(met),
            mempool_conflicts: self.mempool_conflicts(met, node)?,
            trusted: self.is_trusted(met, node.time()?),
            replaceable,
        })
    }

    /// What a transaction spends, and what those spend that it builds on, as far as they are in neither the chain nor the
    /// mempool.
    fn inputs_of_waiting(&self, met: &Met) -> Vec<OutPoint> {
        let (mut inputs, mut pending, mut seen) = (Vec::new(), vec![met.txid], BTreeSet::new());
        while let Some(txid) = pending.pop() {
            let Some(met) = self.find_met(txid).and_then(|at| self.met.get(at)) else { continue };
            let waits = !matches!(met.state, TxState::Confirmed { .. } | TxState::InMempool);
            if waits && seen.insert(txid) {
                pending.extend(met.inputs().iter().map(|input| input.txid));
                inputs.extend(met.inputs());
            }
        }
        inputs
    }

    /// Whether it is confirmed; or final, in the mempool and ours, and spends nothing but spendable outputs of trusted ones.
    fn is_trusted(&self, met: &Met, now: u64) -> bool {
        let lock_time = Self::lock_time(met);
        let reached = if lock_time < LOCK_TIME_THRESHOLD { u64::from(self.synced.height) + 1 } else { now };
        match met.state {
            TxState::Confirmed { .. } => return true,
            TxState::InMempool if self.is_from_us(met) && (lock_time == 0 || u64::from(lock_time) < reached) => {}
            _ => return false,
        }
        met.inputs().iter().all(|input| {
            let spendable = self.outpoint(input).is_some_and(|(whose, _)| whose == Ownership::Spendable);
            let parent = self.find_met(input.txid).and_then(|at| self.met.get(at));
            spendable && parent.is_some_and(|parent| self.is_trusted(parent, now))
        })
    }

    pub fn transactions(&self, txids: &[Txid], node: &Node) -> Result<Encoded<HistoryBatch>> {
        let mut rows = Vec::new();
        for at in txids.iter().filter_map(|txid| self.find_met(*txid)) {
            rows.extend(self.row(at, node)?);
        }
        Ok(Encoded::new(&HistoryBatch { rows, next: None }))
    }

    pub fn raw(&self, txid: Txid) -> Option<Blob> {
        let met = self.met.get(self.find_met(txid)?)?;
        Some(Blob(serialize(&met.tx)))
    }

    pub fn history(&self, query: &HistoryQuery, node: &Node) -> Result<Encoded<HistoryBatch>> {
        let met = self.met.iter().enumerate();
        let rows = met.filter_map(|(at, met)| Some((place(query.range, met.state, at as u64)?, at))).collect();
        let (found, next) = page(rows, query.after.as_ref(), query.limit, query.reverse)?;
        let mut rows = Vec::new();
        for at in found {
            rows.extend(self.row(at, node)?);
        }
        Ok(Encoded::new(&HistoryBatch { rows, next }))
    }

    /// Whether a transaction in this state may yet make or spend a coin.
    fn counts(state: TxState) -> bool {
        matches!(state, TxState::Confirmed { .. } | TxState::InMempool | TxState::Inactive)
    }

    /// A coin, given what of the wallet conflicts with a transaction of the mempool.
    fn coin(&self, met: &Met, vout: u32, now: u64, conflicted: &BTreeSet<Txid>) -> Option<WalletCoin> {
        let output = met.tx.output.get(vout as usize)?;
        let (outpoint, script) = (OutPoint { txid: met.txid, vout }, output.script_pubkey.clone());
        let ownership = self.ownership(&script);
        let orphaned = met.tx.is_coinbase() && !matches!(met.state, TxState::Confirmed { .. });
        let counts = |met: &Met| Self::counts(met.state) && !conflicted.contains(&met.txid);
        let spent = |at: &usize| self.met.get(*at).is_some_and(counts);
        if ownership == Ownership::None || orphaned || !counts(met) || self.spenders(&outpoint).iter().any(spent) {
            return None;
        }
        let label = self.label(&script);
        Some(WalletCoin {
            outpoint,
            value: output.value.to_sat(),
            script,
            state: met.state,
            coinbase: met.tx.is_coinbase(),
            ownership,
            change: label.is_none(),
            label,
            trusted: self.is_trusted(met, now),
            from_us: self.is_from_us(met),
        })
    }

    pub fn coins(&self, after: Option<&Blob>, limit: u32, node: &Node) -> Result<CoinBatch> {
        let now = node.time()?;
        let outputs = self.met.iter().flat_map(|met| (0_u32..).take(met.tx.output.len()).map(move |vout| (met, vout)));
        let mut conflicted = BTreeSet::new();
        for met in &self.met {
            if !self.mempool_conflicts(met, node)?.is_empty() {
                conflicted.insert(met.txid);
            }
        }
        let coins = outputs.filter_map(|(met, vout)| self.coin(met, vout, now, &conflicted));
        let (coins, next) =
            page(coins.map(|coin| (outpoint_key(&coin.outpoint), coin)).collect(), after, limit, false)?;
        Ok(CoinBatch { coins, next })
    }

    pub fn labels(&self, after: Option<&Blob>, limit: u32) -> Result<LabelBatch> {
        let entry = |(script, label): (&ScriptBuf, &String)| {
            let place = bitcoin::hashes::sha256::Hash::hash(script.as_bytes()).to_byte_array().to_vec();
            let ownership = self.ownership(script);
            (place, LabelledScript { script: script.clone(), label: label.clone(), ownership })
        };
        let (entries, next) = page(self.labels.iter().map(entry).collect(), after, limit, false)?;
        let scripts = entries.iter().map(|entry: &LabelledScript| entry.script.clone());
        let sending = scripts.filter(|script| self.sending.contains(script)).collect();
        Ok(LabelBatch { entries, next, sending })
    }
}

fn signals(met: &Met) -> bool {
    met.tx.input.iter().any(|input| input.sequence.0 <= MAX_SIGNALLING_SEQUENCE)
}

/// Each of these that is not `txid` once, by internal bytes.
fn others(txid: Txid, mut txids: Vec<Txid>) -> Vec<Txid> {
    txids.retain(|other| *other != txid);
    txids.sort_unstable_by_key(|txid| txid.to_byte_array());
    txids.dedup();
    txids
}
