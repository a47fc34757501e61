//! Validation of several transactions together (bitcoind's `AcceptMultipleTransactions`): they may spend each other's
//! outputs, and may pay together.

use std::collections::{BTreeSet, HashSet};

use bitcoin::{OutPoint, SignedAmount, Txid, Wtxid};
use outrigger_service::mempool::{PackageMember, PackageOutcome};
use outrigger_values::amount::Saturating;
use outrigger_values::{FeeFrac, FeeRate};

use super::admit::{CheckedTransaction, Rejection, Rules};
use super::diagram::check_improvement;
use super::entry::{Offer, paid_feerate};
use super::policy::dust;
use super::replace::{CandidateTransaction, check_count, check_fee};
use super::{Pool, View};
use crate::EmbeddedError;
use crate::validation::ValidationError;

/// bitcoind's reason for a package with a refused transaction.
const FAILED: &str = "transaction failed";

/// The outcome of a package that is not refused as a whole.
pub fn outcome_of(members: Vec<PackageMember>) -> PackageOutcome {
    PackageOutcome { reason: String::new(), detail: String::new(), is_policy: false, members, replaced: Vec::new() }
}

/// Refuses a package because of one of its transactions.
pub fn fail(outcome: &mut PackageOutcome) {
    (outcome.reason, outcome.detail, outcome.is_policy) = (FAILED.to_owned(), String::new(), false);
}

pub struct PackageVerdict {
    pub outcome: PackageOutcome,
    /// The entries to add if the package is accepted.
    examined: Vec<CheckedTransaction>,
}

impl PackageVerdict {
    /// Refuses a package that breaks a rule for packages.
    fn refused(mut self, error: ValidationError) -> Self {
        let outcome = &mut self.outcome;
        (outcome.reason, outcome.detail, outcome.is_policy) = (error.reason.into_owned(), error.detail, true);
        self
    }

    fn failed(mut self) -> Self {
        fail(&mut self.outcome);
        self
    }
}

pub fn describe(rejection: Rejection) -> Result<PackageMember, EmbeddedError> {
    let error = match rejection {
        Rejection::Node(error) => return Err(error),
        Rejection::Refused(error) => error,
        Rejection::Known => ValidationError::new("txn-already-in-mempool"),
        Rejection::InChain => ValidationError::new("txn-already-known"),
        Rejection::MissingInputs => ValidationError::new("bad-txns-inputs-missingorspent"),
    };
    Ok(PackageMember::Rejected { reason: error.reason.into_owned(), detail: error.detail })
}

impl Pool {
    /// Validates transactions. The caller has checked that the package is well-formed.
    pub fn examine_package(
        &self,
        view: &View,
        offers: &[Offer],
        rules: Rules,
        max_feerate: FeeRate,
    ) -> Result<PackageVerdict, EmbeddedError> {
        let outcome = outcome_of(vec![PackageMember::NotJudged; offers.len()]);
        let mut judged = PackageVerdict { outcome, examined: Vec::new() };
        for (index, offer) in offers.iter().enumerate() {
            let examined = self.examine_alone(view, offer, rules, &offers[..index]);
            match examined.and_then(|examined| examined.check_max_feerate(max_feerate).map(|()| examined)) {
                Ok(examined) => judged.examined.push(examined),
                Err(rejection) => {
                    judged.outcome.members[index] = describe(rejection)?;
                    return Ok(judged.failed());
                }
            }
        }
        for (offer, examined) in offers.iter().zip(&judged.examined) {
            if let Err(error) = self.check_package_truc(offer, offers, &examined.measured) {
                return Ok(judged.refused(error));
            }
        }
        let sum = |of: fn(&CandidateTransaction) -> SignedAmount| {
            judged.examined.iter().map(|one| of(&one.measured)).fold(SignedAmount::ZERO, SignedAmount::saturating_add)
        };
        let size = judged.examined.iter().map(|examined| examined.measured.size).sum();
        let whole = FeeFrac { fee: sum(|measured| measured.modified_fee), size };
        let wtxids: Vec<Wtxid> = offers.iter().map(|offer| offer.wtxid).collect();
        if rules.pays_together()
            && let Err(error) = self.check_feerate(whole.size, whole.fee, view.node.clock.now())
        {
            if let Some(last) = judged.outcome.members.last_mut() {
                *last = describe(error.into())?;
            }
            return Ok(judged.failed());
        }
        if let Err(error) = self.check_package_limits(offers, whole.size) {
            return Ok(judged.refused(error));
        }
        match self.check_package_replacement(&judged.examined, whole) {
            Ok(replaced) => judged.outcome.replaced = replaced.into_iter().collect(),
            Err(error) => return Ok(judged.refused(error)),
        }
        if let Err((index, error)) = self.check_dust_spends(offers) {
            judged.outcome.members[index] = describe(error.into())?;
            "unspent-dust".clone_into(&mut judged.outcome.reason);
            return Ok(judged);
        }
        for (index, (offer, examined)) in offers.iter().zip(&judged.examined).enumerate() {
            if let Err(error) = examined.check_scripts(view, offer) {
                judged.outcome.members[index] = describe(error.into())?;
                return Ok(judged.failed());
            }
            let together = (paid_feerate(whole.fee, whole.size), wtxids.clone());
            let (feerate, included) =
                if rules.pays_together() { together } else { (examined.measured.feerate(), vec![offer.wtxid]) };
            judged.outcome.members[index] = examined.entry.accepted(feerate, included);
        }
        Ok(judged)
    }

    /// Checks the chain limits as bitcoind does, as if each transaction had all ancestors of the package.
    fn check_package_limits(&self, offers: &[Offer], size: u64) -> Result<(), ValidationError> {
        let refuse = |detail: String| Err(ValidationError::new("package-mempool-limits").with_detail(detail));
        let (count, limits) = (offers.len() as u64, &self.limits);
        if count < 2 {
            return Ok(());
        }
        let sizes = [("ancestor", limits.max_ancestor_size), ("descendant", limits.max_descendant_size)];
        if let Some((kind, most)) = sizes.into_iter().find(|(_, most)| size > *most) {
            return refuse(format!("package size {size} exceeds {kind} size limit [limit: {most}]"));
        }
        let inputs = offers.iter().flat_map(|offer| &offer.tx.input).map(|input| input.previous_output.txid);
        let parents: BTreeSet<Txid> = inputs.filter(|txid| self.has(txid)).collect();
        if parents.len() as u64 + count > limits.max_ancestors {
            return refuse(format!("too many unconfirmed parents [limit: {}]", limits.max_ancestors));
        }
        match self.check_chain(parents, count, size, limits) {
            Err(error) => refuse(format!("possibly {}", error.detail)),
            Ok(()) => Ok(()),
        }
    }

    /// Checks whether a package may replace others. Returns the entries to remove.
    fn check_package_replacement(
        &self,
        examined: &[CheckedTransaction],
        whole: FeeFrac,
    ) -> Result<BTreeSet<Txid>, ValidationError> {
        let failed = |reason: String, detail: String| {
            ValidationError::new(format!("package RBF failed: {reason}")).with_detail(detail)
        };
        let refuse = |reason: &str| Err(failed(reason.to_owned(), String::new()));
        let conflicts: BTreeSet<Txid> = examined.iter().flat_map(|one| &one.measured.conflicts).copied().collect();
        if conflicts.is_empty() {
            return Ok(conflicts);
        }
        let [parent, child] = examined else { return refuse("package must be 1-parent-1-child") };
        if examined.iter().any(|one| !one.measured.ancestors.is_empty()) {
            return refuse("new transaction cannot have mempool ancestors");
        }
        let together =
            CandidateTransaction { size: whole.size, modified_fee: whole.fee, conflicts, ..child.measured.clone() };
        check_count(&self.graph, &together)
            .map_err(|error| failed("too many potential replacements".to_owned(), error.detail))?;
        let replaced = self.graph.descendants(together.conflicts.iter().copied());
        check_fee(&self.limits, &together, self.graph.sum(&replaced).fees)
            .map_err(|error| failed("insufficient anti-DoS fees".to_owned(), error.detail))?;
        let (package, first) = (together.feerate(), parent.measured.feerate());
        if package <= first {
            return Err(failed(
                "package feerate is less than or equal to parent feerate".to_owned(),
                format!("package feerate {package} <= parent feerate is {first}"),
            ));
        }
        check_improvement(&self.graph, &replaced, whole).map_err(|reason| failed(reason, String::new()))?;
        Ok(replaced)
    }

    /// Checks that each transaction spends all dust of its unconfirmed parents (bitcoind's `CheckEphemeralSpends`). The
    /// error has the index of the first transaction that does not.
    pub(super) fn check_dust_spends(&self, offers: &[Offer]) -> Result<(), (usize, ValidationError)> {
        for (index, offer) in offers.iter().enumerate() {
            let spent: HashSet<_> = offer.tx.input.iter().map(|input| input.previous_output).collect();
            let is_left = |parent: &Txid| {
                let beside = offers.iter().find(|other| other.txid == *parent).map(|other| &other.tx);
                let tx = beside.or_else(|| self.graph.get(parent).map(|entry| &entry.tx));
                let is_spent = |vout| spent.contains(&OutPoint::new(*parent, vout));
                tx.is_some_and(|tx| !dust(tx).all(is_spent))
            };
            if spent.iter().any(|outpoint| is_left(&outpoint.txid)) {
                let detail = format!("tx {} (wtxid={}) did not spend parent's ephemeral dust", offer.txid, offer.wtxid);
                return Err((index, ValidationError::new("missing-ephemeral-spends").with_detail(detail)));
            }
        }
        Ok(())
    }

    pub fn admit_package(&mut self, judged: PackageVerdict, now: u64) {
        let entries = judged.examined.into_iter().map(|examined| examined.entry);
        self.enter(judged.outcome.replaced, entries, now);
    }
}
