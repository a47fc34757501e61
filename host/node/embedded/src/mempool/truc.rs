//! Topologically restricted until confirmation (TRUC, BIP 431). An unconfirmed transaction of version 3 has at most one
//! parent or child in the mempool, also of version 3. The child must be small, so that it is cheap to replace.

use bitcoin::{Transaction, Txid};

use super::Pool;
use super::entry::{Entry, Offer};
use super::replace::CandidateTransaction;
use crate::validation::ValidationError;

/// The transaction version of TRUC.
const VERSION: i32 = 3;
/// The maximum virtual sizes of a TRUC transaction, and of a TRUC child.
const MAX_SIZE: u64 = 10_000;
const MAX_CHILD_SIZE: u64 = 1_000;
/// The most ancestors and descendants, the transaction itself included.
const MAX_ANCESTORS: usize = 2;
const MAX_DESCENDANTS: u64 = 2;

pub fn is_truc(tx: &Transaction) -> bool {
    tx.version.0 == VERSION
}

/// A broken rule, and the sibling whose eviction alone would resolve it.
pub struct Violation {
    pub error: ValidationError,
    pub sibling: Option<Txid>,
}

fn violation(detail: String) -> ValidationError {
    ValidationError::new("TRUC-violation").with_detail(detail)
}

/// A transaction as bitcoind's errors name it.
fn named(txid: impl std::fmt::Display, wtxid: impl std::fmt::Display) -> String {
    format!("tx {txid} (wtxid={wtxid})")
}

fn too_many_descendants(parent: &str) -> ValidationError {
    violation(format!("{parent} would exceed descendant count limit"))
}

fn too_many_ancestors(child: &str) -> ValidationError {
    violation(format!("{child} would have too many ancestors"))
}

/// Checks that a transaction and its parent are both TRUC or both not.
fn check_version(tx: &Transaction, name: &str, parent: &Transaction, parent_name: &str) -> Result<(), ValidationError> {
    match (is_truc(tx), is_truc(parent)) {
        (false, true) => Err(violation(format!("non-version=3 {name} cannot spend from version=3 {parent_name}"))),
        (true, false) => Err(violation(format!("version=3 {name} cannot spend from non-version=3 {parent_name}"))),
        _ => Ok(()),
    }
}

fn check_size(name: &str, size: u64, has_parent: bool) -> Result<(), ValidationError> {
    let (most, child) = if has_parent { (MAX_CHILD_SIZE, "child ") } else { (MAX_SIZE, "") };
    if size > most {
        return Err(violation(format!("version=3 {child}{name} is too big: {size} > {most} virtual bytes")));
    }
    Ok(())
}

impl Pool {
    /// Checks a transaction against the mempool (bitcoind's `SingleTRUCChecks`).
    pub(super) fn check_truc(&self, entry: &Entry, measured: &CandidateTransaction) -> Result<(), Violation> {
        let alone = |error| Violation { error, sibling: None };
        let name = named(entry.txid, entry.wtxid);
        let ancestors: Vec<&Entry> = measured.ancestors.iter().filter_map(|txid| self.graph.get(txid)).collect();
        for ancestor in &ancestors {
            check_version(&entry.tx, &name, &ancestor.tx, &named(ancestor.txid, ancestor.wtxid)).map_err(alone)?;
        }
        if !is_truc(&entry.tx) {
            return Ok(());
        }
        check_size(&name, measured.size, false).map_err(alone)?;
        if ancestors.len() + 1 > MAX_ANCESTORS {
            return Err(alone(too_many_ancestors(&name)));
        }
        let Some(parent) = ancestors.first() else { return Ok(()) };
        check_size(&name, measured.size, true).map_err(alone)?;
        let is_replaced = parent.children.iter().any(|child| measured.conflicts.contains(child));
        if parent.descendants.count + 1 > MAX_DESCENDANTS && !is_replaced {
            // Only a reorganisation can leave more than two descendants, the parent included.
            let sibling = parent.children.first().filter(|_| parent.descendants.count == 2);
            let sibling = sibling.filter(|sibling| self.graph.get(sibling).is_some_and(|one| one.ancestors.count == 2));
            let error = too_many_descendants(&named(parent.txid, parent.wtxid));
            return Err(Violation { error, sibling: sibling.copied() });
        }
        Ok(())
    }

    /// Checks a transaction of a package against the others and the mempool (bitcoind's `PackageTRUCChecks`).
    pub(super) fn check_package_truc(
        &self,
        offer: &Offer,
        package: &[Offer],
        measured: &CandidateTransaction,
    ) -> Result<(), ValidationError> {
        let name = named(offer.txid, offer.wtxid);
        let spends = |txid: Txid| offer.tx.input.iter().any(|input| input.previous_output.txid == txid);
        // The ancestors of the mempool, then the parents of the package: each, its name and whether it has a child.
        let here = measured.ancestors.iter().filter_map(|txid| self.graph.get(txid));
        let here = here.map(|one| (one.txid, &one.tx, named(one.txid, one.wtxid), one.descendants.count > 1));
        let beside = package.iter().filter(|other| spends(other.txid));
        let beside = beside.map(|one| (one.txid, &one.tx, named(one.txid, one.wtxid), false));
        let parents: Vec<_> = here.chain(beside).collect();
        if !is_truc(&offer.tx) {
            return parents.iter().try_for_each(|(_, tx, parent, _)| check_version(&offer.tx, &name, tx, parent));
        }
        check_size(&name, measured.size, false)?;
        if parents.len() + 1 > MAX_ANCESTORS {
            return Err(too_many_ancestors(&name));
        }
        let Some((parent, tx, parent_name, has_child)) = parents.into_iter().next() else { return Ok(()) };
        check_size(&name, measured.size, true)?;
        check_version(&offer.tx, &name, tx, &parent_name)?;
        for other in package.iter().filter(|other| other.txid != offer.txid) {
            for input in &other.tx.input {
                if input.previous_output.txid == parent {
                    return Err(too_many_descendants(&parent_name));
                }
                if input.previous_output.txid == offer.txid {
                    return Err(too_many_ancestors(&named(other.txid, other.wtxid)));
                }
            }
        }
        if has_child { Err(too_many_descendants(&parent_name)) } else { Ok(()) }
    }
}
