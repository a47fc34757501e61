use bitcoin::{SignedAmount, Txid};
use outrigger_node::Node;

use super::super::EmbeddedNode;
use super::mempool::{COINBASE, accept, funded, refusal, submit};
use super::miner::{extend, spend};

/// The reject reason of a transaction that exceeds an ancestor or descendant limit.
fn too_long(detail: &str) -> String {
    format!("too-long-mempool-chain, {detail}")
}

#[test]
fn mempool_ancestor_and_descendant_limits_have_the_reject_reasons_of_bitcoind() {
    let (node, coinbases) = funded(4);
    let half = COINBASE / 2;
    // A chain of 25 transactions; the first has a second output.
    let first = spend(&[(coinbases[0], 0)], &[half, half - 10_000]);
    accept(&node, &first);
    let (mut last, mut value) = ((first.compute_txid(), 0), half);
    let mut next = |last: &mut (Txid, u32)| {
        value -= 1_000;
        let tx = spend(&[*last], &[value]);
        *last = (tx.compute_txid(), 0);
        tx
    };
    for _ in 0..24 {
        accept(&node, &next(&mut last));
    }
    // Both limits are exceeded; the ancestor limit is checked first.
    assert_eq!(refusal(submit(&node, &next(&mut last))), too_long("too many unconfirmed ancestors [limit: 25]"));
    // The CPFP carve-out admits one more child of the first transaction; it can be replaced.
    let bump = |fee: u64| spend(&[(first.compute_txid(), 1)], &[half - 10_000 - fee]);
    accept(&node, &bump(1_000));
    accept(&node, &bump(3_000));
    let wide = spend(&[(coinbases[1], 0)], &[100_000_000; 27]);
    let parent = wide.compute_txid();
    accept(&node, &wide);
    for vout in 0..25 {
        accept(&node, &spend(&[(parent, vout)], &[99_000_000]));
    }
    let full = too_long(&format!("too many descendants for tx {parent} [limit: 25]"));
    assert_eq!(refusal(submit(&node, &spend(&[(parent, 25)], &[99_000_000]))), full);
    let fan = spend(&[(coinbases[2], 0)], &[100_000_000; 25]);
    extend(&node, std::slice::from_ref(&fan));
    let parents: Vec<_> = (0..25).map(|vout| spend(&[(fan.compute_txid(), vout)], &[99_000_000])).collect();
    let from: Vec<_> = parents.iter().map(|parent| (accept(&node, parent), 0)).collect();
    let all = spend(&from, &[2_000_000_000]);
    assert_eq!(refusal(submit(&node, &all)), too_long("too many unconfirmed parents [limit: 25]"));
    let all_but_one = accept(&node, &spend(&from[..24], &[2_000_000_000]));
    assert_eq!(
        refusal(submit(&node, &spend(&[(coinbases[3], 0), (all_but_one, 0)], &[COINBASE]))),
        too_long("too many unconfirmed ancestors [limit: 25]")
    );
}

#[test]
fn mempool_counts_additions_and_removals_and_its_sequence_counts_blocks_too() {
    let (node, coinbases) = funded(3);
    let counts = || {
        let info = node.mempool_info().unwrap();
        (info.moves, info.sequence)
    };
    let (mut moves, mut sequence) = counts();
    assert_eq!(moves, 1);
    // The additions and removals since the last call, and whether the sequence grew.
    let mut changes = || {
        let (before, now) = ((moves, sequence), counts());
        (moves, sequence) = now;
        (now.0 - before.0, now.1 > before.1)
    };
    extend(&node, &[]);
    assert_eq!(changes(), (0, true));
    let tx = spend(&[(coinbases[0], 0)], &[COINBASE - 10_000]);
    accept(&node, &tx);
    assert_eq!(changes(), (1, true));
    node.prioritise(tx.compute_txid(), SignedAmount::from_sat(5)).unwrap();
    assert_eq!(changes(), (0, true));
    let instead = spend(&[(coinbases[0], 0)], &[COINBASE - 20_000]);
    accept(&node, &instead);
    assert_eq!(changes(), (2, true));
    let block = extend(&node, std::slice::from_ref(&instead));
    assert_eq!(changes(), (1, true));
    node.invalidate_block(block.block_hash()).unwrap();
    assert_eq!(changes(), (1, true));
}

#[test]
fn mempool_unbroadcast_excludes_transactions_of_disconnected_blocks() {
    let (mut node, coinbases) = funded(2);
    let sent = spend(&[(coinbases[0], 0)], &[COINBASE - 10_000]);
    let mined = spend(&[(coinbases[1], 0)], &[COINBASE - 10_000]);
    let ids = [sent.compute_txid(), mined.compute_txid(), coinbases[0]];
    accept(&node, &sent);
    accept(&node, &mined);
    let unbroadcast = |node: &EmbeddedNode| {
        let entries = node.mempool_entries(&ids).unwrap().into_iter();
        entries.map(|entry| entry.map(|entry| entry.unbroadcast)).collect::<Vec<_>>()
    };
    assert_eq!(unbroadcast(&node), [Some(true), Some(true), None]);
    let block = extend(&node, std::slice::from_ref(&mined));
    assert_eq!(node.mempool_info().unwrap().unbroadcast, 1);
    node.invalidate_block(block.block_hash()).unwrap();
    let expected = |node: &EmbeddedNode| {
        assert_eq!(unbroadcast(node), [Some(true), Some(false), None]);
        assert_eq!((node.mempool_info().unwrap().transactions, node.mempool_info().unwrap().unbroadcast), (2, 1));
    };
    expected(&node);
    // Submitting it again changes nothing: it is already in the mempool.
    submit(&node, &mined);
    expected(&node);
    node.finish();
    node.reopen();
    expected(&node);
}
