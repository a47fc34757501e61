use std::path::PathBuf;

use bitcoin::consensus::serialize;
use bitcoin::{SignedAmount, Txid};
use outrigger_node::Node;
use outrigger_service::mempool::MempoolEntry;
use outrigger_values::FeeRate;

use super::super::{EmbeddedNode, MempoolLimits, Settings};
use super::TestNode;
use super::mempool::{COINBASE, accept};
use super::miner::{Draft, extend, extend_by, spend};

const START: u64 = 2_000_000_000;

/// A node whose clock starts at [`START`], so that its transactions are not expired by the system's clock after a
/// restart.
fn funded(settings: Settings) -> (TestNode, Vec<Txid>) {
    let node = TestNode::with(settings);
    let coinbases = extend_by(&node, 120);
    node.set_mock_time(START).unwrap();
    (node, coinbases)
}

fn entries(node: &EmbeddedNode) -> Vec<Option<MempoolEntry>> {
    node.mempool_entries(&sorted(node.mempool_ids().unwrap())).unwrap()
}

fn sorted(mut txids: Vec<Txid>) -> Vec<Txid> {
    txids.sort_unstable();
    txids
}

fn file(node: &TestNode) -> PathBuf {
    node.dir.path().join("mempool.dat")
}

fn restart(node: &mut TestNode) {
    node.finish();
    node.reopen();
}

#[test]
fn restart_keeps_the_mempool_as_it_was() {
    let (mut node, coinbases) = funded(Settings::default());
    for (index, coinbase) in (0_u64..).zip(&coinbases[..15]) {
        node.set_mock_time(START + 60 * index).unwrap();
        let parent = accept(&node, &spend(&[(*coinbase, 0)], &[COINBASE / 2, COINBASE / 2 - 10_000 - index]));
        accept(&node, &spend(&[(parent, 1)], &[COINBASE / 2 - 30_000]));
        extend(&node, &[]);
    }
    let unknown = Txid::from_raw_hash(bitcoin::hashes::Hash::all_zeros());
    node.prioritise(unknown, SignedAmount::from_sat(77)).unwrap();
    node.prioritise(node.mempool_ids().unwrap()[3], SignedAmount::from_sat(-500)).unwrap();
    let (mut before, deltas) = (entries(&node), node.prioritised().unwrap());
    assert_eq!((before.len(), deltas.len()), (30, 2));
    // All but the entry heights are kept, as in bitcoind.
    let tip = node.tip().height;
    assert!(before.iter().flatten().any(|entry| entry.height != tip));
    before.iter_mut().flatten().for_each(|entry| entry.height = tip);
    restart(&mut node);
    assert_eq!((entries(&node), node.prioritised().unwrap()), (before.clone(), deltas.clone()));
    node.pool.read().graph.assert_consistent();
    // A kill leaves the file of the last clean stop.
    node.reopen();
    assert_eq!((entries(&node), node.prioritised().unwrap()), (before, deltas));
    let candidate = node.candidate(None).unwrap().unwrap();
    assert_eq!((candidate.transactions.len(), candidate.next.tip), (30, node.tip()));
}

#[test]
fn restart_omits_transactions_that_had_left_the_mempool() {
    let (mut node, coinbases) = funded(Settings::default());
    let paying = |index: usize, fee: u64| spend(&[(coinbases[index], 0)], &[COINBASE - fee]);
    accept(&node, &paying(0, 10_000));
    accept(&node, &paying(0, 20_000));
    let mined = paying(1, 10_000);
    accept(&node, &mined);
    node.prioritise(mined.compute_txid(), SignedAmount::from_sat(5)).unwrap();
    accept(&node, &paying(2, 10_000));
    extend(&node, &[mined, paying(2, 30_000)]);
    restart(&mut node);
    assert_eq!(node.mempool_ids().unwrap(), [paying(0, 20_000).compute_txid()]);
    assert!(node.prioritised().unwrap().is_empty());
}

#[test]
fn restart_keeps_transactions_that_a_reorganisation_returned() {
    let (mut node, coinbases) = funded(Settings::default());
    let fork = node.tip().hash;
    let parent = spend(&[(coinbases[0], 0)], &[COINBASE - 10_000]);
    extend(&node, std::slice::from_ref(&parent));
    // The child arrived before a reorganisation returned its parent.
    let child = spend(&[(parent.compute_txid(), 0)], &[COINBASE - 30_000]);
    accept(&node, &child);
    let first = Draft::on(&node, fork, &[], 1).finish();
    node.submit_block(&serialize(&first)).unwrap();
    let second = Draft::on(&node, first.block_hash(), &[], 1).finish();
    node.submit_block(&serialize(&second)).unwrap();
    let both = [parent.compute_txid(), child.compute_txid()];
    assert_eq!((node.tip().hash, node.mempool_ids().unwrap()), (second.block_hash(), both.to_vec()));
    restart(&mut node);
    assert_eq!(node.mempool_ids().unwrap(), both);
    node.pool.read().graph.assert_consistent();
}

#[test]
fn restart_applies_the_current_limits() {
    let (mut node, coinbases) = funded(Settings::default());
    let paying = |index: usize, fee: u64| spend(&[(coinbases[index], 0)], &[COINBASE - fee]);
    let cheap = accept(&node, &paying(0, 500));
    let child = accept(&node, &spend(&[(cheap, 0)], &[COINBASE - 90_000]));
    let rich = accept(&node, &paying(1, 10_000));
    let prioritised = accept(&node, &paying(2, 500));
    node.prioritise(prioritised, SignedAmount::from_sat(9_500)).unwrap();
    assert_eq!(node.mempool_ids().unwrap(), [cheap, child, rich, prioritised]);
    node.settings.mempool =
        MempoolLimits { relay_feerate: FeeRate::from_sat_per_kvb(20_000), ..MempoolLimits::default() };
    restart(&mut node);
    assert_eq!(node.mempool_ids().unwrap(), [rich, prioritised]);
    // Dropped transactions do not come back when the limits change again.
    node.settings.mempool = MempoolLimits::default();
    restart(&mut node);
    assert_eq!(node.mempool_ids().unwrap(), [rich, prioritised]);
}

#[test]
fn restart_drops_transactions_that_are_too_old() {
    let (mut node, coinbases) = funded(Settings::default());
    node.set_mock_time(1_400_000_000).unwrap();
    accept(&node, &spend(&[(coinbases[0], 0)], &[COINBASE - 10_000]));
    node.set_mock_time(0).unwrap();
    restart(&mut node);
    assert!(node.mempool_ids().unwrap().is_empty());
}

#[test]
fn a_damaged_file_loses_the_transactions_after_the_damage_and_never_prevents_the_start() {
    let (mut node, coinbases) = funded(Settings::default());
    let ids: Vec<_> =
        (0..4).map(|index| accept(&node, &spend(&[(coinbases[index], 0)], &[COINBASE - 10_000]))).collect();
    node.finish();
    let whole = std::fs::read(file(&node)).unwrap();
    let start_with = |node: &mut TestNode, bytes: &[u8]| {
        node.node = None;
        std::fs::write(file(node), bytes).unwrap();
        node.node = Some(EmbeddedNode::open(node.dir.path(), Settings::default()).unwrap());
    };
    for end in (0..whole.len()).step_by(7) {
        start_with(&mut node, &whole[..end]);
        assert!(ids.starts_with(&node.mempool_ids().unwrap()), "cut at {end}");
    }
    start_with(&mut node, &whole);
    assert_eq!(node.mempool_ids().unwrap(), ids);
    for nonsense in [&b"nonsense"[..], &[0xf0; 5_000], &[1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]] {
        start_with(&mut node, nonsense);
        assert!(node.mempool_ids().unwrap().is_empty());
    }
    // A directory at the file's path can be neither read nor written: the node runs without the file.
    node.node = None;
    std::fs::remove_file(file(&node)).unwrap();
    std::fs::create_dir(file(&node)).unwrap();
    node.node = Some(EmbeddedNode::open(node.dir.path(), Settings::default()).unwrap());
    accept(&node, &spend(&[(coinbases[0], 0)], &[COINBASE - 10_000]));
    node.finish();
}
