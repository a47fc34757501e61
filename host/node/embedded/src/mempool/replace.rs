//! Replacement by BIP 125, except for its first rule: any transaction may be replaced.

use std::collections::BTreeSet;

use bitcoin::{Amount, SignedAmount, Transaction, Txid};
use outrigger_values::FeeRate;
use outrigger_values::amount::Saturating;

use super::entry::paid_feerate;
use super::graph::Graph;
use crate::params::MempoolLimits;
use crate::validation::{Money, ValidationError};

/// A transaction's size, fee and relations, once its coins are known.
#[derive(Clone)]
pub(super) struct CandidateTransaction {
    pub txid: Txid,
    pub size: u64,
    pub modified_fee: SignedAmount,
    pub parents: BTreeSet<Txid>,
    pub ancestors: BTreeSet<Txid>,
    pub conflicts: BTreeSet<Txid>,
    /// Whether one of `conflicts` is the TRUC sibling.
    pub evicts_sibling: bool,
}

impl CandidateTransaction {
    /// Zero if the modified fee is negative.
    pub fn feerate(&self) -> FeeRate {
        paid_feerate(self.modified_fee, self.size)
    }
}

pub(super) const INSUFFICIENT_FEE: &str = "insufficient fee";

/// The most entries replaced at once, descendants included.
const MAX_REPLACED: u64 = 100;

/// Checks a transaction against its conflicts. Returns the entries to remove.
///
/// Checks, in this order: feerate, number of replaced entries, new unconfirmed inputs, fee.
pub fn check_replacement(
    graph: &Graph,
    limits: &MempoolLimits,
    tx: &Transaction,
    offered: &CandidateTransaction,
) -> Result<BTreeSet<Txid>, ValidationError> {
    if offered.conflicts.is_empty() {
        return Ok(BTreeSet::new());
    }
    let replaced = check_replaced(graph, limits, tx, offered);
    replaced.map_err(|error| match offered.evicts_sibling {
        true => ValidationError { reason: format!("{} (including sibling eviction)", error.reason).into(), ..error },
        false => error,
    })
}

fn check_replaced(
    graph: &Graph,
    limits: &MempoolLimits,
    tx: &Transaction,
    offered: &CandidateTransaction,
) -> Result<BTreeSet<Txid>, ValidationError> {
    let (txid, rate) = (offered.txid, offered.feerate());
    let conflicting = || offered.conflicts.iter().filter_map(|conflict| graph.get(conflict));
    for conflict in conflicting() {
        let old = conflict.own().feerate();
        if rate <= old {
            let detail = format!("rejecting replacement {txid}; new feerate {rate} <= old feerate {old}");
            return Err(ValidationError::new(INSUFFICIENT_FEE).with_detail(detail));
        }
    }
    check_count(graph, offered)?;
    let before: BTreeSet<Txid> =
        conflicting().flat_map(|conflict| conflict.tx.input.iter().map(|input| input.previous_output.txid)).collect();
    for (index, input) in tx.input.iter().enumerate() {
        let parent = input.previous_output.txid;
        if !before.contains(&parent) && graph.get(&parent).is_some() {
            return Err(ValidationError::new("replacement-adds-unconfirmed")
                .with_detail(format!("replacement {txid} adds unconfirmed input, idx {index}")));
        }
    }
    let replaced = graph.descendants(offered.conflicts.iter().copied());
    check_fee(limits, offered, graph.sum(&replaced).fees)?;
    Ok(replaced)
}

pub(super) fn check_count(graph: &Graph, offered: &CandidateTransaction) -> Result<(), ValidationError> {
    let conflicting = offered.conflicts.iter().filter_map(|conflict| graph.get(conflict));
    let (txid, count) = (offered.txid, conflicting.map(|conflict| conflict.descendants.count).sum::<u64>());
    if count > MAX_REPLACED {
        return Err(ValidationError::new("too many potential replacements").with_detail(format!(
            "rejecting replacement {txid}; too many potential replacements ({count} > {MAX_REPLACED})"
        )));
    }
    Ok(())
}

/// Checks that the fee covers the replaced fees and the replacement's own relay.
pub(super) fn check_fee(
    limits: &MempoolLimits,
    offered: &CandidateTransaction,
    old_fees: SignedAmount,
) -> Result<(), ValidationError> {
    let txid = offered.txid;
    let money = |amount: SignedAmount| Money(amount.to_unsigned().unwrap_or(Amount::ZERO));
    let refuse = |detail: String| Err(ValidationError::new(INSUFFICIENT_FEE).with_detail(detail));
    let more = offered.modified_fee.saturating_sub(old_fees);
    if more.is_negative() {
        return refuse(format!(
            "rejecting replacement {txid}, less fees than conflicting txs; {} < {}",
            money(offered.modified_fee),
            money(old_fees)
        ));
    }
    let needed = limits.incremental_feerate.fee(offered.size);
    if more.unsigned_abs() < needed {
        return refuse(format!(
            "rejecting replacement {txid}, not enough additional fees to relay; {} < {}",
            money(more),
            Money(needed)
        ));
    }
    Ok(())
}
