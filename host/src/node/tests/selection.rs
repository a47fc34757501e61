//! What is selected for the next block.

use std::sync::Arc;

use bitcoin::consensus::{deserialize, serialize};
use bitcoin::{Transaction, Txid};
use outrigger_sdk::service::chain::Verdict;
use outrigger_sdk::service::mempool::{Admission, Candidate};

use super::super::{EmbeddedNode, Settings};
use super::TestNode;
use super::miner::{Draft, extend, extend_by, spend};

const COINBASE: u64 = 5_000_000_000;

fn accept(node: &EmbeddedNode, tx: &Transaction) -> Txid {
    let admission = node.submit(&serialize(tx), 0).unwrap();
    assert!(matches!(admission, Admission::Accepted { .. }), "{admission:?}");
    tx.compute_txid()
}

fn ids(candidate: &Candidate) -> Vec<Txid> {
    candidate.transactions.iter().map(|selected| selected.txid).collect()
}

#[test]
fn children_pay_for_their_parents_and_come_after_them() {
    let node = TestNode::new();
    let coinbases = extend_by(&node, 103);
    let poor = spend(&[(coinbases[0], 0)], &[COINBASE / 2, COINBASE / 2 - 200]);
    let middle = spend(&[(coinbases[1], 0)], &[COINBASE - 5_000]);
    let rich = spend(&[(poor.compute_txid(), 0), (poor.compute_txid(), 1)], &[COINBASE - 50_200]);
    for tx in [&poor, &middle, &rich] {
        accept(&node, tx);
    }
    let candidate = node.candidate();
    assert_eq!(ids(&candidate), [poor.compute_txid(), rich.compute_txid(), middle.compute_txid()]);
    assert_eq!(candidate.transactions[1].depends, [1, 1]);
    assert_eq!((candidate.fees, candidate.transactions[0].fee), (55_200, 200));
    assert_eq!(candidate.transactions[2].weight, middle.weight().to_wu());
    // What was asked for again was not made again.
    assert!(Arc::ptr_eq(&candidate, &node.candidate()));
    node.prioritise(middle.compute_txid(), 1_000_000).unwrap();
    let candidate = node.candidate();
    assert_eq!(ids(&candidate)[0], middle.compute_txid());
    assert_eq!(candidate.transactions[0].fee, 5_000);
    node.prioritise(middle.compute_txid(), -1_000_000).unwrap();
    assert_eq!(ids(&node.candidate())[2], middle.compute_txid());
}

#[test]
fn a_block_of_the_template_is_valid_and_empties_the_mempool() {
    let node = TestNode::new();
    let coinbases = extend_by(&node, 110);
    for coinbase in &coinbases[..10] {
        let tx = spend(&[(*coinbase, 0)], &[COINBASE / 2, COINBASE / 2 - 10_000]);
        let txid = accept(&node, &tx);
        accept(&node, &spend(&[(txid, 1)], &[COINBASE / 2 - 30_000]));
    }
    let (next, candidate) = (node.next_block(), node.candidate());
    assert_eq!(next.tip, node.tip());
    assert_eq!((next.bits, next.min_time), (0x207f_ffff, next.tip.median_time + 1));
    assert_eq!(next.rules, ["csv", "!segwit", "taproot"]);
    let transactions: Vec<Transaction> =
        candidate.transactions.iter().map(|selected| deserialize(&selected.raw).unwrap()).collect();
    assert_eq!(transactions.len(), 20);
    let block = Draft::on(&node, next.tip.hash, &transactions, 0)
        .edit(|block| block.txdata[0].output[0].value += bitcoin::Amount::from_sat(candidate.fees))
        .finish();
    assert_eq!(node.check_block(&serialize(&block)).unwrap(), Verdict::Valid);
    assert_eq!(node.submit_block(&serialize(&block)).unwrap(), Verdict::Valid);
    assert!(node.mempool_ids().is_empty());
    assert!(node.candidate().transactions.is_empty());
}

#[test]
fn the_weight_and_the_least_feerate_bound_the_selection() {
    let mut settings = Settings::default();
    let one = spend(&[(Txid::from_raw_hash(bitcoin::hashes::Hash::all_zeros()), 0)], &[1]).weight().to_wu();
    // Room for two, and a little less than three.
    settings.reserved_weight = 4_000_000 - 3 * one;
    settings.mempool.block_feerate = 20_000;
    let node = TestNode::with(settings);
    let coinbases = extend_by(&node, 104);
    let paying: Vec<_> = [3_000, 4_000, 1_000, 5_000]
        .iter()
        .zip(&coinbases)
        .map(|(fee, coinbase)| accept(&node, &spend(&[(*coinbase, 0)], &[COINBASE - fee])))
        .collect();
    assert_eq!(ids(&node.candidate()), [paying[3], paying[1]]);
    extend(&node, &[]);
    let transactions: Vec<Transaction> =
        node.candidate().transactions.iter().map(|selected| deserialize(&selected.raw).unwrap()).collect();
    extend(&node, &transactions);
    // The one that pays too little stays where it is.
    assert_eq!(ids(&node.candidate()), [paying[0]]);
    assert_eq!(node.mempool_ids().len(), 2);
}
