use bitcoin::consensus::serialize;
use bitcoin::transaction::Version;
use bitcoin::{Transaction, Txid};
use outrigger_node::Node;
use outrigger_service::mempool::{PackageMember, PackageOutcome};
use outrigger_service::wire::Blob;
use outrigger_values::FeeRate;

use super::TestNode;
use super::mempool::{COINBASE, accept, funded};
use super::miner::spend;

fn submit(node: &TestNode, package: &[&Transaction]) -> PackageOutcome {
    let raw: Vec<Blob> = package.iter().map(|tx| serialize(*tx).into()).collect();
    let outcome = node.submit_package(&raw, FeeRate::ZERO).unwrap();
    node.pool.read().graph.assert_consistent();
    outcome
}

fn refused(node: &TestNode, package: &[&Transaction]) -> String {
    let PackageOutcome { reason, detail, members, .. } = submit(node, package);
    match members.iter().find(|member| matches!(member, PackageMember::Rejected { .. })) {
        Some(PackageMember::Rejected { reason, detail }) => format!("{reason}, {detail}"),
        _ => format!("{reason}, {detail}"),
    }
}

fn first(tx: &Transaction) -> (Txid, u32) {
    (tx.compute_txid(), 0)
}

fn truc(from: &[(Txid, u32)], values: &[u64]) -> Transaction {
    Transaction { version: Version(3), ..spend(from, values) }
}

#[test]
fn package_transactions_are_not_unbroadcast() {
    let (node, coinbases) = funded(2);
    let [parent, alone] = [0, 1].map(|at| spend(&[(coinbases[at], 0)], &[COINBASE - 10_000]));
    let child = spend(&[first(&parent)], &[COINBASE - 20_000]);
    accept(&node, &alone);
    submit(&node, &[&parent, &child]);
    let ids = [&alone, &parent, &child].map(Transaction::compute_txid);
    let entries = node.mempool_entries(&ids).unwrap().into_iter().flatten();
    assert_eq!(entries.map(|entry| entry.unbroadcast).collect::<Vec<_>>(), [true, false, false]);
}

#[test]
fn truc_transactions_have_one_small_child_which_can_be_replaced() {
    let (node, coinbases) = funded(2);
    let parent = truc(&[(coinbases[0], 0)], &[COINBASE / 2, COINBASE / 2 - 1_000]);
    accept(&node, &parent);
    let reason = refused(&node, &[&spend(&[first(&parent)], &[COINBASE / 2 - 1_000])]);
    assert!(reason.starts_with("TRUC-violation, non-version=3 tx"), "{reason}");
    let large = truc(&[first(&parent)], &[COINBASE / 60; 29]);
    assert!(refused(&node, &[&large]).contains("is too big"), "{}", refused(&node, &[&large]));
    let child = truc(&[first(&parent)], &[COINBASE / 2 - 1_000]);
    accept(&node, &child);
    let grandchild = truc(&[first(&child)], &[COINBASE / 2 - 2_000]);
    assert!(refused(&node, &[&grandchild]).ends_with("would have too many ancestors"));
    // A sibling replaces the child if it pays for that.
    let other = (parent.compute_txid(), 1);
    let poor = refused(&node, &[&truc(&[other], &[COINBASE / 2 - 1_500])]);
    assert!(poor.starts_with("insufficient fee (including sibling eviction)"), "{poor}");
    let outcome = submit(&node, &[&truc(&[other], &[COINBASE / 2 - 9_000])]);
    assert_eq!(outcome.replaced, [child.compute_txid()]);
}

#[test]
fn a_child_must_spend_the_dust_of_its_parent() {
    let (node, coinbases) = funded(1);
    let parent = truc(&[(coinbases[0], 0)], &[COINBASE, 0]);
    let leaves = truc(&[first(&parent)], &[COINBASE - 5_000]);
    assert_eq!(submit(&node, &[&parent, &leaves]).reason, "unspent-dust");
    let takes = truc(&[first(&parent), (parent.compute_txid(), 1)], &[COINBASE - 5_000]);
    assert_eq!(submit(&node, &[&parent, &takes]).reason, "");
}
