//! Entries of the mempool, and the feerates that order them.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use bitcoin::{Amount, SignedAmount, Transaction, Txid, Weight, Wtxid};
use outrigger_script::ScriptError;
use outrigger_service::mempool::{MempoolEntry, PackageMember};
use outrigger_values::amount::Saturating;
use outrigger_values::{Blob, FeeFrac, FeeRate};

use crate::decode::Ids;

#[derive(Clone)]
pub struct Offer {
    pub tx: Arc<Transaction>,
    pub raw: Arc<Blob>,
    pub txid: Txid,
    pub wtxid: Wtxid,
    /// The input whose script fails under the standard flags, and why, once known.
    pub failed_script: OnceLock<(usize, ScriptError)>,
}

impl Offer {
    pub fn new(tx: Transaction, raw: &[u8]) -> Self {
        let Ids { txid, wtxid } = Ids::of(&tx, raw);
        Self { txid, wtxid, tx: Arc::new(tx), raw: Arc::new(Blob(raw.to_vec())), failed_script: OnceLock::new() }
    }
}

/// The part of an entry that survives a reorganisation or a restart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryTime {
    /// In Unix seconds.
    pub time: u64,
    /// The tip's height at entry.
    pub height: u32,
    /// Whether the transaction was submitted to this node, and has been in no block. No peer ever confirms receipt.
    pub unbroadcast: bool,
}

/// The least weight per unit of signature operation cost (bitcoind's -bytespersigop).
const BYTES_PER_SIGOP: u64 = 20;
/// The estimated memory of an entry besides its transaction, in bytes.
const ENTRY_OVERHEAD: u64 = 480;

/// A sum over a set of transactions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    pub count: u64,
    /// In virtual bytes.
    pub size: u64,
    /// With the deltas of prioritisetransaction.
    pub fees: SignedAmount,
    /// The signature operation cost.
    pub sigops: u64,
}

impl Totals {
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.size += other.size;
        self.fees = self.fees.saturating_add(other.fees);
        self.sigops += other.sigops;
    }

    pub fn subtract(&mut self, other: &Self) {
        self.count = self.count.saturating_sub(other.count);
        self.size = self.size.saturating_sub(other.size);
        self.fees = self.fees.saturating_sub(other.fees);
        self.sigops = self.sigops.saturating_sub(other.sigops);
    }

    /// Zero if the fees are negative.
    pub fn feerate(&self) -> FeeRate {
        paid_feerate(self.fees, self.size)
    }

    pub fn feefrac(&self) -> FeeFrac {
        FeeFrac { fee: self.fees, size: self.size }
    }
}

/// Whether a fee, which may be negative, is at least `needed`.
pub fn pays(fee: SignedAmount, needed: Amount) -> bool {
    fee.to_unsigned().is_ok_and(|fee| fee >= needed)
}

/// The feerate of a fee; zero if the fee is negative.
pub fn paid_feerate(fee: SignedAmount, size: u64) -> FeeRate {
    FeeRate::paid(fee.to_unsigned().unwrap_or(Amount::ZERO), size)
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub tx: Arc<Transaction>,
    pub raw: Arc<Blob>,
    pub txid: Txid,
    pub wtxid: Wtxid,
    /// Whether the lock time is not 0.
    pub locked: bool,
    pub weight: Weight,
    /// The signature operation cost.
    pub sigops: u64,
    pub fee: Amount,
    pub delta: SignedAmount,
    pub entered: EntryTime,
    /// The order of arrival.
    pub order: u64,
    /// The entries whose outputs it spends.
    pub parents: BTreeSet<Txid>,
    /// The entries that spend its outputs.
    pub children: BTreeSet<Txid>,
    /// The entry and its ancestors.
    pub ancestors: Totals,
    /// The entry and its descendants.
    pub descendants: Totals,
}

/// The larger of the virtual sizes by weight and by signature operations.
pub fn virtual_size(weight: Weight, sigops: u64) -> u64 {
    weight.max(Weight::from_wu(sigops.saturating_mul(BYTES_PER_SIGOP))).to_vbytes_ceil()
}

pub fn modified_fee(fee: Amount, delta: SignedAmount) -> SignedAmount {
    fee.to_signed().unwrap_or(SignedAmount::MAX).saturating_add(delta)
}

impl Entry {
    pub fn virtual_size(&self) -> u64 {
        virtual_size(self.weight, self.sigops)
    }

    pub fn modified_fee(&self) -> SignedAmount {
        modified_fee(self.fee, self.delta)
    }

    pub fn own(&self) -> Totals {
        Totals { count: 1, size: self.virtual_size(), fees: self.modified_fee(), sigops: self.sigops }
    }

    /// The feerate for selection: with all ancestors, or its own if that is lower.
    pub fn mining_rate(&self) -> FeeFrac {
        self.ancestors.feefrac().min(self.own().feefrac())
    }

    /// The feerate for eviction: with all descendants, or its own if that is higher.
    pub fn keeping_rate(&self) -> FeeFrac {
        self.descendants.feefrac().max(self.own().feefrac())
    }

    /// The estimated memory, in bytes.
    pub fn usage(&self) -> u64 {
        // The entry keeps the transaction serialised and decoded.
        2 * self.raw.len() as u64 + ENTRY_OVERHEAD
    }

    /// The result of an accepted transaction, with its effective feerate and the transactions that share this feerate.
    pub fn accepted(&self, feerate: FeeRate, included: Vec<Wtxid>) -> PackageMember {
        PackageMember::Accepted { virtual_size: self.virtual_size(), fee: self.fee, feerate, included }
    }

    /// `replaceable`: whether the entry or an ancestor signals replaceability.
    pub fn describe(&self, replaceable: bool) -> MempoolEntry {
        MempoolEntry {
            txid: self.txid,
            wtxid: self.wtxid,
            weight: self.weight,
            virtual_size: self.virtual_size(),
            fee: self.fee,
            modified_fee: self.modified_fee(),
            time: self.entered.time,
            height: self.entered.height,
            ancestor_count: self.ancestors.count,
            ancestor_size: self.ancestors.size,
            ancestor_fees: self.ancestors.fees,
            descendant_count: self.descendants.count,
            descendant_size: self.descendants.size,
            descendant_fees: self.descendants.fees,
            depends: self.parents.iter().copied().collect(),
            spent_by: self.children.iter().copied().collect(),
            replaceable,
            unbroadcast: self.entered.unbroadcast,
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
}
