use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use bitcoin::absolute::LockTime;
use bitcoin::consensus::{deserialize, serialize};
use bitcoin::{Amount, Sequence, SignedAmount, Transaction, Txid, Weight};
use outrigger_node::Node;
use outrigger_service::mempool::{Admission, Candidate, MempoolEntry};
use outrigger_values::{FeeFrac, FeeRate};

use super::super::{EmbeddedNode, MempoolLimits, Settings};
use super::TestNode;
use super::mempool::{COINBASE, accept};
use super::miner::{extend, extend_by, spend};

fn candidate(node: &EmbeddedNode) -> Candidate {
    node.candidate(None).unwrap().unwrap()
}

fn ids(candidate: &Candidate) -> Vec<Txid> {
    candidate.transactions.iter().map(|selected| selected.txid).collect()
}

#[test]
fn selection_is_returned_once_per_version() {
    let limits = MempoolLimits { block_feerate: FeeRate::from_sat_per_kvb(20_000), ..MempoolLimits::default() };
    let node = TestNode::with(Settings { mempool: limits, ..Settings::default() });
    let coinbases = extend_by(&node, 103);
    accept(&node, &spend(&[(coinbases[0], 0)], &[COINBASE - 50_000]));
    let first = candidate(&node);
    assert_eq!(node.candidate(Some(first.version)).unwrap(), None);
    assert_eq!(node.candidate(Some(first.version + 1)).unwrap().map(|again| again.version), Some(first.version));
    // A transaction below the block feerate changes the mempool, but not the selection.
    accept(&node, &spend(&[(coinbases[1], 0)], &[COINBASE - 1_000]));
    assert_eq!(node.candidate(Some(first.version)).unwrap(), None);
    let again = candidate(&node);
    assert_eq!((again.version, &again.transactions), (first.version, &first.transactions));
    assert!(again.sequence > first.sequence);
    // A new tip makes a new selection, even with the same transactions.
    extend(&node, &[]);
    let on_next = node.candidate(Some(first.version)).unwrap().unwrap();
    assert_eq!((on_next.next.tip, &on_next.transactions), (node.tip(), &first.transactions));
    accept(&node, &spend(&[(coinbases[2], 0)], &[COINBASE - 60_000]));
    assert_eq!(node.candidate(Some(on_next.version)).unwrap().unwrap().transactions.len(), 2);
}

#[test]
fn selection_has_all_transactions_accepted_before_the_call() {
    let node = TestNode::new();
    let coinbases = extend_by(&node, 130);
    let mut known = candidate(&node).version;
    for coinbase in &coinbases[..30] {
        let txid = accept(&node, &spend(&[(*coinbase, 0)], &[COINBASE - 10_000]));
        let candidate = node.candidate(Some(known)).unwrap().unwrap();
        assert!(ids(&candidate).contains(&txid));
        known = candidate.version;
    }
    let versions: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| candidate(&node).version)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(versions, [known; 8]);
}

#[test]
fn selection_reads_only_transactions_with_a_lock_time() {
    let node = TestNode::new();
    let coinbases = extend_by(&node, 102);
    let free = spend(&[(coinbases[0], 0)], &[COINBASE - 10_000]);
    let mut locked = spend(&[(coinbases[1], 0)], &[COINBASE - 20_000]);
    locked.lock_time = LockTime::from_height(102).unwrap();
    locked.input[0].sequence = Sequence::ENABLE_LOCKTIME_NO_RBF;
    let txids = [accept(&node, &locked), accept(&node, &free)];
    assert_eq!(txids.map(|txid| node.pool.read().graph.get(&txid).unwrap().locked), [true, false]);
    assert_eq!(ids(&candidate(&node)), txids);
}

/// Submits transactions that spend each other's outputs, with random fees.
fn submit_random(node: &EmbeddedNode, coinbases: &[Txid]) {
    let mut state = 1_u64;
    let mut next = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let mut open: Vec<(Txid, u32, u64)> = coinbases.iter().map(|txid| (*txid, 0, COINBASE)).collect();
    for _ in 0..150 {
        let mut inputs = Vec::new();
        for _ in 0..=next(2) {
            inputs.push(open.swap_remove(usize::try_from(next(open.len() as u64)).unwrap()));
        }
        let value: u64 = inputs.iter().map(|(_, _, value)| value).sum();
        let outputs = 2 + next(2);
        let each = (value - 500 - next(20_000)) / outputs;
        let from: Vec<_> = inputs.iter().map(|(txid, vout, _)| (*txid, *vout)).collect();
        let tx = spend(&from, &vec![each; usize::try_from(outputs).unwrap()]);
        // Some transactions exceed the ancestor limits.
        match node.submit(&serialize(&tx), FeeRate::ZERO).unwrap() {
            Admission::Accepted { txid, .. } => open.extend((0..).zip(&tx.output).map(|(vout, _)| (txid, vout, each))),
            _ => open.extend(inputs),
        }
    }
}

/// The selection without a weight limit, computed from scratch for each package.
fn naive(node: &EmbeddedNode) -> Vec<Txid> {
    let entries: BTreeMap<Txid, MempoolEntry> = node
        .mempool_entries(&node.mempool_ids().unwrap())
        .unwrap()
        .into_iter()
        .flatten()
        .map(|entry| (entry.txid, entry))
        .collect();
    let ancestors = |txid: &Txid| {
        let mut all = BTreeSet::new();
        let mut waiting = vec![*txid];
        while let Some(txid) = waiting.pop() {
            if all.insert(txid) {
                waiting.extend(&entries[&txid].depends);
            }
        }
        all
    };
    let mut chosen: Vec<Txid> = Vec::new();
    while chosen.len() < entries.len() {
        let package = |txid: &Txid| {
            let mut needed: Vec<_> = ancestors(txid).into_iter().filter(|txid| !chosen.contains(txid)).collect();
            needed.sort_by_key(|txid| (entries[txid].ancestor_count, *txid));
            needed
        };
        let rate = |txid: &Txid| {
            let needed = package(txid);
            let sum = |of: fn(&MempoolEntry) -> i64| needed.iter().map(|txid| of(&entries[txid])).sum();
            let fee = SignedAmount::from_sat(sum(|entry| entry.modified_fee.to_sat()));
            let all = FeeFrac { fee, size: sum(|entry| entry.virtual_size as i64) as u64 };
            all.min(FeeFrac { fee: entries[txid].modified_fee, size: entries[txid].virtual_size })
        };
        let left = entries.keys().filter(|txid| !chosen.contains(txid));
        let best = left.max_by_key(|txid| (rate(txid), Reverse(**txid))).unwrap();
        let package = package(best);
        chosen.extend(package);
    }
    chosen
}

#[test]
fn selection_equals_a_naive_one() {
    let node = TestNode::new();
    let coinbases = extend_by(&node, 120);
    submit_random(&node, &coinbases[..20]);
    node.pool.read().graph.assert_consistent();
    let chosen = candidate(&node);
    assert!(chosen.transactions.len() > 50);
    assert_eq!(ids(&chosen), naive(&node));
    for (at, selected) in chosen.transactions.iter().enumerate() {
        let tx: Transaction = deserialize(&selected.raw).unwrap();
        let inputs = tx.input.iter().map(|input| input.previous_output.txid);
        let position = |txid| chosen.transactions.iter().position(|one| one.txid == txid);
        let parents: Vec<u32> =
            inputs.filter_map(position).map(|position| u32::try_from(position).unwrap() + 1).collect();
        assert_eq!(selected.depends, parents);
        assert!(parents.iter().all(|parent| (*parent as usize) <= at), "{at} after {parents:?}");
    }
    // Deltas move transactions and the packages that include them.
    for (index, txid) in node.mempool_ids().unwrap().into_iter().enumerate().step_by(7) {
        node.prioritise(txid, SignedAmount::from_sat(if index % 2 == 0 { 9_000 } else { -700 })).unwrap();
    }
    node.pool.read().graph.assert_consistent();
    let chosen = candidate(&node);
    assert_eq!(ids(&chosen), naive(&node));
    // The deltas do not change the fees that a block pays.
    let entries = node.mempool_entries(&ids(&chosen)).unwrap();
    let fees: Vec<Amount> = entries.into_iter().flatten().map(|entry| entry.fee).collect();
    assert_eq!(chosen.transactions.iter().map(|selected| selected.fee).collect::<Vec<_>>(), fees);
    let all: Amount = fees.into_iter().sum();
    assert_eq!((chosen.fees, chosen.next.subsidy), (all, Amount::from_sat(COINBASE)));
}

#[test]
fn selection_is_bounded_by_weight_and_feerate() {
    let mut settings = Settings::default();
    let one = spend(&[(Txid::from_raw_hash(bitcoin::hashes::Hash::all_zeros()), 0)], &[1]).weight().to_wu();
    // Space for two transactions, and a little less than three.
    settings.reserved_weight = Weight::from_wu(4_000_000 - 3 * one);
    settings.mempool.block_feerate = FeeRate::from_sat_per_kvb(20_000);
    let node = TestNode::with(settings);
    let coinbases = extend_by(&node, 104);
    let paying: Vec<_> = [3_000, 4_000, 1_000, 5_000]
        .iter()
        .zip(&coinbases)
        .map(|(fee, coinbase)| accept(&node, &spend(&[(*coinbase, 0)], &[COINBASE - fee])))
        .collect();
    assert_eq!(ids(&candidate(&node)), [paying[3], paying[1]]);
    extend(&node, &[]);
    let transactions: Vec<Transaction> =
        candidate(&node).transactions.iter().map(|selected| deserialize(&selected.raw).unwrap()).collect();
    extend(&node, &transactions);
    // The transaction that pays too little stays in the mempool.
    assert_eq!(ids(&candidate(&node)), [paying[0]]);
    assert_eq!(node.mempool_ids().unwrap().len(), 2);
}
