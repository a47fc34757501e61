//! A transaction of the mempool, and the feerates by which transactions are compared.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use bitcoin::{Amount, SignedAmount, Transaction, Txid, Weight, Wtxid};
use outrigger_script::ScriptError;
use outrigger_service::mempool::MempoolEntry;
use outrigger_values::FeeRate;
use outrigger_values::amount::Saturating;

use crate::decode::Ids;

/// A decoded transaction that is offered.
#[derive(Clone)]
pub struct Offer {
    pub tx: Arc<Transaction>,
    pub raw: Arc<[u8]>,
    pub txid: Txid,
    pub wtxid: Wtxid,
    /// The input whose script fails by the standard flags, and why, once that is known.
    pub failed_script: OnceLock<(usize, ScriptError)>,
}

impl Offer {
    /// An offer of `tx`, whose serialisation is `raw`.
    pub fn new(tx: Transaction, raw: &[u8]) -> Self {
        let Ids { txid, wtxid } = Ids::of(&tx, raw);
        Self { txid, wtxid, tx: Arc::new(tx), raw: raw.into(), failed_script: OnceLock::new() }
    }
}

/// When an entry came, which it keeps when it is put back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryTime {
    /// When it came, in seconds.
    pub time: u64,
    /// The tip's height when it came.
    pub height: u32,
    /// Whether it was offered to this node, and by no block.
    pub unbroadcast: bool,
}

/// Below this a sequence number signals that the transaction may be replaced (BIP 125).
const MAX_REPLACEABLE_SEQUENCE: u32 = 0xffff_fffd;
/// The least bytes that a signature operation counts for in a transaction's virtual size.
const BYTES_PER_SIGOP: u64 = 20;
/// The bookkeeping's share of the reckoned memory of a transaction, in bytes.
const ENTRY_OVERHEAD: u64 = 480;

/// A sum over a set of transactions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    pub count: u64,
    /// Their virtual size, in virtual bytes.
    pub size: u64,
    /// Their fees with the deltas of prioritisetransaction.
    pub fees: SignedAmount,
    /// The cost of their signature operations.
    pub sigops: u64,
}

impl Totals {
    /// The sum with more transactions.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.size += other.size;
        self.fees = self.fees.saturating_add(other.fees);
        self.sigops += other.sigops;
    }

    /// The sum without some of its transactions.
    pub fn subtract(&mut self, other: &Self) {
        self.count = self.count.saturating_sub(other.count);
        self.size = self.size.saturating_sub(other.size);
        self.fees = self.fees.saturating_sub(other.fees);
        self.sigops = self.sigops.saturating_sub(other.sigops);
    }

    /// Their feerate in whole satoshi; zero if they pay less than nothing.
    pub fn feerate(&self) -> FeeRate {
        paid_feerate(self.fees, self.size)
    }

    /// Their fee and size.
    pub fn feefrac(&self) -> FeeFrac {
        FeeFrac { fee: self.fees, size: self.size }
    }
}

/// Whether a fee, which may be below zero, is at least `needed`.
pub fn pays(fee: SignedAmount, needed: Amount) -> bool {
    fee.to_unsigned().is_ok_and(|fee| fee >= needed)
}

/// The feerate of a fee, which may be below zero, for so many virtual bytes.
pub fn paid_feerate(fee: SignedAmount, size: u64) -> FeeRate {
    FeeRate::paid(fee.to_unsigned().unwrap_or(Amount::ZERO), size)
}

/// A fee and a size, as bitcoind's `FeeFrac`: a feerate that is compared exactly, without a division.
#[derive(Clone, Copy, Debug)]
pub struct FeeFrac {
    pub fee: SignedAmount,
    /// The size, in virtual bytes.
    pub size: u64,
}

impl Ord for FeeFrac {
    fn cmp(&self, other: &Self) -> Ordering {
        let product = |fee: SignedAmount, size: u64| i128::from(fee.to_sat()) * i128::from(size);
        product(self.fee, other.size).cmp(&product(other.fee, self.size))
    }
}

impl PartialOrd for FeeFrac {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for FeeFrac {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for FeeFrac {}

/// A transaction of the mempool.
#[derive(Clone, Debug)]
pub struct Entry {
    pub tx: Arc<Transaction>,
    pub raw: Arc<[u8]>,
    pub txid: Txid,
    pub wtxid: Wtxid,
    /// Whether it has a lock time other than 0.
    pub locked: bool,
    pub weight: Weight,
    /// The cost of its signature operations.
    pub sigops: u64,
    pub fee: Amount,
    /// The delta of prioritisetransaction.
    pub delta: SignedAmount,
    /// When it came, in seconds.
    pub time: u64,
    /// The tip's height when it came.
    pub height: u32,
    /// Whether it was offered to this node, and by no block. There are no peers that could have confirmed that they
    /// have it.
    pub unbroadcast: bool,
    /// Its place in the order of arrival.
    pub order: u64,
    /// The transactions of the mempool whose outputs it spends.
    pub parents: BTreeSet<Txid>,
    /// The transactions of the mempool that spend its outputs.
    pub children: BTreeSet<Txid>,
    /// It and all it builds on in the mempool.
    pub ancestors: Totals,
    /// It and all that build on it in the mempool.
    pub descendants: Totals,
}

/// The virtual size by weight and by signature operations, whichever is larger, in virtual bytes.
pub fn virtual_size(weight: Weight, sigops: u64) -> u64 {
    weight.max(Weight::from_wu(sigops.saturating_mul(BYTES_PER_SIGOP))).to_vbytes_ceil()
}

/// A fee with its delta.
pub fn modified_fee(fee: Amount, delta: SignedAmount) -> SignedAmount {
    fee.to_signed().unwrap_or(SignedAmount::MAX).saturating_add(delta)
}

impl Entry {
    /// Its virtual size, in virtual bytes.
    pub fn virtual_size(&self) -> u64 {
        virtual_size(self.weight, self.sigops)
    }

    /// Its fee with its delta.
    pub fn modified_fee(&self) -> SignedAmount {
        modified_fee(self.fee, self.delta)
    }

    pub fn own(&self) -> Totals {
        Totals { count: 1, size: self.virtual_size(), fees: self.modified_fee(), sigops: self.sigops }
    }

    /// The rate it is chosen for a block by: that of all it builds on with it, or its own if that is lower.
    pub fn mining_rate(&self) -> FeeFrac {
        self.ancestors.feefrac().min(self.own().feefrac())
    }

    /// The rate it is kept by when the mempool is full: that of all that build on it with it, or its own if that is
    /// higher.
    pub fn keeping_rate(&self) -> FeeFrac {
        self.descendants.feefrac().max(self.own().feefrac())
    }

    /// The memory it is reckoned to take, in bytes.
    pub fn usage(&self) -> u64 {
        // Once serialised and once in parts.
        2 * self.raw.len() as u64 + ENTRY_OVERHEAD
    }

    /// Whether it says itself that it may be replaced (BIP 125).
    pub fn signals_replacement(&self) -> bool {
        self.tx.input.iter().any(|input| input.sequence.to_consensus_u32() <= MAX_REPLACEABLE_SEQUENCE)
    }

    /// The part of it that outlives a reorganisation or a restart.
    pub fn entry_time(&self) -> EntryTime {
        EntryTime { time: self.time, height: self.height, unbroadcast: self.unbroadcast }
    }

    /// The service's description; `replaceable` says whether it or an ancestor signals replaceability.
    pub fn describe(&self, replaceable: bool) -> MempoolEntry {
        MempoolEntry {
            txid: self.txid,
            wtxid: self.wtxid,
            weight: self.weight,
            virtual_size: self.virtual_size(),
            fee: self.fee,
            modified_fee: self.modified_fee(),
            time: self.time,
            height: self.height,
            ancestor_count: self.ancestors.count,
            ancestor_size: self.ancestors.size,
            ancestor_fees: self.ancestors.fees,
            descendant_count: self.descendants.count,
            descendant_size: self.descendants.size,
            descendant_fees: self.descendants.fees,
            depends: self.parents.iter().copied().collect(),
            spent_by: self.children.iter().copied().collect(),
            replaceable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_signature_operations_make_a_transaction_large() {
        assert_eq!(virtual_size(Weight::from_wu(401), 1), 101);
        assert_eq!(virtual_size(Weight::from_wu(400), 80), 400);
    }

    #[test]
    fn feerates_compare_without_division() {
        let rate = |fee, size| FeeFrac { fee: SignedAmount::from_sat(fee), size };
        assert_eq!(rate(1, 3), rate(2, 6));
        assert!(rate(i64::MAX, 1) > rate(i64::MAX, 2));
        assert!(rate(-1, 1) < rate(0, 1));
    }
}
