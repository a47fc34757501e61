//! A mempool in memory. It accepts a transaction if its inputs exist and no other entry spends them; it checks nothing else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bitcoin::{Amount, BlockHash, OutPoint, SignedAmount, Transaction, Txid, consensus};

use super::chain::StubChain;
use super::lock;
use outrigger_service::mempool::{
    Admission, Candidate, FeeEstimate, MempoolEntry, MempoolInfo, PackageMember, PackageOutcome, Prioritised, Selected,
};
use outrigger_service::wire::{Blob, Encoded};
use outrigger_service::{Chain, Mempool, Result, Scope};
use outrigger_values::FeeRate;
use outrigger_values::amount::Saturating;

/// The mempool's minimum, relay and incremental feerate.
const FEERATE: FeeRate = FeeRate::from_sat_per_kvb(1000);

fn sum(amounts: impl Iterator<Item = Amount>) -> Amount {
    amounts.fold(Amount::ZERO, Amount::saturating_add)
}

fn signed(fee: Amount) -> SignedAmount {
    fee.to_signed().unwrap_or(SignedAmount::MAX)
}

#[derive(Default)]
struct State {
    entries: Vec<(Transaction, Amount)>,
    sequence: u64,
    /// The number of additions and removals.
    moves: u64,
    deltas: BTreeMap<Txid, SignedAmount>,
    /// The version of the current selection for the next block.
    version: u64,
    /// The tip and mempool sequence of that version.
    selected: Option<(BlockHash, u64)>,
}

/// A mempool in memory.
pub struct StubMempool {
    chain: Arc<StubChain>,
    state: Mutex<State>,
}

impl StubMempool {
    /// An empty mempool over a chain.
    pub fn new(chain: Arc<StubChain>) -> Self {
        Self { chain, state: Mutex::default() }
    }

    /// Adds a transaction with a fee, without any check.
    pub fn add(&self, transaction: Transaction, fee: Amount) {
        let mut state = lock(&self.state);
        state.entries.push((transaction, fee));
        state.sequence += 1;
        state.moves += 1;
    }

    /// Removes a transaction, but not its descendants. Returns whether it was there.
    pub fn remove(&self, txid: Txid) -> bool {
        let mut state = lock(&self.state);
        let Some(position) = state.position(txid) else { return false };
        state.entries.remove(position);
        state.sequence += 1;
        state.moves += 1;
        true
    }

    /// Removes all transactions.
    pub fn clear(&self) {
        let mut state = lock(&self.state);
        state.moves += state.entries.len() as u64;
        state.entries.clear();
        state.sequence += 1;
    }

    /// Checks a submission: the transaction and its fee, or the answer that refuses it.
    fn check(&self, raw: &[u8]) -> Result<std::result::Result<(Transaction, Amount), Admission>> {
        let Ok(transaction) = consensus::deserialize::<Transaction>(raw) else {
            return Ok(Err(Admission::Undecodable));
        };
        let txid = transaction.compute_txid();
        let state = lock(&self.state);
        if state.entries.iter().any(|(known, _)| known.compute_txid() == txid) {
            return Ok(Err(Admission::Known { txid }));
        }
        let mut value = Amount::ZERO;
        for input in &transaction.input {
            let previous = input.previous_output;
            if state.spender(&previous).is_some() {
                return Ok(Err(Admission::Rejected { reason: "txn-mempool-conflict".into(), detail: String::new() }));
            }
            let unconfirmed = state.entries.iter().find(|(parent, _)| parent.compute_txid() == previous.txid);
            let unconfirmed = unconfirmed.and_then(|(parent, _)| parent.output.get(previous.vout as usize));
            let confirmed = self.chain.coins(Scope::NONE, vec![previous])?.pop().flatten();
            match (unconfirmed, confirmed) {
                (Some(output), _) => value = value.saturating_add(output.value),
                (None, Some(coin)) => value = value.saturating_add(coin.output.value),
                (None, None) => return Ok(Err(Admission::MissingInputs)),
            }
        }
        let spent = sum(transaction.output.iter().map(|output| output.value));
        Ok(match value.checked_sub(spent) {
            Some(fee) => Ok((transaction, fee)),
            None => Err(Admission::Rejected { reason: "bad-txns-in-belowout".into(), detail: String::new() }),
        })
    }
}

fn accepted(transaction: &Transaction, fee: Amount) -> Admission {
    Admission::Accepted {
        txid: transaction.compute_txid(),
        wtxid: transaction.compute_wtxid(),
        virtual_size: transaction.vsize() as u64,
        fee,
    }
}

/// The package outcome of transactions that were checked one by one.
fn outcome(admissions: Vec<Admission>) -> PackageOutcome {
    let rejected = |reason| PackageMember::Rejected { reason, detail: String::new() };
    let member = |admission| match admission {
        Admission::Accepted { wtxid, virtual_size, fee, .. } => {
            let feerate = FeeRate::paid(fee, virtual_size);
            PackageMember::Accepted { virtual_size, fee, feerate, included: vec![wtxid] }
        }
        Admission::Known { .. } => rejected("txn-already-in-mempool".to_owned()),
        refused => rejected(refused.refusal().unwrap_or_default()),
    };
    let members: Vec<_> = admissions.into_iter().map(member).collect();
    let failed = members.iter().any(|member| matches!(member, PackageMember::Rejected { .. }));
    let reason = if failed { "transaction failed".to_owned() } else { String::new() };
    PackageOutcome { reason, detail: String::new(), is_policy: false, members, replaced: Vec::new() }
}

impl State {
    fn selection(&self) -> Arc<Vec<Selected>> {
        let select = |(transaction, fee): &(Transaction, Amount)| Selected {
            raw: Arc::new(Blob(consensus::serialize(transaction))),
            txid: transaction.compute_txid(),
            wtxid: transaction.compute_wtxid(),
            fee: *fee,
            sigops: 0,
            weight: transaction.weight(),
            depends: self.parents(transaction).map(|position| position as u32 + 1).collect(),
        };
        self.entries.iter().map(select).collect::<Vec<_>>().into()
    }

    /// The position of the unconfirmed parent of each input that has one.
    fn parents(&self, transaction: &Transaction) -> impl Iterator<Item = usize> {
        transaction.input.iter().filter_map(|input| self.position(input.previous_output.txid))
    }

    fn position(&self, txid: Txid) -> Option<usize> {
        self.entries.iter().position(|(transaction, _)| transaction.compute_txid() == txid)
    }

    fn spender(&self, outpoint: &OutPoint) -> Option<Txid> {
        let spends = |transaction: &Transaction| transaction.input.iter().any(|i| i.previous_output == *outpoint);
        self.entries.iter().find(|(transaction, _)| spends(transaction)).map(|(t, _)| t.compute_txid())
    }

    /// Whether a transaction or one of its unconfirmed ancestors signals replaceability (BIP 125).
    fn is_replaceable(&self, transaction: &Transaction) -> bool {
        let mut parents = self.parents(transaction).filter_map(|at| self.entries.get(at));
        transaction.is_explicitly_rbf() || parents.any(|(parent, _)| self.is_replaceable(parent))
    }

    fn entry(&self, txid: Txid) -> Option<MempoolEntry> {
        let (transaction, fee) = self.entries.get(self.position(txid)?)?;
        let parents = self.parents(transaction).filter_map(|at| self.entries.get(at));
        let depends: Vec<Txid> = parents.map(|(parent, _)| parent.compute_txid()).collect();
        let spends = |child: &Transaction| child.input.iter().any(|input| input.previous_output.txid == txid);
        let spent_by: Vec<Txid> =
            self.entries.iter().filter(|(child, _)| spends(child)).map(|(child, _)| child.compute_txid()).collect();
        let size = transaction.vsize() as u64;
        let signed = signed(*fee);
        Some(MempoolEntry {
            txid,
            wtxid: transaction.compute_wtxid(),
            weight: transaction.weight(),
            virtual_size: size,
            fee: *fee,
            modified_fee: signed,
            time: 0,
            height: 0,
            ancestor_count: 1 + depends.len() as u64,
            ancestor_size: size,
            ancestor_fees: signed,
            descendant_count: 1 + spent_by.len() as u64,
            descendant_size: size,
            descendant_fees: signed,
            depends,
            spent_by,
            replaceable: self.is_replaceable(transaction),
            // All entries count as submitted here.
            unbroadcast: true,
        })
    }
}

impl Mempool for StubMempool {
    fn info(&self, _: Scope) -> Result<MempoolInfo> {
        let state = lock(&self.state);
        Ok(MempoolInfo {
            transactions: state.entries.len() as u64,
            virtual_size: state.entries.iter().map(|(transaction, _)| transaction.vsize() as u64).sum(),
            usage: 0,
            total_fee: sum(state.entries.iter().map(|(_, fee)| *fee)),
            max_usage: 300_000_000,
            min_feerate: FEERATE,
            relay_feerate: FEERATE,
            incremental_feerate: FEERATE,
            sequence: state.sequence,
            moves: state.moves,
            unbroadcast: state.entries.len() as u64,
            clusters: None,
        })
    }

    fn ids(&self, _: Scope) -> Result<Vec<Txid>> {
        Ok(lock(&self.state).entries.iter().map(|(transaction, _)| transaction.compute_txid()).collect())
    }

    fn entries(&self, _: Scope, txids: Vec<Txid>) -> Result<Vec<Option<MempoolEntry>>> {
        let state = lock(&self.state);
        Ok(txids.into_iter().map(|txid| state.entry(txid)).collect())
    }

    fn transactions(&self, _: Scope, txids: Vec<Txid>) -> Result<Vec<Option<Blob>>> {
        let state = lock(&self.state);
        let raw = |txid| {
            let (transaction, _) = state.entries.get(state.position(txid)?)?;
            Some(consensus::serialize(transaction).into())
        };
        Ok(txids.into_iter().map(raw).collect())
    }

    fn spenders(&self, _: Scope, outpoints: Vec<OutPoint>) -> Result<Vec<Option<Txid>>> {
        let state = lock(&self.state);
        Ok(outpoints.iter().map(|outpoint| state.spender(outpoint)).collect())
    }

    fn submit(&self, _: Scope, raw: Blob, _: FeeRate) -> Result<Admission> {
        Ok(match self.check(&raw)? {
            Ok((transaction, fee)) => {
                let admission = accepted(&transaction, fee);
                self.add(transaction, fee);
                admission
            }
            Err(admission) => admission,
        })
    }

    fn try_submit(&self, _: Scope, raw: Blob, _: FeeRate) -> Result<Admission> {
        Ok(self.check(&raw)?.map_or_else(|admission| admission, |(transaction, fee)| accepted(&transaction, fee)))
    }

    fn candidate(&self, _: Scope, known: Option<u64>) -> Result<Encoded<Option<Candidate>>> {
        let next = self.chain.next_block(Scope::NONE)?;
        let mut state = lock(&self.state);
        let of = Some((next.tip.hash, state.sequence));
        if state.selected != of {
            state.selected = of;
            state.version += 1;
        }
        if known == Some(state.version) {
            return Ok(Encoded::new(&None));
        }
        let fees = sum(state.entries.iter().map(|(_, fee)| *fee));
        let (version, sequence) = (state.version, state.sequence);
        Ok(Encoded::new(&Some(Candidate { version, next, transactions: state.selection(), fees, sequence })))
    }

    fn prioritise(&self, _: Scope, txid: Txid, fee_delta: SignedAmount) -> Result<()> {
        let mut state = lock(&self.state);
        let delta = state.deltas.entry(txid).or_default();
        *delta = delta.saturating_add(fee_delta);
        state.deltas.retain(|_, delta| *delta != SignedAmount::ZERO);
        state.sequence += 1;
        Ok(())
    }

    fn prioritised(&self, _: Scope) -> Result<Vec<Prioritised>> {
        let state = lock(&self.state);
        let describe = |(txid, delta): (&Txid, &SignedAmount)| {
            let modified_fee = state.entry(*txid).map(|entry| signed(entry.fee).saturating_add(*delta));
            Prioritised { txid: *txid, fee_delta: *delta, modified_fee }
        };
        Ok(state.deltas.iter().map(describe).collect())
    }

    fn submit_package(&self, scope: Scope, transactions: Vec<Blob>, max_feerate: FeeRate) -> Result<PackageOutcome> {
        let submit = |raw| self.submit(scope, raw, max_feerate);
        transactions.into_iter().map(submit).collect::<Result<Vec<_>>>().map(outcome)
    }

    fn try_package(&self, scope: Scope, transactions: Vec<Blob>) -> Result<PackageOutcome> {
        let attempt = |raw| self.try_submit(scope, raw, FeeRate::ZERO);
        transactions.into_iter().map(attempt).collect::<Result<Vec<_>>>().map(outcome)
    }

    fn fee_estimate(&self, _: Scope, _: u32, _: bool) -> Result<FeeEstimate> {
        Ok(FeeEstimate { feerate: None, blocks: 0 })
    }
}
