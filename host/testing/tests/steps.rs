//! Tests the steps by which plugins follow the chain, on the development chain and on nodes that lack blocks.
#![allow(clippy::unwrap_used, reason = "a broken expectation fails the test")]

use bitcoin::consensus::{deserialize, serialize};
use bitcoin::hashes::Hash;
use bitcoin::{
    Amount, Block, BlockHash, OutPoint, Script, ScriptBuf, Transaction, TxIn, TxOut, Witness, absolute, transaction,
};
use outrigger_node::{Gap, Node};
use outrigger_scripted_node::ScriptedNode;
use outrigger_service::chain::{BlockRef, Cursor, MAX_STEPS, Step};
use outrigger_service::{ErrorKind, Scope};
use outrigger_testing::{ANYONE, TestHost};

/// A chain whose block 101 spends the coinbase of block 1, its block hashes, and the spent output.
fn chain() -> (TestHost, Vec<BlockHash>, TxOut) {
    let host = TestHost::new();
    let anyone = Script::from_bytes(ANYONE);
    let mut hashes = vec![host.node.tip().hash, host.mine_to(&anyone.to_p2wsh())];
    hashes.extend(host.mine(99));
    let first = host.node.snapshot().unwrap().block(hashes[1]).unwrap().unwrap();
    let coinbase = deserialize::<Block>(&first).unwrap().txdata.swap_remove(0);
    let input = TxIn {
        previous_output: OutPoint::new(coinbase.compute_txid(), 0),
        witness: Witness::from_slice(&[ANYONE]),
        ..TxIn::default()
    };
    let spent = coinbase.output[0].clone();
    host.send(&Transaction {
        version: transaction::Version::TWO,
        lock_time: absolute::LockTime::ZERO,
        input: vec![input],
        output: vec![TxOut { value: spent.value - Amount::from_sat(1_000), script_pubkey: anyone.to_p2wsh() }],
    });
    hashes.extend(host.mine(1));
    (host, hashes, spent)
}

fn heights(steps: &[Step]) -> Vec<u32> {
    steps.iter().map(|step| step.height).collect()
}

fn hashes(steps: &[Step]) -> Vec<BlockHash> {
    steps.iter().map(|step| step.hash).collect()
}

#[test]
fn steps_go_from_genesis_to_the_tip_with_the_outputs_that_each_block_spends() {
    let (host, chain, spent) = chain();
    let service = host.handle().chain;
    let (mut cursor, mut steps) = (None, Vec::new());
    while cursor.is_none_or(|cursor: Cursor| cursor.hash != host.node.tip().hash) {
        let mut part = service.steps(Scope::NONE, cursor, 30, true).unwrap();
        assert_eq!((part.disconnect.len(), part.tip.height), (0, 101));
        assert!((1..=30).contains(&part.connect.len()));
        cursor = part.connect.last().map(|step| Cursor { hash: step.hash, height: step.height });
        steps.append(&mut part.connect);
    }
    assert_eq!((hashes(&steps), heights(&steps)), (chain.clone(), (0..=101).collect()));
    for step in &steps {
        let block: Block = deserialize(&step.block).unwrap();
        assert_eq!(block.block_hash(), step.hash);
        let inputs: usize = block.txdata.iter().skip(1).map(|transaction| transaction.input.len()).sum();
        assert_eq!(step.spent.len(), inputs, "{}", step.height);
    }
    assert_eq!(steps[101].spent, [spent]);
    let last = Cursor { hash: chain[100], height: 100 };
    assert!(service.steps(Scope::NONE, Some(last), 1, false).unwrap().connect[0].spent.is_empty());
    let at_tip = service.steps(Scope::NONE, cursor, 9, true).unwrap();
    assert_eq!((at_tip.disconnect.len(), at_tip.connect.len(), Some(at_tip.tip)), (0, 0, cursor));
}

#[test]
fn steps_of_a_reorganisation_disconnect_the_last_block_first_with_what_it_spent() {
    let (host, old, _) = chain();
    let service = host.handle().chain;
    let (scope, call) = host.open_call(None);
    assert_eq!(service.tip(scope).unwrap().hash, old[101]);
    service.steps(scope, None, 1, false).unwrap();
    host.node.invalidate_block(old[2]).unwrap();
    // The blocks pay to another script, since they would otherwise equal the old ones.
    let new: Vec<BlockHash> = (0..120).map(|_| host.mine_to(Script::from_bytes(&[0x52]))).collect();
    let cursor = Some(Cursor { hash: old[101], height: 101 });
    let steps = service.steps(Scope::NONE, cursor, MAX_STEPS, true).unwrap();
    assert_eq!(hashes(&steps.disconnect), old[2..].iter().rev().copied().collect::<Vec<_>>());
    assert_eq!((heights(&steps.disconnect)[0], steps.disconnect[0].spent.len()), (101, 1));
    assert_eq!((hashes(&steps.connect), heights(&steps.connect)), (new, (2..=121).collect()));
    // Smaller parts give the same steps.
    let part = service.steps(Scope::NONE, cursor, 7, true).unwrap();
    assert_eq!((part.disconnect.as_slice(), part.connect.len()), (&steps.disconnect[..7], 0));
    let next = Cursor { hash: old[94], height: 94 };
    assert_eq!(service.steps(Scope::NONE, Some(next), 200, true).unwrap().disconnect, steps.disconnect[7..]);
    // A call that began before the reorganisation sees its own snapshot.
    let seen = service.steps(scope, cursor, 9, true).unwrap();
    assert_eq!((seen.disconnect.len(), seen.connect.len(), seen.tip.hash), (0, 0, old[101]));
    drop(call);
    assert_eq!(service.steps(scope, cursor, 9, true).unwrap_err().kind, ErrorKind::Stale);
}

#[test]
fn steps_are_refused_after_a_block_that_the_chain_does_not_know_at_that_height() {
    let (host, chain, _) = chain();
    let service = host.handle().chain;
    let unknown = BlockHash::all_zeros();
    for cursor in
        [(unknown, 5), (unknown, 1_000), (unknown, u32::MAX), (chain[5], 4), (chain[5], 102), (chain[0], u32::MAX)]
    {
        let cursor = Cursor { hash: cursor.0, height: cursor.1 };
        let refused = service.steps(Scope::NONE, Some(cursor), 10, true).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::NotFound, "{cursor:?}");
        let told = format!("The chain has no block {} at height {}", cursor.hash, cursor.height);
        assert!(refused.detail.starts_with(&told), "{}", refused.detail);
    }
    // The chain may have become shorter.
    host.node.invalidate_block(chain[100]).unwrap();
    let steps = service.steps(Scope::NONE, Some(Cursor { hash: chain[101], height: 101 }), 10, true).unwrap();
    assert_eq!((heights(&steps.disconnect), steps.connect.len(), steps.tip.height), (vec![101, 100], 0, 99));
}

#[test]
fn steps_are_at_least_one_and_at_most_a_thousand_and_end_after_some_bytes() {
    let node = ScriptedNode::new();
    let host = TestHost::over(node.clone());
    let large = ScriptBuf::from_bytes(vec![0x6a; 3 << 20]);
    for _ in 0..4 {
        node.chain.mine_to(large.clone(), Vec::new());
    }
    for _ in 0..1_100 {
        node.chain.mine(Vec::new());
    }
    let service = host.handle().chain;
    let after = |height| {
        let info = service.block_info(Scope::NONE, BlockRef::Height { height }).unwrap().unwrap();
        Some(Cursor { hash: info.hash, height })
    };
    let count = |after, limit| service.steps(Scope::NONE, after, limit, true).unwrap().connect.len();
    // Genesis and three large blocks.
    assert_eq!((count(None, u32::MAX), count(after(2), 2)), (4, 2));
    assert_eq!((count(after(4), 0), count(after(4), u32::MAX)), (1, 1_000));
    assert_eq!(count(after(1_104), 0), 0);
}

#[test]
fn steps_that_the_node_lacks_are_refused_with_its_setting() {
    let node = ScriptedNode::new();
    let host = TestHost::over(node.clone());
    let hash = node.chain.mine(Vec::new());
    node.faults.forget(hash);
    let refused = || {
        let refused = host.handle().chain.steps(Scope::NONE, None, 10, true).unwrap_err();
        (refused.kind, refused.detail)
    };
    node.faults.set_gap(Gap::Pruned { first: 2 });
    let (kind, reason) = refused();
    assert_eq!(kind, ErrorKind::Unsupported);
    assert!(reason.contains(&hash.to_string()) && reason.ends_with("set prune=0 in bitcoin.conf"), "{reason}");
    node.faults.set_gap(Gap::Background { first: 2 });
    assert_eq!(refused().0, ErrorKind::NodeUnavailable);
    node.faults.set_absent(true);
    assert_eq!(refused().0, ErrorKind::NodeUnavailable);
    node.faults.set_absent(false);
    node.faults.remember(hash);
    assert_eq!(host.handle().chain.steps(Scope::NONE, None, 10, true).unwrap().connect.len(), 2);
    // A step contains the serialised block.
    let block = node.block(hash).unwrap();
    assert_eq!(*host.handle().chain.steps(Scope::NONE, None, 10, true).unwrap().connect[1].block, *serialize(&block));
}

#[test]
fn a_block_that_left_the_chain_and_that_the_node_lost_is_not_found() {
    let node = ScriptedNode::new();
    let host = TestHost::over(node.clone());
    let lost = node.chain.mine(Vec::new());
    let cursor = Some(Cursor { hash: lost, height: 1 });
    let steps = || host.handle().chain.steps(Scope::NONE, cursor, 10, true);
    node.chain.disconnect();
    node.chain.mine_to(ScriptBuf::from_bytes(vec![1, 2]), Vec::new());
    node.faults.forget(lost);
    let refused = steps().unwrap_err();
    assert_eq!(refused.kind, ErrorKind::NotFound);
    let (told, remedy) = (format!("The node has no block {lost} at height 1"), "`outrigger plugin store ID drop`");
    assert!(refused.detail.starts_with(&told) && refused.detail.ends_with(remedy), "{}", refused.detail);
    // The follower continues by itself if the node gets the block again.
    node.faults.remember(lost);
    assert_eq!(hashes(&steps().unwrap().disconnect), [lost]);
}
