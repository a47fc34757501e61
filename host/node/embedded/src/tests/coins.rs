//! Compares the coins with a naive replay of the best chain.

use std::collections::BTreeMap;

use bitcoin::consensus::{deserialize, serialize};
use bitcoin::opcodes::all::OP_PUSHNUM_1;
use bitcoin::{Block, OutPoint, ScriptBuf, Transaction, Txid};
use outrigger_node::Node;
use outrigger_service::chain::{BlockRef, FoundCoin, Verdict};
use outrigger_service::wire::Encoded;
use proptest::prelude::*;

use super::super::EmbeddedNode;
use super::super::store::rows::outpoint_key;
use super::TestNode;
use super::miner::{Draft, anyone, extend, extend_by, spend};
use outrigger_script::parse::is_unspendable;

/// Height, whether of a coinbase, value in satoshi.
type Plain = (u32, bool, u64);

/// The coins after a replay of the best chain's blocks, one transaction at a time.
fn replayed(node: &EmbeddedNode) -> BTreeMap<Vec<u8>, Plain> {
    let snapshot = node.snapshot().unwrap();
    let mut coins = BTreeMap::new();
    for height in 1..=snapshot.tip().height {
        let hash = snapshot.block_info(BlockRef::Height { height }).unwrap().unwrap().hash;
        let block: Block = deserialize(&snapshot.block(hash).unwrap().unwrap()).unwrap();
        for tx in &block.txdata {
            for input in tx.input.iter().filter(|_| !tx.is_coinbase()) {
                assert!(coins.remove(outpoint_key(&input.previous_output).as_slice()).is_some());
            }
            let txid = tx.compute_txid();
            for (vout, output) in (0..).zip(&tx.output) {
                if !is_unspendable(output.script_pubkey.as_bytes()) {
                    let key = outpoint_key(&OutPoint { txid, vout }).to_vec();
                    coins.insert(key, (height, tx.is_coinbase(), output.value.to_sat()));
                }
            }
        }
    }
    coins
}

fn assert_as_replayed(node: &TestNode) {
    let coins = in_batches(node);
    assert_eq!(coins, replayed(node));
    assert_eq!(node.snapshot().unwrap().info().unwrap().coins, Some(coins.len() as u64));
    assert_searches_find_what_is_there(node);
}

/// Searches for none, some and all of the scripts, in batches of several sizes. Compares with a scan of all coins.
fn assert_searches_find_what_is_there(node: &TestNode) {
    let snapshot = node.snapshot().unwrap();
    let all = snapshot.coins_after(None, u32::MAX).unwrap();
    let scripts: Vec<ScriptBuf> = (0..KINDS).map(kind_of_anyone).collect();
    let choices = [&scripts[..0], &scripts[..1], &scripts[1..3], &scripts[..]];
    for (chosen, limit) in choices.into_iter().flat_map(|chosen| [1, 7, u32::MAX].map(|limit| (chosen, limit))) {
        let message = Encoded::new(&chosen.to_vec());
        let (mut found, mut searched, mut last) = (Vec::new(), 0, None);
        loop {
            let search = snapshot.find_coins(message.view().unwrap(), last.as_ref(), limit).unwrap();
            assert!(search.searched <= limit && (search.searched == 0) == search.last.is_none());
            searched += search.searched as usize;
            found.extend(search.found);
            if search.last.is_none() {
                break;
            }
            last = search.last;
        }
        assert_eq!((searched, last), (all.len(), all.last().map(|output| output.outpoint)));
        let expected: Vec<FoundCoin> = all
            .iter()
            .filter(|output| chosen.contains(&output.coin.output.script_pubkey))
            .map(|output| {
                let block = snapshot.block_info(BlockRef::Height { height: output.coin.height }).unwrap().unwrap().hash;
                FoundCoin { output: output.clone(), block }
            })
            .collect();
        assert_eq!(found, expected);
    }
}

/// The coins that `coins_after` returns in batches. Asserts the order of keys.
fn in_batches(node: &TestNode) -> BTreeMap<Vec<u8>, Plain> {
    const BATCH: u32 = 3;
    let snapshot = node.snapshot().unwrap();
    let mut read = Vec::new();
    let mut last = None;
    loop {
        let batch = snapshot.coins_after(last.as_ref(), BATCH).unwrap();
        let Some(end) = batch.last() else { break };
        assert!(batch.len() <= BATCH as usize);
        last = Some(end.outpoint);
        read.extend(batch.into_iter().map(|output| {
            let coin = output.coin;
            (outpoint_key(&output.outpoint).to_vec(), (coin.height, coin.coinbase, coin.output.value.to_sat()))
        }));
    }
    assert!(read.is_sorted());
    read.into_iter().collect()
}

/// The number of scripts of different lengths in the tests' outputs.
const KINDS: usize = 4;

fn kind_of_anyone(kind: usize) -> ScriptBuf {
    if kind == 0 { anyone() } else { ScriptBuf::from_bytes(vec![OP_PUSHNUM_1.to_u8(); kind]) }
}

#[derive(Clone, Debug)]
enum Step {
    /// A block on the block `depth` below the tip. A spend is the index of a coinbase, the number of outputs, and whether
    /// the first output is spent in the same block.
    Block {
        depth: u32,
        spends: Vec<(usize, u8, bool)>,
    },
    Invalidate {
        depth: u32,
    },
    Reconsider,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let spends = prop::collection::vec((0..8_usize, 1..5_u8, any::<bool>()), 0..4);
    let step = prop_oneof![
        8 => (0..4_u32, spends).prop_map(|(depth, spends)| Step::Block { depth, spends }),
        1 => (0..5_u32).prop_map(|depth| Step::Invalidate { depth }),
        1 => Just(Step::Reconsider),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..24)
}

/// Transactions that spend coinbases, and some children.
fn transactions(coinbases: &[Txid], spends: &[(usize, u8, bool)]) -> Vec<Transaction> {
    let mut used = Vec::new();
    let mut made = Vec::new();
    for (which, outputs, again) in spends {
        if used.contains(which) {
            continue;
        }
        used.push(*which);
        let mut tx = spend(&[(coinbases[*which], 0)], &vec![1_000_000; usize::from(*outputs)]);
        // The child spends the first output.
        for (kind, output) in tx.output.iter_mut().enumerate().skip(1) {
            output.script_pubkey = kind_of_anyone(kind % KINDS);
        }
        let child = spend(&[(tx.compute_txid(), 0)], &[999_000]);
        made.push(tx);
        if *again {
            made.push(child);
        }
    }
    made
}

fn block_below_tip(node: &EmbeddedNode, depth: u32) -> bitcoin::BlockHash {
    let height = node.tip().height.saturating_sub(depth).max(108);
    node.snapshot().unwrap().block_info(BlockRef::Height { height }).unwrap().unwrap().hash
}

#[test]
fn bip30_transaction_with_unspent_outputs_is_refused() {
    let node = TestNode::new();
    let coinbases = extend_by(&node, 102);
    let first = spend(&[(coinbases[0], 0)], &[1_000, 2_000]);
    extend(&node, std::slice::from_ref(&first));
    let reason = |transactions: &[Transaction]| {
        let block = Draft::on(&node, node.tip().hash, transactions, 7).finish();
        match node.check_block(&serialize(&block)).unwrap() {
            Verdict::Invalid { reason, .. } => reason,
            verdict => panic!("{verdict:?}"),
        }
    };
    // BIP 30 is checked before all other rules of transactions, at any position.
    let missing = spend(&[(first.compute_txid(), 9)], &[500]);
    assert_eq!(reason(&[missing.clone(), first.clone()]), "bad-txns-BIP30");
    assert_eq!(reason(&[first.clone(), missing.clone()]), "bad-txns-BIP30");
    // Once all its outputs are spent, BIP 30 allows the transaction; only its inputs are missing.
    extend(&node, &[spend(&[(first.compute_txid(), 0), (first.compute_txid(), 1)], &[2_500])]);
    assert_eq!(reason(&[first]), "bad-txns-inputs-missingorspent");
    assert_eq!(reason(&[missing]), "bad-txns-inputs-missingorspent");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn coins_after_random_blocks_are_those_of_a_naive_replay(steps in steps()) {
        let mut node = TestNode::new();
        let coinbases = extend_by(&node, 108);
        let mut invalidated = None;
        for (tag, step) in (1..).zip(steps) {
            match step {
                Step::Block { depth, spends } => {
                    let transactions = transactions(&coinbases, &spends);
                    let block = Draft::on(&node, block_below_tip(&node, depth), &transactions, tag).finish();
                    // Blocks with double spends are refused, and must leave no trace.
                    let verdict = node.submit_block(&serialize(&block)).unwrap();
                    let fine = match &verdict {
                        Verdict::Valid | Verdict::Inconclusive => true,
                        Verdict::Invalid { reason, .. } => {
                            ["bad-txns-inputs-missingorspent", "bad-txns-BIP30"].contains(&reason.as_str())
                        }
                        _ => false,
                    };
                    prop_assert!(fine, "{verdict:?}");
                }
                Step::Invalidate { depth } => {
                    let height = node.tip().height.saturating_sub(depth);
                    if height > 108 {
                        let hash = block_below_tip(&node, depth);
                        node.invalidate_block(hash).unwrap();
                        invalidated = Some(hash);
                    }
                }
                Step::Reconsider => {
                    if let Some(hash) = invalidated.take() {
                        node.reconsider_block(hash).unwrap();
                    }
                }
                Step::Reopen => node.reopen(),
            }
            assert_as_replayed(&node);
            node.pool.read().graph.assert_consistent();
        }
    }
}
