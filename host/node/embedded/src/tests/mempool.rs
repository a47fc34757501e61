//! Admission to the mempool, refusals, and how the mempool follows the chain.

use bitcoin::absolute::LockTime;
use bitcoin::consensus::serialize;
use bitcoin::{Amount, Block, OutPoint, ScriptBuf, Sequence, SignedAmount, Transaction, Txid, Witness};
use outrigger_node::Node;
use outrigger_script::{Flags, ScriptError};
use outrigger_service::chain::{BlockRef, Verdict};
use outrigger_service::mempool::Admission;
use outrigger_values::FeeRate;

use super::super::mempool::{Offer, Rejection, Rules, Terms, View};
use super::super::{EmbeddedNode, MempoolLimits, Settings};
use super::TestNode;
use super::miner::{Draft, extend, extend_by, spend};

/// The value of an early coinbase, in satoshi.
pub const COINBASE: u64 = 5_000_000_000;

/// A node with this many mature coinbases.
pub fn funded(count: u32) -> (TestNode, Vec<Txid>) {
    let node = TestNode::new();
    let coinbases = extend_by(&node, 100 + count);
    (node, coinbases)
}

pub fn submit(node: &EmbeddedNode, tx: &Transaction) -> Admission {
    let tried = node.try_submit(&serialize(tx), FeeRate::ZERO).unwrap();
    let submitted = node.submit(&serialize(tx), FeeRate::ZERO).unwrap();
    if !matches!(submitted, Admission::AlreadyInChain) {
        assert_eq!(tried, submitted);
    }
    node.pool.read().graph.assert_consistent();
    submitted
}

pub fn accept(node: &EmbeddedNode, tx: &Transaction) -> Txid {
    let admission = submit(node, tx);
    assert!(matches!(admission, Admission::Accepted { .. }), "{admission:?}");
    tx.compute_txid()
}

/// Reason and detail, as bitcoind prints them in one line.
pub fn refusal(admission: Admission) -> String {
    match admission {
        Admission::Rejected { reason, detail } if detail.is_empty() => reason,
        Admission::Rejected { reason, detail } => format!("{reason}, {detail}"),
        other => panic!("{other:?}"),
    }
}

fn locked(from: (Txid, u32), sequence: u32, lock_time: u32) -> Transaction {
    let mut tx = spend(&[from], &[COINBASE - 10_000]);
    tx.input[0].sequence = Sequence(sequence);
    tx.lock_time = LockTime::from_consensus(lock_time);
    tx
}

#[test]
fn mempool_keeps_a_valid_transaction_until_it_is_confirmed() {
    let (node, coinbases) = funded(1);
    let before = node.mempool_info().unwrap();
    let tx = spend(&[(coinbases[0], 0)], &[COINBASE - 10_000]);
    let (txid, wtxid) = (tx.compute_txid(), tx.compute_wtxid());
    let raw = serialize(&tx);
    let size = tx.vsize() as u64;
    let accepted = Admission::Accepted { txid, wtxid, virtual_size: size, fee: Amount::from_sat(10_000) };
    assert_eq!(submit(&node, &tx), accepted);
    assert_eq!(submit(&node, &tx), Admission::Known { txid });
    let info = node.mempool_info().unwrap();
    assert_eq!((info.transactions, info.virtual_size, info.total_fee), (1, size, Amount::from_sat(10_000)));
    assert!(info.sequence > before.sequence);
    assert_eq!(node.mempool_ids().unwrap(), [txid]);
    let spent = tx.input[0].previous_output;
    assert_eq!(node.mempool_spenders(&[spent, OutPoint::null()]).unwrap(), [Some(txid), None]);
    assert_eq!(node.mempool_transactions(&[txid]).unwrap()[0].as_ref().unwrap().0, raw);
    let entry = node.mempool_entries(&[txid]).unwrap()[0].clone().unwrap();
    assert_eq!((entry.weight, entry.ancestor_count, entry.replaceable), (tx.weight(), 1, false));
    assert_eq!((entry.height, entry.fee), (101, Amount::from_sat(10_000)));
    assert_eq!(entry.modified_fee, SignedAmount::from_sat(10_000));
    extend(&node, std::slice::from_ref(&tx));
    assert!(node.mempool_ids().unwrap().is_empty());
    assert_eq!(submit(&node, &tx), Admission::AlreadyInChain);
    assert_eq!(node.try_submit(&raw, FeeRate::ZERO).unwrap(), Admission::AlreadyInChain);
}

#[test]
fn scripts_are_verified_once_and_only_if_the_other_checks_pass() {
    let (node, coinbases) = funded(1);
    let from = (coinbases[0], 0);
    // Larger than the standard weight, with valid scripts.
    let large = spend(&[from], &[1_000; 4_000]);
    assert_eq!(refusal(submit(&node, &large)), "tx-size");
    assert!(!node.cache.contains(&large.compute_wtxid(), Flags::STANDARD));
    // A block that was checked is usually submitted next.
    let block = Draft::on(&node, node.tip().hash, std::slice::from_ref(&large), 0).finish();
    assert_eq!(node.check_block(&serialize(&block)).unwrap(), Verdict::Valid);
    assert!(node.cache.contains(&large.compute_wtxid(), Flags::CONSENSUS));
    // A script failure found before the lock is not verified again.
    let mut failing = spend(&[from], &[COINBASE - 10_000]);
    failing.input[0].witness = Witness::new();
    let offer = Offer::new(failing.clone(), &serialize(&failing));
    node.verify_ahead(&offer).unwrap();
    assert_eq!(offer.failed_script.get().map(|(input, _)| *input), Some(0));
    let valid = spend(&[from], &[COINBASE - 20_000]);
    let offer = Offer::new(valid.clone(), &serialize(&valid));
    offer.failed_script.set((0, ScriptError::EvalFalse)).unwrap();
    let view = View::new(&node, node.tip()).unwrap();
    let examined = node.pool.read().examine(&view, &offer, Rules::Alone(Terms::New), FeeRate::ZERO);
    assert!(matches!(examined, Err(Rejection::Refused(_))), "the stored failure is reported");
}

#[test]
fn mempool_refusals_have_the_reject_reasons_of_bitcoind() {
    let (node, coinbases) = funded(2);
    let from = (coinbases[0], 0);
    let said = |tx: &Transaction| refusal(submit(&node, tx));
    assert_eq!(
        said(&spend(&[from], &[COINBASE + 1])),
        "bad-txns-in-belowout, value in (50.00) < value out (50.00000001)"
    );
    assert_eq!(said(&spend(&[from], &[COINBASE])), "min relay fee not met, 0 < 96");
    assert_eq!(said(&locked(from, 0, 103)), "non-final");
    assert_eq!(said(&locked(from, 1_000, 0)), "non-BIP68-final");
    assert_eq!(said(&spend(&[(coinbases[1], 0), from, from], &[COINBASE])), "bad-txns-inputs-duplicate");
    let young = extend(&node, &[]).txdata[0].compute_txid();
    assert_eq!(
        said(&spend(&[(young, 0)], &[1_000])),
        "bad-txns-premature-spend-of-coinbase, tried to spend coinbase at depth 1"
    );
    let mut unsigned = spend(&[from], &[COINBASE - 10_000]);
    unsigned.input[0].witness = Witness::new();
    let (txid, wtxid) = (unsigned.compute_txid(), unsigned.compute_wtxid());
    assert_eq!(
        said(&unsigned),
        format!(
            "mempool-script-verify-flag-failed (Witness program was passed an empty witness), input 0 of {txid} \
             (wtxid {wtxid}), spending {}:0",
            coinbases[0]
        )
    );
    let mut small = spend(&[from], &[COINBASE - 10_000]);
    small.output[0].script_pubkey = ScriptBuf::from_bytes(vec![0x6a]);
    assert_eq!(said(&small), "tx-size-small");
    let dust = spend(&[from], &[COINBASE - 10_000, 1]);
    assert_eq!(said(&dust), "dust, tx with dust output must be 0-fee");
    assert_eq!(said(&spend(&[from], &[u64::MAX])), "bad-txns-vout-negative");
    let missing = spend(&[(Txid::from_raw_hash(bitcoin::hashes::Hash::all_zeros()), 0)], &[1_000]);
    assert_eq!(submit(&node, &missing), Admission::MissingInputs);
    let coinbase = extend(&node, &[]).txdata[0].clone();
    assert_eq!(refusal(node.try_submit(&serialize(&coinbase), FeeRate::ZERO).unwrap()), "coinbase");
    assert_eq!(node.submit(&serialize(&coinbase), FeeRate::ZERO).unwrap(), Admission::AlreadyInChain);
    assert_eq!(node.submit(&[0; 9], FeeRate::ZERO).unwrap(), Admission::Undecodable);
    // sendrawtransaction: ten bytes of zeros are a transaction without inputs and outputs.
    assert_eq!(refusal(node.submit(&[0; 10], FeeRate::ZERO).unwrap()), "bad-txns-vin-empty");
    assert_eq!(node.submit(&[0; 11], FeeRate::ZERO).unwrap(), Admission::Undecodable);
    let longer = [serialize(&dust), vec![0]].concat();
    assert_eq!(node.submit(&longer, FeeRate::ZERO).unwrap(), Admission::Undecodable);
    assert!(node.mempool_ids().unwrap().is_empty());
}

#[test]
fn mempool_submission_can_bound_the_feerate() {
    let (node, coinbases) = funded(1);
    let tx = spend(&[(coinbases[0], 0)], &[COINBASE - 10_000]);
    let size = tx.vsize() as u64;
    let bound = |more: u64| FeeRate::paid(Amount::from_sat(9_990 + more), size);
    assert_eq!(
        node.submit(&serialize(&tx), bound(0)).unwrap(),
        Admission::FeeTooHigh { fee: Amount::from_sat(10_000) }
    );
    assert!(node.mempool_ids().unwrap().is_empty());
    assert!(matches!(node.submit(&serialize(&tx), bound(20)).unwrap(), Admission::Accepted { .. }));
}

#[test]
fn the_same_transaction_with_another_witness_is_not_taken() {
    let (node, coinbases) = funded(1);
    let tx = spend(&[(coinbases[0], 0)], &[COINBASE - 10_000]);
    accept(&node, &tx);
    let mut other = tx.clone();
    other.input[0].witness = Witness::from_slice(&[&[][..], &[0x51]]);
    let tried = node.try_submit(&serialize(&other), FeeRate::ZERO).unwrap();
    assert_eq!(refusal(tried), "txn-same-nonwitness-data-in-mempool");
    assert_eq!(node.submit(&serialize(&other), FeeRate::ZERO).unwrap(), Admission::Known { txid: tx.compute_txid() });
}

#[test]
fn replacements_pay_for_what_they_replace() {
    let (node, coinbases) = funded(2);
    let from = (coinbases[0], 0);
    let first = spend(&[from], &[COINBASE - 10_000]);
    accept(&node, &first);
    let child = spend(&[(first.compute_txid(), 0)], &[COINBASE - 30_000]);
    accept(&node, &child);
    let with_fee = |fee: u64| spend(&[from], &[COINBASE - fee]);
    let txid = |fee| with_fee(fee).compute_txid();
    let size = first.vsize() as u64;
    let rate = |fee: u64| FeeRate::paid(Amount::from_sat(fee), size);
    assert_eq!(
        refusal(submit(&node, &with_fee(9_999))),
        format!(
            "insufficient fee, rejecting replacement {}; new feerate {} <= old feerate {}",
            txid(9_999),
            rate(9_999),
            rate(10_000)
        )
    );
    assert_eq!(
        refusal(submit(&node, &with_fee(29_999))),
        format!(
            "insufficient fee, rejecting replacement {}, less fees than conflicting txs; 0.00029999 < 0.0003",
            txid(29_999)
        )
    );
    assert_eq!(
        refusal(submit(&node, &with_fee(30_001))),
        format!(
            "insufficient fee, rejecting replacement {}, not enough additional fees to relay; 0.00000001 < 0.00000096",
            txid(30_001)
        )
    );
    let other = spend(&[(coinbases[1], 0)], &[COINBASE - 10_000]);
    accept(&node, &other);
    let adding = spend(&[from, (other.compute_txid(), 0)], &[COINBASE]);
    assert_eq!(
        refusal(submit(&node, &adding)),
        format!("replacement-adds-unconfirmed, replacement {} adds unconfirmed input, idx 1", adding.compute_txid())
    );
    let spending_own = spend(&[from, (child.compute_txid(), 0)], &[COINBASE]);
    assert_eq!(
        refusal(submit(&node, &spending_own)),
        format!(
            "bad-txns-spends-conflicting-tx, {} spends conflicting transaction {}",
            spending_own.compute_txid(),
            first.compute_txid()
        )
    );
    accept(&node, &with_fee(31_000));
    assert_eq!(node.mempool_ids().unwrap(), [other.compute_txid(), txid(31_000)]);
}

#[test]
fn blocks_remove_their_transactions_and_conflicting_ones() {
    let (node, coinbases) = funded(2);
    let parent = spend(&[(coinbases[0], 0)], &[COINBASE - 10_000]);
    let child = spend(&[(parent.compute_txid(), 0)], &[COINBASE - 20_000]);
    let victim = spend(&[(coinbases[1], 0)], &[COINBASE - 10_000]);
    let orphan = spend(&[(victim.compute_txid(), 0)], &[COINBASE - 20_000]);
    for tx in [&parent, &child, &victim, &orphan] {
        accept(&node, tx);
    }
    let conflict = spend(&[(coinbases[1], 0)], &[COINBASE - 500_000]);
    extend(&node, &[parent.clone(), conflict]);
    assert_eq!(node.mempool_ids().unwrap(), [child.compute_txid()]);
    let entry = node.mempool_entries(&[child.compute_txid()]).unwrap()[0].clone().unwrap();
    assert_eq!((entry.ancestor_count, entry.depends.len()), (1, 0));
}

fn branch(node: &EmbeddedNode, parent: bitcoin::BlockHash, transactions: &[Transaction], tag: u32) -> Block {
    let block = Draft::on(node, parent, transactions, tag).finish();
    node.submit_block(&serialize(&block)).unwrap();
    block
}

#[test]
fn a_reorganisation_returns_transactions_that_are_still_valid() {
    let (node, coinbases) = funded(3);
    let fork = node.tip().hash;
    let parent = spend(&[(coinbases[0], 0)], &[COINBASE - 10_000]);
    let child = spend(&[(parent.compute_txid(), 0)], &[COINBASE - 20_000]);
    let both = spend(&[(coinbases[1], 0)], &[COINBASE - 10_000]);
    let lost = spend(&[(coinbases[2], 0)], &[COINBASE - 10_000]);
    extend(&node, &[parent.clone(), both.clone(), lost.clone()]);
    accept(&node, &child);
    let late = spend(&[(lost.compute_txid(), 0)], &[COINBASE - 20_000]);
    accept(&node, &late);
    let rival = spend(&[(coinbases[2], 0)], &[COINBASE - 700_000]);
    let first = branch(&node, fork, &[both, rival], 1);
    assert_eq!(node.mempool_ids().unwrap().len(), 2);
    let second = branch(&node, first.block_hash(), &[], 1);
    assert_eq!(node.tip().hash, second.block_hash());
    assert_eq!(node.mempool_ids().unwrap(), [parent.compute_txid(), child.compute_txid()]);
    let entry = node.mempool_entries(&[child.compute_txid()]).unwrap()[0].clone().unwrap();
    assert_eq!((entry.ancestor_count, entry.height), (2, 104));
    node.pool.read().graph.assert_consistent();
    // The first branch is the best again: it confirms its transactions, and a dropped child stays dropped.
    node.precious_block(fork).unwrap();
    node.invalidate_block(first.block_hash()).unwrap();
    assert_eq!(node.mempool_ids().unwrap(), [child.compute_txid()]);
}

#[test]
fn invalidateblock_returns_the_transactions_of_the_ten_highest_blocks() {
    let (node, coinbases) = funded(2);
    let deep = spend(&[(coinbases[0], 0)], &[COINBASE - 10_000]);
    let kept = spend(&[(coinbases[1], 0)], &[COINBASE - 10_000]);
    let child = spend(&[(deep.compute_txid(), 0)], &[COINBASE - 20_000]);
    let eleventh = extend(&node, std::slice::from_ref(&deep)).block_hash();
    extend(&node, std::slice::from_ref(&kept));
    extend_by(&node, 9);
    accept(&node, &child);
    node.invalidate_block(eleventh).unwrap();
    // The child was evicted with its parent.
    assert_eq!(node.mempool_ids().unwrap(), [kept.compute_txid()]);
}

#[test]
fn spends_of_coinbases_that_are_immature_again_are_dropped() {
    let (node, coinbases) = funded(1);
    let tx = spend(&[(coinbases[0], 0)], &[COINBASE - 10_000]);
    accept(&node, &tx);
    let at = |height| node.snapshot().unwrap().block_info(BlockRef::Height { height }).unwrap().unwrap().hash;
    node.invalidate_block(at(101)).unwrap();
    assert_eq!(node.mempool_ids().unwrap(), [tx.compute_txid()]);
    node.invalidate_block(at(100)).unwrap();
    assert!(node.mempool_ids().unwrap().is_empty());
    let admission = node.submit(&serialize(&tx), FeeRate::ZERO).unwrap();
    assert!(refusal(admission).ends_with("tried to spend coinbase at depth 99"));
}

#[test]
fn a_full_mempool_evicts_the_lowest_feerate_and_raises_its_minimum() {
    let limits = MempoolLimits { max_usage: 2_500, ..MempoolLimits::default() };
    let node = TestNode::with(Settings { mempool: limits, ..Settings::default() });
    node.set_mock_time(2_000_000_000).unwrap();
    let coinbases = extend_by(&node, 106);
    let paying = |index: usize, fee: u64| spend(&[(coinbases[index], 0)], &[COINBASE - fee]);
    accept(&node, &paying(0, 5_000));
    accept(&node, &paying(1, 3_000));
    accept(&node, &paying(2, 4_000));
    accept(&node, &paying(3, 6_000));
    assert_eq!(node.mempool_ids().unwrap().len(), 3);
    assert_eq!(node.mempool_spenders(&[OutPoint { txid: coinbases[1], vout: 0 }]).unwrap(), [None]);
    assert!(node.mempool_info().unwrap().min_feerate > FeeRate::from_sat_per_kvb(30_000));
    let said = refusal(submit(&node, &paying(4, 1_000)));
    assert!(said.starts_with("mempool min fee not met, 1000 < "), "{said}");
    // The minimum feerate decays only after a block.
    let demanded = node.mempool_info().unwrap().min_feerate;
    let half = FeeRate::from_sat_per_kvb(demanded.to_sat_per_kvb().div_ceil(2));
    node.set_mock_time(2_000_000_000 + 7 * 12 * 3_600).unwrap();
    assert_eq!(node.mempool_info().unwrap().min_feerate, demanded);
    extend(&node, &[]);
    node.set_mock_time(2_000_000_000 + 8 * 12 * 3_600).unwrap();
    assert_eq!(node.mempool_info().unwrap().min_feerate, half);
    node.set_mock_time(2_000_000_000 + 14 * 12 * 3_600).unwrap();
    assert_eq!(node.mempool_info().unwrap().min_feerate, FeeRate::from_sat_per_kvb(1_000));
}

#[test]
fn a_full_mempool_keeps_parents_whose_children_pay() {
    let limits = MempoolLimits { max_usage: 3_000, ..MempoolLimits::default() };
    let node = TestNode::with(Settings { mempool: limits, ..Settings::default() });
    let coinbases = extend_by(&node, 105);
    let poor = spend(&[(coinbases[0], 0)], &[COINBASE - 200]);
    let child = spend(&[(poor.compute_txid(), 0)], &[COINBASE - 50_200]);
    let middle = spend(&[(coinbases[1], 0)], &[COINBASE - 3_000]);
    let rich = spend(&[(coinbases[2], 0)], &[COINBASE - 9_000]);
    let fresh = spend(&[(coinbases[3], 0)], &[COINBASE - 8_000]);
    for tx in [&poor, &child, &middle, &rich, &fresh] {
        accept(&node, tx);
    }
    assert_eq!(node.mempool_ids().unwrap(), [&poor, &child, &rich, &fresh].map(Transaction::compute_txid));
}

#[test]
fn mempool_expires_an_old_transaction_behind_a_younger_one() {
    let (node, coinbases) = funded(3);
    let spend_of = |index: usize| spend(&[(coinbases[index], 0)], &[COINBASE - 10_000]);
    node.set_mock_time(2_000_001_000).unwrap();
    accept(&node, &spend_of(0));
    // The clock went back: a later transaction is older.
    node.set_mock_time(2_000_000_000).unwrap();
    accept(&node, &spend_of(1));
    node.set_mock_time(2_000_000_000 + 336 * 3_600 + 1).unwrap();
    accept(&node, &spend_of(2));
    assert_eq!(node.mempool_ids().unwrap(), [0, 2].map(|index| spend_of(index).compute_txid()));
}

#[test]
fn verified_scripts_are_not_trusted_under_another_witness() {
    let (node, coinbases) = funded(1);
    let tx = spend(&[(coinbases[0], 0)], &[COINBASE - 10_000]);
    accept(&node, &tx);
    let mut forged = tx;
    forged.input[0].witness = Witness::from_slice(&[[0x52]]);
    let block = Draft::on(&node, node.tip().hash, &[forged], 0).finish();
    let (txid, wtxid) = (block.txdata[1].compute_txid(), block.txdata[1].compute_wtxid());
    assert_eq!(
        node.submit_block(&serialize(&block)).unwrap(),
        Verdict::Invalid {
            reason: "mandatory-script-verify-flag-failed (Witness program hash mismatch)".to_owned(),
            detail: format!("input 0 of {txid} (wtxid {wtxid}), spending {}:0", coinbases[0]),
        }
    );
}

#[test]
fn large_blocks_report_the_first_bad_script_of_all_threads() {
    let node = TestNode::with(Settings { script_threads: 4, ..Settings::default() });
    let coinbases = extend_by(&node, 102);
    let many = spend(&[(coinbases[0], 0)], &[1_000_000; 300]);
    let spends: Vec<_> = (0..300).map(|vout| spend(&[(many.compute_txid(), vout)], &[1_000_000])).collect();
    extend(&node, &[many]);
    let mut bad = spends.clone();
    bad[250].input[0].witness = Witness::from_slice(&[[0x52]]);
    bad[251].input[0].witness = Witness::new();
    // A fault that is checked after the scripts is reported only if the earlier scripts are valid.
    bad[299].output[0].value = Amount::from_sat(1_000_001);
    let verdict = |transactions: &[Transaction]| {
        let block = Draft::on(&node, node.tip().hash, transactions, 0).finish();
        match node.check_block(&serialize(&block)).unwrap() {
            Verdict::Invalid { reason, detail } => (reason, detail),
            verdict => (format!("{verdict:?}"), String::new()),
        }
    };
    let input = |index: usize| {
        let (txid, wtxid) = (bad[index].compute_txid(), bad[index].compute_wtxid());
        format!("input 0 of {txid} (wtxid {wtxid}), spending {}", bad[index].input[0].previous_output)
    };
    let (first, second) = (input(250), input(251));
    assert_eq!(
        verdict(&bad),
        ("mandatory-script-verify-flag-failed (Witness program hash mismatch)".to_owned(), first)
    );
    bad[250] = spends[250].clone();
    assert_eq!(
        verdict(&bad),
        ("mandatory-script-verify-flag-failed (Witness program was passed an empty witness)".to_owned(), second)
    );
    bad[251] = spends[251].clone();
    let values = "value in (0.01) < value out (0.01000001)";
    assert_eq!(
        verdict(&bad),
        ("bad-txns-in-belowout".to_owned(), format!("{values} in transaction {}", bad[299].compute_txid()))
    );
    assert_eq!(verdict(&spends).0, "Valid");
}

#[test]
fn transactions_wait_for_their_relative_lock() {
    let (node, coinbases) = funded(1);
    let parent = spend(&[(coinbases[0], 0)], &[COINBASE - 10_000]);
    extend(&node, std::slice::from_ref(&parent));
    let mut tx = spend(&[(parent.compute_txid(), 0)], &[COINBASE - 20_000]);
    tx.input[0].sequence = Sequence::from_height(2);
    assert_eq!(refusal(submit(&node, &tx)), "non-BIP68-final");
    extend(&node, &[]);
    accept(&node, &tx);
}
