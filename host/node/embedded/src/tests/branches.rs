//! Branches: which blocks are stored and validated, and which chain is the best.

use std::sync::Arc;

use bitcoin::consensus::serialize;
use bitcoin::hashes::Hash;
use bitcoin::{Amount, Block, BlockHash};
use outrigger_service::chain::{BlockRef, BlockState, Verdict};
use parking_lot::Mutex;

use super::super::params::genesis;
use super::super::{EmbeddedError, EmbeddedNode};
use super::TestNode;
use super::miner::{Draft, extend, extend_by, mine};
use outrigger_node::{Node, NodeEvent, Observer};

fn submit(node: &EmbeddedNode, block: &Block) -> Verdict {
    node.submit_block(&serialize(block)).unwrap()
}

fn invalid(reason: &str) -> Verdict {
    Verdict::Invalid { reason: reason.to_owned(), detail: String::new() }
}

fn state(node: &EmbeddedNode, hash: BlockHash) -> BlockState {
    node.snapshot().unwrap().block_info(BlockRef::Hash { hash }).unwrap().unwrap().state
}

/// A branch of `count` blocks on `parent`. The node gets only their headers.
fn branch_of_headers(node: &EmbeddedNode, parent: BlockHash, count: u32, tag: u32) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for _ in 0..count {
        let parent = blocks.last().map_or(parent, Block::block_hash);
        let block = Draft::on(node, parent, &[], tag).finish();
        assert_eq!(node.submit_header(&serialize(&block.header)).unwrap(), Verdict::Valid);
        blocks.push(block);
    }
    blocks
}

fn greedy(block: &mut Block) {
    block.txdata[0].output[0].value += Amount::ONE_SAT;
}

#[test]
fn a_precious_block_is_preferred_among_equals_also_after_a_restart() {
    let mut node = TestNode::new();
    let fork = node.tip().hash;
    let first = extend(&node, &[]).block_hash();
    let second = Draft::on(&node, fork, &[], 1).finish();
    submit(&node, &second);
    let second = second.block_hash();
    for preferred in [second, first, second] {
        node.precious_block(preferred).unwrap();
        assert_eq!(node.tip().hash, preferred);
    }
    node.reopen();
    assert_eq!(node.tip().hash, second);
    extend(&node, &[]);
    let tip = node.tip();
    // It has less work than the tip by now.
    node.precious_block(first).unwrap();
    assert_eq!(node.tip(), tip);
}

#[test]
fn proposal_of_the_genesis_block_is_inconclusive_as_in_bitcoind() {
    let node = TestNode::new();
    let genesis = serialize(&bitcoin::constants::genesis_block(bitcoin::Network::Regtest));
    assert_eq!(node.check_block(&genesis).unwrap(), Verdict::DuplicateInconclusive);
    assert_eq!(node.submit_block(&genesis).unwrap(), Verdict::Duplicate);
}

#[test]
fn blocks_that_wait_for_their_parents_are_connected_with_them() {
    let node = TestNode::new();
    let blocks = branch_of_headers(&node, node.tip().hash, 3, 0);
    assert_eq!(node.snapshot().unwrap().info().unwrap().headers, 3);
    assert_eq!(node.check_block(&serialize(&blocks[0])).unwrap(), Verdict::DuplicateInconclusive);
    assert_eq!(state(&node, blocks[0].block_hash()), BlockState::HeaderOnly);
    assert_eq!(submit(&node, &blocks[2]), Verdict::Inconclusive);
    assert_eq!(submit(&node, &blocks[1]), Verdict::Inconclusive);
    assert_eq!(node.tip().height, 0);
    // getchaintips reports `headers-only` for a stored block with a missing ancestor.
    let tips = node.snapshot().unwrap().tips().unwrap();
    assert_eq!((tips[1].hash, tips[1].state), (blocks[2].block_hash(), BlockState::HeaderOnly));
    assert_eq!(submit(&node, &blocks[0]), Verdict::Valid);
    assert_eq!(node.tip().hash, blocks[2].block_hash());
    assert_eq!(submit(&node, &blocks[2]), Verdict::Duplicate);
}

#[test]
fn submit_header_validates_headers() {
    let node = TestNode::new();
    let block = Draft::on(&node, node.tip().hash, &[], 0).finish();
    let header = |edit: &dyn Fn(&mut Block)| {
        let mut block = block.clone();
        edit(&mut block);
        mine(&mut block);
        node.submit_header(&serialize(&block.header)).unwrap()
    };
    let orphan = header(&|block| block.header.prev_blockhash = BlockHash::all_zeros());
    assert_eq!(orphan, invalid(&format!("Must submit previous header ({}) first", BlockHash::all_zeros())));
    assert_eq!(header(&|block| block.header.time = 0), invalid("time-too-old"));
    assert_eq!(node.submit_header(&[0; 79]).unwrap(), Verdict::Undecodable);
    assert_eq!(node.snapshot().unwrap().info().unwrap().headers, 0);
    assert_eq!(header(&|_| ()), Verdict::Valid);
    assert_eq!(header(&|_| ()), Verdict::Valid);
}

#[test]
fn an_invalid_branch_is_abandoned_for_the_best_valid_one() {
    let node = TestNode::new();
    let fork = node.tip().hash;
    extend_by(&node, 2);
    let tip = node.tip();
    let good = Draft::on(&node, fork, &[], 1).finish();
    assert_eq!(submit(&node, &good), Verdict::Inconclusive);
    let bad = Draft::on(&node, good.block_hash(), &[], 1).edit(greedy).finish();
    assert_eq!(submit(&node, &bad), Verdict::Inconclusive);
    let last = Draft::on(&node, bad.block_hash(), &[], 1).finish();
    // The last block gives its branch the most work, but is never connected: its parent is invalid.
    assert_eq!(submit(&node, &last), Verdict::Inconclusive);
    assert_eq!(node.tip(), tip);
    assert_eq!(state(&node, good.block_hash()), BlockState::Valid);
    for failed in [&bad, &last] {
        assert_eq!(state(&node, failed.block_hash()), BlockState::Failed);
        assert_eq!(submit(&node, failed), Verdict::DuplicateInvalid);
    }
    let child = Draft::on(&node, last.block_hash(), &[], 1).finish();
    assert_eq!(submit(&node, &child), invalid("bad-prevblk"));
    assert_eq!(node.submit_header(&serialize(&last.header)).unwrap(), Verdict::DuplicateInvalid);
}

#[test]
fn the_valid_part_of_an_invalid_branch_can_be_the_best_chain() {
    let node = TestNode::new();
    let fork = node.tip().hash;
    extend(&node, &[]);
    let blocks = branch_of_headers(&node, fork, 2, 1);
    let bad = Draft::on(&node, blocks[1].block_hash(), &[], 1).edit(greedy).finish();
    assert_eq!(node.submit_header(&serialize(&bad.header)).unwrap(), Verdict::Valid);
    for block in [&bad, &blocks[1]] {
        assert_eq!(submit(&node, block), Verdict::Inconclusive);
    }
    assert_eq!(submit(&node, &blocks[0]), Verdict::Valid);
    assert_eq!(node.tip().hash, blocks[1].block_hash());
    assert_eq!(state(&node, bad.block_hash()), BlockState::Failed);
}

#[test]
fn invalidate_block_disconnects_and_reconsider_block_reconnects() {
    let mut node = TestNode::new();
    extend_by(&node, 5);
    let tip = node.tip();
    let at = |height| node.snapshot().unwrap().block_info(BlockRef::Height { height }).unwrap().unwrap().hash;
    let (third, fourth) = (at(3), at(4));
    node.invalidate_block(third).unwrap();
    assert_eq!((node.tip().height, state(&node, tip.hash)), (2, BlockState::Failed));
    assert_eq!(node.snapshot().unwrap().info().unwrap().headers, 2);
    node.reopen();
    assert_eq!(node.tip().height, 2);
    node.reconsider_block(fourth).unwrap();
    assert_eq!((node.tip(), state(&node, tip.hash)), (tip, BlockState::Valid));
    let unknown = BlockHash::all_zeros();
    for result in [node.invalidate_block(unknown), node.reconsider_block(unknown), node.precious_block(unknown)] {
        assert!(matches!(result, Err(EmbeddedError::UnknownBlock(hash)) if hash == unknown));
    }
    node.invalidate_block(genesis().block_hash()).unwrap();
    assert_eq!(node.tip(), tip);
}

#[test]
fn a_reconsidered_invalid_block_fails_again() {
    let node = TestNode::new();
    let bad = Draft::on(&node, node.tip().hash, &[], 0).edit(greedy).finish();
    assert!(matches!(submit(&node, &bad), Verdict::Invalid { reason, .. } if reason == "bad-cb-amount"));
    node.reconsider_block(bad.block_hash()).unwrap();
    assert_eq!((node.tip().height, state(&node, bad.block_hash())), (0, BlockState::Failed));
}

#[derive(Default)]
struct Recorder(Mutex<Vec<String>>);

impl Observer for Recorder {
    fn notify(&self, event: NodeEvent) {
        let text = match event {
            NodeEvent::BlockConnected { height, .. } => format!("+{height}"),
            NodeEvent::BlockDisconnected { height, .. } => format!("-{height}"),
            NodeEvent::TipChanged { height, .. } => format!("={height}"),
            NodeEvent::TransactionAdded { .. } => "in".to_owned(),
            NodeEvent::TransactionRemoved { reason, .. } => format!("out {reason:?}"),
            NodeEvent::Reached => "reached".to_owned(),
        };
        self.0.lock().push(text);
    }
}

#[test]
fn observers_get_the_changes_of_the_chain_in_order() {
    let node = TestNode::new();
    let recorder = Arc::new(Recorder::default());
    node.observe(recorder.clone());
    let fork = extend(&node, &[]).block_hash();
    extend(&node, &[]);
    let blocks = branch_of_headers(&node, fork, 2, 1);
    submit(&node, &blocks[1]);
    submit(&node, &blocks[0]);
    // A block on a branch with less work sends no event.
    let other = Draft::on(&node, fork, &[], 2).finish();
    submit(&node, &other);
    let events = recorder.0.lock().clone();
    assert_eq!(events, ["+1", "=1", "+2", "=2", "-2", "+2", "+3", "=3"]);
}

#[test]
fn blocks_whose_hash_does_not_commit_to_their_bytes_are_refused_before_and_after_the_hash_is_known() {
    let node = TestNode::new();
    let good = Draft::on(&node, node.tip().hash, &[], 1).finish();
    let mut other = good.clone();
    other.txdata.push(other.txdata[0].clone());
    let before = node.snapshot().unwrap().tips().unwrap();
    assert_eq!(submit(&node, &other), invalid("bad-txnmrklroot"));
    assert_eq!(node.snapshot().unwrap().tips().unwrap(), before);
    assert_eq!(submit(&node, &good), Verdict::Valid);
    assert_eq!(submit(&node, &other), invalid("bad-txnmrklroot"));
    let empty = Draft::on(&node, node.tip().hash, &[], 1).edit(|block| block.txdata.clear()).finish_plain();
    assert_eq!(submit(&node, &empty), invalid("bad-blk-length"));
}
