//! Comparison with bitcoind's recorded answers to the same blocks.

use std::collections::BTreeMap;

use bitcoin::consensus::{Encodable, deserialize};
use bitcoin::hashes::{Hash, HashEngine, sha256d};
use bitcoin::{Block, OutPoint, Txid};
use outrigger_node::Node;
use outrigger_service::chain::{BlockRef, BlockState, Verdict};
use serde::Deserialize;
use serde_json::Value;

use super::{TestNode, recorded_file, unhex};

#[derive(Deserialize)]
struct Chain {
    blocks: Vec<ChainBlock>,
    getblockchaininfo: ChainInfo,
    gettxoutsetinfo: CoinInfo,
}

#[derive(Deserialize)]
struct ChainBlock {
    height: u32,
    hash: String,
    time: u32,
    transactions: u32,
}

#[derive(Deserialize)]
struct ChainInfo {
    time: u32,
    mediantime: u32,
    chainwork: String,
}

#[derive(Deserialize)]
struct CoinInfo {
    txouts: u64,
    hash_serialized_3: String,
}

fn recorded_blocks() -> Vec<Vec<u8>> {
    recorded_file("chain.hex").split_whitespace().map(|text| unhex(text).unwrap()).collect()
}

/// A node with the recorded chain, its clock at the tip's time.
fn loaded() -> TestNode {
    let chain: Chain = serde_json::from_str(&recorded_file("chain.json")).unwrap();
    let node = TestNode::new();
    node.set_mock_time(u64::from(chain.getblockchaininfo.time)).unwrap();
    for raw in recorded_blocks() {
        assert_eq!(node.submit_block(&raw).unwrap(), Verdict::Valid);
    }
    node
}

/// The hash over all coins that `gettxoutsetinfo` calls `hash_serialized_3`.
fn coins_hash(node: &TestNode) -> String {
    let txn = node.store.read().unwrap();
    let mut engine = sha256d::Hash::engine();
    for (key, coin) in node.store.all_coins(&txn).unwrap() {
        let outpoint = OutPoint {
            txid: Txid::from_slice(&key[..32]).unwrap(),
            vout: u32::from_be_bytes(key[32..].try_into().unwrap()),
        };
        outpoint.consensus_encode(&mut engine).unwrap();
        engine.input(&(coin.height << 1 | u32::from(coin.coinbase)).to_le_bytes());
        coin.output.consensus_encode(&mut engine).unwrap();
    }
    sha256d::Hash::from_engine(engine).to_string()
}

#[test]
fn the_recorded_chain_is_accepted_and_leaves_the_same_coins() {
    let chain: Chain = serde_json::from_str(&recorded_file("chain.json")).unwrap();
    let node = loaded();
    let snapshot = node.snapshot().unwrap();
    for block in &chain.blocks {
        let info = snapshot.block_info(BlockRef::Height { height: block.height }).unwrap().unwrap();
        assert_eq!((info.hash.to_string(), info.transactions), (block.hash.clone(), Some(block.transactions)));
        let raw = snapshot.block(info.hash).unwrap().unwrap();
        let decoded: Block = deserialize(&raw).unwrap();
        assert_eq!((decoded.header.time, info.state, info.in_best_chain), (block.time, BlockState::Valid, true));
        assert_eq!(snapshot.spent_outputs(info.hash).unwrap().unwrap().len(), decoded.txdata.len());
        for (index, tx) in (0..).zip(&decoded.txdata) {
            let found = snapshot.transaction(tx.compute_txid()).unwrap().unwrap();
            assert_eq!((found.block, found.index), (info.hash, index));
            assert_eq!(found.raw.0, bitcoin::consensus::serialize(tx));
        }
    }
    let tip = snapshot.tip();
    assert_eq!((tip.time, tip.median_time), (chain.getblockchaininfo.time, chain.getblockchaininfo.mediantime));
    let info = snapshot.block_info(BlockRef::Hash { hash: tip.hash }).unwrap().unwrap();
    assert_eq!(
        bitcoin::Work::from_be_bytes(info.chain_work).to_string(),
        hex_to_decimal(&chain.getblockchaininfo.chainwork)
    );
    assert_eq!(snapshot.info().unwrap().coins, Some(chain.gettxoutsetinfo.txouts));
    assert_eq!(coins_hash(&node), chain.gettxoutsetinfo.hash_serialized_3);
}

fn hex_to_decimal(text: &str) -> String {
    u128::from_str_radix(text.trim_start_matches('0'), 16).unwrap().to_string()
}

#[derive(Deserialize)]
struct BadBlocks {
    rows: Vec<BadBlock>,
}

#[derive(Deserialize)]
struct BadBlock {
    name: String,
    hex: Option<String>,
    hex_runs: Option<Vec<(String, usize)>>,
    proposal: Value,
    submitblock: Value,
    accepted: bool,
    submitblock_again: Value,
    proposal_again: Value,
}

impl BadBlock {
    fn text(&self) -> String {
        match (&self.hex, &self.hex_runs) {
            (Some(hex), _) => hex.clone(),
            (None, Some(runs)) => runs.iter().map(|(text, count)| text.repeat(*count)).collect(),
            (None, None) => panic!("{} has no block", self.name),
        }
    }
}

/// A verdict in the words of bitcoind's RPC.
fn worded(verdict: Verdict) -> Value {
    let failed = |message: &str| serde_json::json!({ "code": -22, "message": message });
    match verdict {
        Verdict::Valid => Value::Null,
        Verdict::Duplicate => "duplicate".into(),
        Verdict::DuplicateInvalid => "duplicate-invalid".into(),
        Verdict::DuplicateInconclusive => "duplicate-inconclusive".into(),
        Verdict::Inconclusive => "inconclusive".into(),
        Verdict::NotBestPrevious => "inconclusive-not-best-prevblk".into(),
        Verdict::Invalid { reason, .. } => reason.into(),
        Verdict::Undecodable => failed("Block decode failed"),
        Verdict::NoCoinbase => "bad-cb-missing".into(),
    }
}

#[test]
fn bad_blocks_get_the_recorded_reasons() {
    let recorded: BadBlocks = serde_json::from_str(&recorded_file("bad-blocks.json")).unwrap();
    assert!(recorded.rows.len() > 200);
    let node = loaded();
    let tip = node.tip();
    let mut wrong = BTreeMap::new();
    for row in &recorded.rows {
        let raw = unhex(&row.text());
        let bytes = raw.as_deref();
        let propose = || worded(bytes.map_or(Verdict::Undecodable, |raw| node.check_block(raw).unwrap()));
        let submit = || worded(bytes.map_or(Verdict::Undecodable, |raw| node.submit_block(raw).unwrap()));
        let proposal = propose();
        let submission = submit();
        let accepted = node.tip() != tip;
        let again = (submit(), propose());
        if accepted {
            node.invalidate_block(node.tip().hash).unwrap();
        }
        assert_eq!(node.tip(), tip, "{}", row.name);
        let found = (proposal, submission, accepted, again);
        let wanted = (
            row.proposal.clone(),
            row.submitblock.clone(),
            row.accepted,
            (row.submitblock_again.clone(), row.proposal_again.clone()),
        );
        if found != wanted {
            wrong.insert(&row.name, (found, wanted));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[derive(Deserialize)]
struct Reorganisation {
    fork_height: u32,
    branch_a: Vec<BranchBlock>,
    branch_b: Vec<BranchBlock>,
    steps: Vec<Step>,
    getchaintips: Vec<ChainTip>,
}

#[derive(Deserialize)]
struct BranchBlock {
    hash: String,
    hex: String,
}

#[derive(Deserialize)]
struct Step {
    block: String,
    submitblock: Value,
    bestblockhash: String,
    mempool: Vec<String>,
}

#[derive(Deserialize)]
struct ChainTip {
    height: u32,
    hash: String,
    branchlen: u32,
    status: String,
}

#[test]
fn the_recorded_reorganisation_takes_the_same_steps() {
    let recorded: Reorganisation = serde_json::from_str(&recorded_file("reorg.json")).unwrap();
    let node = loaded();
    assert_eq!(node.tip().height, recorded.fork_height);
    node.set_mock_time(u64::from(node.tip().time) + 7_200).unwrap();
    let fork_coins = coins_hash(&node);
    for step in &recorded.steps {
        let (branch, number) = step.block.split_at(1);
        let blocks = if branch == "a" { &recorded.branch_a } else { &recorded.branch_b };
        let block = &blocks[number.parse::<usize>().unwrap() - 1];
        let verdict = node.submit_block(&unhex(&block.hex).unwrap()).unwrap();
        assert_eq!(worded(verdict), step.submitblock, "{}", step.block);
        assert_eq!(node.tip().hash.to_string(), step.bestblockhash, "{}", step.block);
        let mut mempool: Vec<_> = node.mempool_ids().unwrap().iter().map(Txid::to_string).collect();
        mempool.sort();
        assert_eq!(mempool, step.mempool, "{}", step.block);
        node.pool().graph().assert_consistent();
    }
    let tips = node.snapshot().unwrap().tips().unwrap();
    assert_eq!(tips.len(), recorded.getchaintips.len());
    for (found, wanted) in tips.iter().zip(&recorded.getchaintips) {
        assert_eq!((found.height, found.branch_length), (wanted.height, wanted.branchlen));
        assert_eq!(found.hash.to_string(), wanted.hash);
        assert_eq!(found.state, BlockState::Valid, "{}", wanted.status);
    }
    // Branch B alone leaves the same coins as branch B after branch A. Going back restores those of the fork.
    let direct = loaded();
    direct.set_mock_time(node.time()).unwrap();
    for block in &recorded.branch_b {
        assert_eq!(direct.submit_block(&unhex(&block.hex).unwrap()).unwrap(), Verdict::Valid);
    }
    assert_eq!(coins_hash(&node), coins_hash(&direct));
    for branch in [&recorded.branch_a, &recorded.branch_b] {
        node.invalidate_block(branch[0].hash.parse().unwrap()).unwrap();
    }
    assert_eq!(node.tip().height, recorded.fork_height);
    assert_eq!(coins_hash(&node), fork_coins);
}
