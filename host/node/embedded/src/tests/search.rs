//! Searches of the chain for scripts, by digests.

use bitcoin::consensus::serialize;
use bitcoin::{ScriptBuf, Transaction, Txid};

use super::super::EmbeddedNode;
use super::super::params::genesis;
use super::TestNode;
use super::miner::{Draft, anyone, extend, extend_by, spend};
use outrigger_node::{Node, ScriptSet};

fn script(number: u8) -> ScriptBuf {
    ScriptBuf::from_bytes([&[0, 20][..], &[number; 20]].concat())
}

fn pay(from: (Txid, u32), scripts: &[ScriptBuf]) -> Transaction {
    let mut tx = spend(&[from], &vec![1_000; scripts.len()]);
    for (output, script) in tx.output.iter_mut().zip(scripts) {
        output.script_pubkey = script.clone();
    }
    tx
}

fn set(scripts: &[ScriptBuf]) -> ScriptSet {
    let mut set = ScriptSet::default();
    scripts.iter().for_each(|script| set.insert(script));
    set
}

/// The heights and ids of the transactions found in the whole chain.
fn found(node: &EmbeddedNode, scripts: &[ScriptBuf]) -> Vec<(u32, Txid)> {
    let findings = node.snapshot().unwrap().find(0..u32::MAX, &set(scripts)).unwrap();
    assert_eq!((findings.tip, findings.next), (node.tip().hash, u32::MAX));
    let of_block = |block: outrigger_node::search::FoundBlock| {
        let (height, found) = (block.height, block.found.unwrap());
        found.transactions.into_iter().map(move |(_, txid, _)| (height, txid))
    };
    findings.blocks.into_iter().flat_map(of_block).collect()
}

#[test]
fn payments_and_spends_are_found_and_other_blocks_are_not_read() {
    let node = TestNode::new();
    let coinbases = extend_by(&node, 103);
    let paying = pay((coinbases[0], 0), &[script(1), anyone(), script(2)]);
    extend(&node, std::slice::from_ref(&paying));
    extend(&node, &[]);
    let spending = pay((paying.compute_txid(), 1), &[script(3)]);
    let unrelated = pay((coinbases[1], 0), &[script(4)]);
    extend(&node, &[unrelated.clone(), spending.clone()]);
    assert_eq!(found(&node, &[]), []);
    assert_eq!(found(&node, &[script(9)]), []);
    assert_eq!(found(&node, &[script(1), script(2)]), [(104, paying.compute_txid())]);
    assert_eq!(
        found(&node, &[script(3), script(4)]),
        [(106, unrelated.compute_txid()), (106, spending.compute_txid())]
    );
    // Every coinbase pays to the script, and three transactions spend from it. `spending` does not pay to it: only the
    // undo data has its match.
    let all = found(&node, &[anyone()]);
    assert_eq!(all.len(), 106 + 3);
    assert!(all.contains(&(106, spending.compute_txid())));
    let findings = node.snapshot().unwrap().find(10..20, &set(&[anyone()])).unwrap();
    assert_eq!(findings.blocks.iter().map(|block| block.height).collect::<Vec<_>>(), (10..20).collect::<Vec<_>>());
    let block = &findings.blocks[0];
    let info = node.snapshot().unwrap().block_info(outrigger_service::chain::BlockRef::Hash { hash: block.hash });
    let time = u32::from_le_bytes(info.unwrap().unwrap().header[68..72].try_into().unwrap());
    assert_eq!(block.found.as_ref().unwrap().time, time);
}

#[test]
fn the_first_block_of_a_time_is_found_by_the_greatest_time_so_far() {
    let node = TestNode::new();
    // Times that decrease now and then: 60, 100, 70, 80, 200 and so on after the genesis block's.
    let base = node.tip().time;
    for (height, seconds) in (1_u32..).zip([60, 100, 70, 80, 200, 150, 90, 300]) {
        let block = Draft::on(&node, node.tip().hash, &[], height).edit(|block| block.header.time = base + seconds);
        node.submit_block(&serialize(&block.finish())).unwrap();
        assert_eq!(node.tip().height, height);
    }
    let first = |seconds: u32| node.snapshot().unwrap().first_at(u64::from(base + seconds)).unwrap();
    assert_eq!(node.snapshot().unwrap().first_at(0).unwrap(), Some(0));
    for (seconds, height) in [(0, 0), (1, 1), (60, 1), (61, 2), (100, 2), (101, 5), (200, 5), (201, 8), (300, 8)] {
        assert_eq!(first(seconds), Some(height), "{seconds}");
    }
    assert_eq!(first(301), None);
}

#[test]
fn a_reorganisation_replaces_the_digests() {
    let mut node = TestNode::new();
    let coinbases = extend_by(&node, 102);
    let fork = node.tip().hash;
    let (old, new) = (pay((coinbases[0], 0), &[script(1)]), pay((coinbases[0], 0), &[script(2)]));
    extend(&node, std::slice::from_ref(&old));
    let first = Draft::on(&node, fork, std::slice::from_ref(&new), 1).finish();
    node.submit_block(&serialize(&first)).unwrap();
    let second = Draft::on(&node, first.block_hash(), &[], 1).finish();
    node.submit_block(&serialize(&second)).unwrap();
    assert_eq!(found(&node, &[script(1), script(2)]), [(103, new.compute_txid())]);
    node.invalidate_block(first.block_hash()).unwrap();
    assert_eq!(found(&node, &[script(1), script(2)]), [(103, old.compute_txid())]);
    node.reopen();
    assert_eq!(found(&node, &[script(1), script(2)]), [(103, old.compute_txid())]);
}

#[test]
fn the_genesis_coinbase_is_found() {
    let node = TestNode::new();
    extend(&node, &[]);
    let coinbase = genesis().txdata.remove(0);
    let scripts = std::slice::from_ref(&coinbase.output[0].script_pubkey);
    assert_eq!(found(&node, scripts), [(0, coinbase.compute_txid())]);
}

#[test]
fn an_unreadable_block_is_reported() {
    let node = TestNode::new();
    let coinbases = extend_by(&node, 101);
    let block = extend(&node, &[pay((coinbases[0], 0), &[script(1)])]);
    let find = || node.snapshot().unwrap().find(0..200, &set(&[script(1)])).unwrap().blocks;
    assert!(find()[0].found.is_some());
    let mut txn = node.store.write().unwrap();
    node.store.put_block(&mut txn, &block.block_hash(), b"damaged").unwrap();
    txn.commit().unwrap();
    let blocks = find();
    assert_eq!(blocks.len(), 1);
    assert!(blocks[0].found.is_none());
    assert_eq!((blocks[0].height, blocks[0].max_time), (102, node.tip().time));
}
