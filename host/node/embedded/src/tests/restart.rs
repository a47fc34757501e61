//! The mempool after a start.

use std::path::PathBuf;

use bitcoin::consensus::serialize;
use bitcoin::{SignedAmount, Transaction, Txid};
use outrigger_service::mempool::{Admission, MempoolEntry};
use outrigger_values::FeeRate;

use super::super::{EmbeddedNode, MempoolLimits, Settings};
use super::TestNode;
use super::miner::{Draft, extend, extend_by, spend};

const COINBASE: u64 = 5_000_000_000;
const START: u64 = 2_000_000_000;

fn accept(node: &EmbeddedNode, tx: &Transaction) -> Txid {
    let admission = node.submit(&serialize(tx), FeeRate::ZERO).unwrap();
    assert!(matches!(admission, Admission::Accepted { .. }), "{admission:?}");
    tx.compute_txid()
}

/// A node whose clock began at [`START`], so that what it has is not too old by the system's clock after a start.
fn funded(settings: Settings) -> (TestNode, Vec<Txid>) {
    let node = TestNode::with(settings);
    let coinbases = extend_by(&node, 120);
    node.set_mock_time(START);
    (node, coinbases)
}

fn entries(node: &EmbeddedNode) -> Vec<Option<MempoolEntry>> {
    node.mempool_entries(&node.mempool_ids())
}

fn journal(node: &TestNode) -> PathBuf {
    node.dir.path().join("mempool.journal")
}

#[test]
fn restart_keeps_the_mempool_as_it_was() {
    let (mut node, coinbases) = funded(Settings::default());
    for (index, coinbase) in (0_u64..).zip(&coinbases[..15]) {
        node.set_mock_time(START + 60 * index);
        let parent = accept(&node, &spend(&[(*coinbase, 0)], &[COINBASE / 2, COINBASE / 2 - 10_000 - index]));
        accept(&node, &spend(&[(parent, 1)], &[COINBASE / 2 - 30_000]));
        extend(&node, &[]);
    }
    let unknown = Txid::from_raw_hash(bitcoin::hashes::Hash::all_zeros());
    node.prioritise(unknown, SignedAmount::from_sat(77)).unwrap();
    node.prioritise(node.mempool_ids()[3], SignedAmount::from_sat(-500)).unwrap();
    let (mut before, deltas) = (entries(&node), node.prioritised());
    assert_eq!((before.len(), deltas.len()), (30, 2));
    // But that all of it came at one height, as in bitcoind.
    let tip = node.tip().height;
    assert!(before.iter().flatten().any(|entry| entry.height != tip));
    before.iter_mut().flatten().for_each(|entry| entry.height = tip);
    node.finish();
    node.reopen();
    assert_eq!((entries(&node), node.prioritised()), (before.clone(), deltas.clone()));
    node.pool().graph().assert_consistent();
    // Without an orderly end it is the same, and the second start finds what the first one found.
    node.reopen();
    assert_eq!((entries(&node), node.prioritised()), (before, deltas));
    let candidate = node.candidate(None).unwrap().unwrap();
    assert_eq!((candidate.transactions.len(), candidate.next.tip), (30, node.tip()));
}

#[test]
fn restart_leaves_out_what_had_left_the_mempool() {
    let (mut node, coinbases) = funded(Settings::default());
    let paying = |index: usize, fee: u64| spend(&[(coinbases[index], 0)], &[COINBASE - fee]);
    accept(&node, &paying(0, 10_000));
    accept(&node, &paying(0, 20_000));
    let mined = paying(1, 10_000);
    accept(&node, &mined);
    node.prioritise(mined.compute_txid(), SignedAmount::from_sat(5)).unwrap();
    accept(&node, &paying(2, 10_000));
    extend(&node, &[mined, paying(2, 30_000)]);
    node.reopen();
    assert_eq!(node.mempool_ids(), [paying(0, 20_000).compute_txid()]);
    assert!(node.prioritised().is_empty());
}

#[test]
fn restart_keeps_what_a_reorganisation_put_back() {
    let (mut node, coinbases) = funded(Settings::default());
    let fork = node.tip().hash;
    let parent = spend(&[(coinbases[0], 0)], &[COINBASE - 10_000]);
    extend(&node, std::slice::from_ref(&parent));
    // The child came before its parent came back.
    let child = spend(&[(parent.compute_txid(), 0)], &[COINBASE - 30_000]);
    accept(&node, &child);
    let first = Draft::on(&node, fork, &[], 1).finish();
    node.submit_block(&serialize(&first)).unwrap();
    let second = Draft::on(&node, first.block_hash(), &[], 1).finish();
    node.submit_block(&serialize(&second)).unwrap();
    let both = [parent.compute_txid(), child.compute_txid()];
    assert_eq!((node.tip().hash, node.mempool_ids()), (second.block_hash(), both.to_vec()));
    node.reopen();
    assert_eq!(node.mempool_ids(), both);
    node.pool().graph().assert_consistent();
}

#[test]
fn restart_judges_transactions_by_the_rules_of_today() {
    let (mut node, coinbases) = funded(Settings::default());
    let paying = |index: usize, fee: u64| spend(&[(coinbases[index], 0)], &[COINBASE - fee]);
    let cheap = accept(&node, &paying(0, 500));
    let child = accept(&node, &spend(&[(cheap, 0)], &[COINBASE - 90_000]));
    let rich = accept(&node, &paying(1, 10_000));
    let prioritised = accept(&node, &paying(2, 500));
    node.prioritise(prioritised, SignedAmount::from_sat(9_500)).unwrap();
    assert_eq!(node.mempool_ids(), [cheap, child, rich, prioritised]);
    node.settings.mempool =
        MempoolLimits { relay_feerate: FeeRate::from_sat_per_kvb(20_000), ..MempoolLimits::default() };
    node.reopen();
    assert_eq!(node.mempool_ids(), [rich, prioritised]);
    // They do not come back when the rules change again.
    node.settings.mempool = MempoolLimits::default();
    node.reopen();
    assert_eq!(node.mempool_ids(), [rich, prioritised]);
}

#[test]
fn restart_drops_transactions_that_are_too_old() {
    let (mut node, coinbases) = funded(Settings::default());
    node.set_mock_time(1_400_000_000);
    accept(&node, &spend(&[(coinbases[0], 0)], &[COINBASE - 10_000]));
    node.set_mock_time(0);
    node.reopen();
    assert!(node.mempool_ids().is_empty());
}

#[test]
fn a_damaged_journal_loses_what_is_damaged_and_no_more() {
    let (mut node, coinbases) = funded(Settings::default());
    let ids: Vec<_> =
        (0..6).map(|index| accept(&node, &spend(&[(coinbases[index], 0)], &[COINBASE - 10_000]))).collect();
    let path = journal(&node);
    node.node = None;
    let mut bytes = std::fs::read(&path).unwrap();
    let record = (bytes.len() - 8) / 6;
    bytes[8 + record + record / 2] ^= 1;
    bytes.truncate(bytes.len() - 3);
    std::fs::write(&path, &bytes).unwrap();
    node.node = Some(EmbeddedNode::open(node.dir.path(), Settings::default()).unwrap());
    assert_eq!(node.mempool_ids(), [ids[0], ids[2], ids[3], ids[4]]);
    // It was mended: what comes now is kept beside what was found.
    let late = accept(&node, &spend(&[(coinbases[7], 0)], &[COINBASE - 10_000]));
    node.reopen();
    assert_eq!(node.mempool_ids(), [ids[0], ids[2], ids[3], ids[4], late]);
}

#[test]
fn a_journal_of_nonsense_does_not_prevent_the_start() {
    let (mut node, coinbases) = funded(Settings::default());
    for nonsense in [&b""[..], b"nonsense", &[0xf0; 5_000], b"ORMPOOL1\xf0mp\x0f\xff\xff\xff\xff"] {
        node.node = None;
        std::fs::write(journal(&node), nonsense).unwrap();
        node.node = Some(EmbeddedNode::open(node.dir.path(), Settings::default()).unwrap());
        assert!(node.mempool_ids().is_empty());
        let txid = accept(&node, &spend(&[(coinbases[0], 0)], &[COINBASE - 10_000]));
        node.reopen();
        assert_eq!(node.mempool_ids(), [txid]);
    }
    // A folder in the journal's place can neither be read nor written: the node goes on without.
    node.node = None;
    std::fs::remove_file(journal(&node)).unwrap();
    std::fs::create_dir(journal(&node)).unwrap();
    node.node = Some(EmbeddedNode::open(node.dir.path(), Settings::default()).unwrap());
    accept(&node, &spend(&[(coinbases[0], 0)], &[COINBASE - 10_000]));
    node.finish();
}

#[test]
fn a_journal_of_many_changes_does_not_grow_for_ever() {
    let (mut node, coinbases) = funded(Settings::default());
    let txid = accept(&node, &spend(&[(coinbases[0], 0)], &[COINBASE - 10_000]));
    let mut longest = 0;
    for delta in 0..100_000 {
        node.prioritise(txid, SignedAmount::from_sat(if delta % 2 == 0 { 1 } else { -1 })).unwrap();
        if delta % 1_000 == 0 {
            longest = longest.max(std::fs::metadata(journal(&node)).unwrap().len());
        }
    }
    node.prioritise(txid, SignedAmount::from_sat(41)).unwrap();
    node.finish();
    let len = std::fs::metadata(journal(&node)).unwrap().len();
    assert!(longest < 6 << 20 && len < longest, "{longest} bytes, then {len}");
    node.reopen();
    assert_eq!(node.prioritised()[0].fee_delta, SignedAmount::from_sat(41));
}
