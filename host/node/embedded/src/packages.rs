//! Packages: a transaction and its unconfirmed parents, submitted together (bitcoind's `AcceptPackage`).

use std::collections::{BTreeSet, HashSet};

use bitcoin::{Txid, Weight};
use outrigger_service::mempool::{PackageMember, PackageOutcome};
use outrigger_service::wire::Blob;
use outrigger_standard::decode::{Form, transaction_in_form};
use outrigger_values::FeeRate;
use outrigger_values::amount::Saturating;

use super::mempool::{Offer, Rules, Terms, View, describe_rejection, fail, outcome_of};
use super::{EmbeddedError, EmbeddedNode};

const MAX_PACKAGE_WEIGHT: Weight = Weight::from_wu(404_000);
const MAX_PACKAGE_COUNT: usize = 25;

impl EmbeddedNode {
    /// Submits transactions to the mempool, parents before the child. The node tries each alone first, and then tries
    /// the eligible rest as a package. `max_feerate` limits the feerate of each; [`FeeRate::ZERO`] means no limit.
    pub fn submit_package(&self, raw: &[Blob], max_feerate: FeeRate) -> Result<PackageOutcome, EmbeddedError> {
        let offers = match self.decode_package(raw)? {
            Ok(offers) => offers,
            Err(outcome) => return Ok(outcome),
        };
        if offers.len() > 1 && !is_child_with_parents(&offers) {
            return Ok(refused(raw, "package-not-child-with-parents"));
        }
        // The lock keeps chain and mempool unchanged.
        let _chain = self.lock_chain()?;
        let view = View::new(self, self.tip())?;
        let needs_all = offers.len() > 1 && !self.settings.rules().partial_packages;
        if needs_all && !has_all_parents(&view, &offers)? {
            return Ok(refused(raw, "package-not-child-with-unconfirmed-parents"));
        }
        let mut tried = outcome_of(vec![PackageMember::NotJudged; offers.len()]);
        let mut waiting = Vec::new();
        for (index, offer) in offers.iter().enumerate() {
            let known = self.pool.read().known(offer);
            if let Some(known) = known {
                tried.members[index] = known;
            } else if self.submit_first(&view, offer, max_feerate, &mut tried, index)? && offers.len() > 1 {
                waiting.push(index);
            } else if matches!(tried.members[index], PackageMember::Rejected { .. }) {
                fail(&mut tried);
            }
        }
        if tried.reason.is_empty() {
            self.submit_rest(&view, &offers, &waiting, max_feerate, &mut tried)?;
        }
        self.make_room(&offers, &mut tried);
        tried.replaced.sort_unstable();
        Ok(tried)
    }

    /// The outcome if each transaction must pay for itself and may replace none. A single transaction may replace others.
    /// Changes nothing.
    pub fn try_package(&self, raw: &[Blob]) -> Result<PackageOutcome, EmbeddedError> {
        let offers = match self.decode_package(raw)? {
            Ok(offers) => offers,
            Err(outcome) => return Ok(outcome),
        };
        let _chain = self.lock_chain()?;
        let view = View::new(self, self.tip())?;
        let pool = self.pool.read();
        let [offer] = &offers[..] else {
            return Ok(pool.examine_package(&view, &offers, Rules::Tried, FeeRate::ZERO)?.outcome);
        };
        let member = match pool.examine(&view, offer, Rules::Alone(Terms::New), FeeRate::ZERO) {
            Ok(admissible) => admissible.member(),
            Err(rejection) => describe_rejection(rejection)?,
        };
        Ok(outcome_of(vec![member]))
    }

    /// Decodes a package and makes the checks that need neither chain nor mempool. The inner `Err` refuses it.
    fn decode_package(&self, raw: &[Blob]) -> Result<Result<Vec<Offer>, PackageOutcome>, EmbeddedError> {
        let decode = |raw: &Blob| transaction_in_form(raw, Form::Extended).map(|tx| Offer::new(tx, raw));
        let Some(offers) = raw.iter().map(decode).collect::<Option<Vec<Offer>>>() else {
            return Ok(Err(refused(raw, "package-undecodable")));
        };
        if let Some(reason) = malformed(&offers) {
            return Ok(Err(refused(raw, reason)));
        }
        offers.iter().try_for_each(|offer| self.verify_ahead(offer))?;
        Ok(Ok(offers))
    }

    /// Submits one transaction of a package alone. Returns whether it may still enter with the others.
    fn submit_first(
        &self,
        view: &View,
        offer: &Offer,
        max_feerate: FeeRate,
        tried: &mut PackageOutcome,
        index: usize,
    ) -> Result<bool, EmbeddedError> {
        let examined = self.pool.read().examine(view, offer, Rules::First, max_feerate);
        match examined {
            Ok(admissible) => {
                tried.members[index] = admissible.member();
                tried.replaced.extend(&admissible.replaced);
                let (replaced, entry, now) = (admissible.replaced, admissible.entry, self.clock.now());
                self.change_pool(|pool| pool.enter(replaced, [entry], now));
                Ok(false)
            }
            Err(rejection) => {
                let may_be_helped = rejection.may_be_helped(&offer.tx);
                tried.members[index] = describe_rejection(rejection)?;
                Ok(may_be_helped)
            }
        }
    }

    /// Submits the transactions that did not enter alone, together.
    fn submit_rest(
        &self,
        view: &View,
        offers: &[Offer],
        waiting: &[usize],
        max_feerate: FeeRate,
        tried: &mut PackageOutcome,
    ) -> Result<(), EmbeddedError> {
        match waiting {
            [] => return Ok(()),
            [index] => {
                self.submit_first(view, &offers[*index], max_feerate, tried, *index)?;
                if matches!(tried.members[*index], PackageMember::Rejected { .. }) {
                    fail(tried);
                }
                return Ok(());
            }
            _ => {}
        }
        let some: Vec<Offer> = waiting.iter().map(|index| offers[*index].clone()).collect();
        let mut judged = self.pool.read().examine_package(view, &some, Rules::Together, max_feerate)?;
        for (index, member) in waiting.iter().zip(std::mem::take(&mut judged.outcome.members)) {
            if member != PackageMember::NotJudged {
                tried.members[*index] = member;
            }
        }
        if judged.outcome.reason.is_empty() {
            tried.replaced.extend(&judged.outcome.replaced);
            self.change_pool(|pool| pool.admit_package(judged, self.clock.now()));
        } else {
            let PackageOutcome { reason, detail, is_policy, .. } = judged.outcome;
            (tried.reason, tried.detail, tried.is_policy) = (reason, detail, is_policy);
        }
        Ok(())
    }

    /// Evicts the entries with the lowest feerate until the rest fits. Rejects transactions of the package that this evicts.
    fn make_room(&self, offers: &[Offer], tried: &mut PackageOutcome) {
        self.change_pool(|pool| pool.trim(self.clock.now()));
        let pool = self.pool.read();
        for (index, offer) in offers.iter().enumerate() {
            let came_in = !matches!(tried.members[index], PackageMember::Rejected { .. } | PackageMember::NotJudged);
            if came_in && !pool.has(&offer.txid) {
                tried.members[index] =
                    PackageMember::Rejected { reason: "mempool full".to_owned(), detail: String::new() };
                fail(tried);
            }
        }
    }
}

/// The outcome of a package that breaks a rule for packages before any of its transactions is examined.
fn refused(raw: &[Blob], reason: &str) -> PackageOutcome {
    let members = vec![PackageMember::NotJudged; raw.len()];
    PackageOutcome { reason: reason.to_owned(), is_policy: true, ..outcome_of(members) }
}

/// bitcoind's reason to refuse a package without examining it (`IsWellFormedPackage`).
fn malformed(offers: &[Offer]) -> Option<&'static str> {
    if offers.len() > MAX_PACKAGE_COUNT {
        return Some("package-too-many-transactions");
    }
    let weight = offers.iter().map(|offer| offer.tx.weight()).fold(Weight::ZERO, Weight::saturating_add);
    if offers.len() > 1 && weight > MAX_PACKAGE_WEIGHT {
        return Some("package-too-large");
    }
    let mut later: HashSet<Txid> = offers.iter().map(|offer| offer.txid).collect();
    if later.len() < offers.len() {
        return Some("package-contains-duplicates");
    }
    for offer in offers {
        if offer.tx.input.iter().any(|input| later.contains(&input.previous_output.txid)) {
            return Some("package-not-sorted");
        }
        later.remove(&offer.txid);
    }
    let mut spent = HashSet::new();
    for offer in offers {
        // A transaction that itself spends a coin twice gets its own error later.
        if offer.tx.input.iter().any(|input| spent.contains(&input.previous_output)) {
            return Some("conflict-in-package");
        }
        spent.extend(offer.tx.input.iter().map(|input| input.previous_output));
    }
    None
}

/// Whether the last transaction spends from each of the others.
fn is_child_with_parents(offers: &[Offer]) -> bool {
    let Some((child, parents)) = offers.split_last() else { return false };
    let spent: BTreeSet<Txid> = child.tx.input.iter().map(|input| input.previous_output.txid).collect();
    parents.iter().all(|parent| spent.contains(&parent.txid))
}

/// Whether each output that the last transaction spends is confirmed, or an output of the package.
fn has_all_parents(view: &View, offers: &[Offer]) -> Result<bool, EmbeddedError> {
    let Some((child, parents)) = offers.split_last() else { return Ok(true) };
    for outpoint in child.tx.input.iter().map(|input| &input.previous_output) {
        if !parents.iter().any(|parent| parent.txid == outpoint.txid) && view.coin(outpoint)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}
