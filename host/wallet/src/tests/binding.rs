//! Wallets of another chain, and deep rewinds.

use bitcoin::{BlockHash, Network};
use outrigger_node::{ChainIdentity, Node};
use outrigger_scripted_node::ScriptedNode;

use super::*;
use crate::store::{CHAIN, Store};

/// The chain in the wallet's file.
fn bound_to(harness: &Harness) -> Option<ChainIdentity> {
    let view = harness.view();
    let store = &view.wallet().store;
    let txn = store.read().unwrap();
    store.tables.meta.get(&txn, CHAIN).unwrap().and_then(ChainIdentity::from_bytes)
}

/// Changes the chain in the file of a wallet that is not loaded.
fn bind(harness: &Harness, chain: &ChainIdentity) {
    let store = Store::open(&harness.dir.path().join("w"), &settings()).unwrap();
    let mut txn = store.write().unwrap();
    store.tables.meta.put(&mut txn, CHAIN, &chain.to_bytes()).unwrap();
    txn.commit().unwrap();
}

/// Allows rewinds of two blocks, and deeper ones to the given block.
fn two_back(allow_rewind_to: Option<BlockHash>) -> Settings {
    Settings { max_rewind: Some(2), allow_rewind_to, ..settings() }
}

#[test]
fn wallet_of_another_chain_is_refused() {
    let mut harness = Harness::with_wallet();
    assert_eq!(bound_to(&harness), Some(harness.node.chain()));
    let other = ChainIdentity::of(Network::Signet);
    harness.restart(|harness| bind(harness, &other));
    assert!(harness.manager.list().is_empty());
    let refused = harness.manager.load("w".into(), None).unwrap_err();
    let words = format!(
        "Wallet loading failed. Wallet files should not be reused across chains. The wallet is of {other}, and the node is on \
         regtest."
    );
    assert_eq!((refused.kind, refused.detail), (ErrorKind::Refused, words));
}

#[test]
fn wallet_that_would_go_far_back_is_read_only_until_that_is_allowed() {
    let mut harness = Harness::with_wallet();
    let script = harness.address(Some("a"));
    let blocks: Vec<BlockHash> = (0..4).map(|_| harness.mine_to(script.clone(), vec![])).collect();
    // Waits until the wallet has followed the chain.
    harness.view();
    harness.restart_with(two_back(None), |harness| {
        (0..3).for_each(|_| harness.chain.disconnect());
        for _ in 0..5 {
            harness.chain.mine_to(foreign(9), vec![]);
        }
    });
    let info = harness.view().info().unwrap();
    assert_eq!((info.synced.hash, info.transactions), (blocks[3], 4), "it stands where it was");
    let named = format!("backend.allow_rewind_to = \"{}\"", blocks[0]);
    assert!(info.warnings[0].contains(&named) && info.warnings[0].ends_with("reads 5 blocks again."), "{info:?}");
    let view = harness.view();
    assert_eq!(kind_of(view.wallet().new_address(AddressType::Bech32, false, None)), ErrorKind::Refused);
    let folder = tempfile::tempdir().unwrap();
    view.wallet().backup(&folder.path().join("backup"), &None, &[]).unwrap();
    drop(view);
    harness.manager.unload("w".into(), None).unwrap();
    assert_eq!(harness.manager.load("w".into(), None).unwrap(), info.warnings);
    // Neither a block of the former branch nor one above the fork allows the rewind.
    let above = harness.chain.tip(Scope::NONE).unwrap().hash;
    for named in [blocks[3], above] {
        harness.restart_with(two_back(Some(named)), |_| {});
        assert_eq!(harness.view().info().unwrap().warnings.len(), 1);
    }
    harness.restart_with(two_back(Some(blocks[0])), |_| {});
    let info = harness.view().info().unwrap();
    assert_eq!((info.synced.hash, info.warnings.len()), (above, 0));
}

#[test]
fn wallet_with_unknown_blocks_rereads_the_chain_only_when_allowed() {
    let mut harness = Harness::with_wallet();
    let script = harness.address(Some("a"));
    let last = harness.mine_to(script, vec![]);
    // Waits until the wallet has followed the chain.
    harness.view();
    // Another chain with the same genesis block, as signets have.
    let node = ScriptedNode::new();
    node.connect(foreign(1), vec![]);
    harness.manager.shutdown();
    // As if the wallet had been created after the genesis block.
    let store = Store::open(&harness.dir.path().join("w"), &settings()).unwrap();
    let mut txn = store.write().unwrap();
    store.tables.blocks.delete(&mut txn, &0_u32.to_be_bytes()).unwrap();
    txn.commit().unwrap();
    drop(store);
    (harness.node, harness.chain) = (node.clone(), node.chain.clone());
    harness.restart_with(two_back(None), |_| {});
    assert_eq!(harness.view().info().unwrap().synced.hash, last);
    let genesis = harness.node.chain().genesis;
    harness.restart_with(two_back(Some(genesis)), |_| {});
    assert_eq!(harness.view().info().unwrap().synced.hash, node.tip().hash);
    assert_eq!(bound_to(&harness), Some(harness.node.chain()));
}
