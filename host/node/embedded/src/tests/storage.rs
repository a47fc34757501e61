//! The database: durability, snapshots, limits and damage.

use std::sync::atomic::Ordering;

use bitcoin::Network;
use bitcoin::consensus::serialize;
use outrigger_node::{Node, NodeError};
use outrigger_service::chain::{BlockRef, Verdict};

use super::super::params::genesis;
use super::super::{EmbeddedError, EmbeddedNode, Settings};
use super::TestNode;
use super::miner::{Draft, extend, extend_by, spend};
use outrigger_disk::StoreError;

#[test]
fn storage_keeps_blocks_with_the_verdict_valid() {
    let mut node = TestNode::new();
    let coinbases = extend_by(&node, 101);
    let block = extend(&node, &[spend(&[(coinbases[0], 0)], &[1_000, 2_000])]);
    let tip = node.tip();
    let info = node.snapshot().unwrap().info().unwrap();
    node.reopen();
    assert_eq!(node.tip(), tip);
    let snapshot = node.snapshot().unwrap();
    assert_eq!(snapshot.info().unwrap().coins, info.coins);
    assert_eq!(snapshot.block(block.block_hash()).unwrap().unwrap().0, serialize(&block));
    assert_eq!(snapshot.transaction(block.txdata[1].compute_txid()).unwrap().unwrap().index, 1);
    let spent = snapshot.spent_outputs(block.block_hash()).unwrap().unwrap();
    assert_eq!((spent[0].coins.len(), spent[1].coins.len()), (0, 1));
    assert_eq!((spent[1].coins[0].height, spent[1].coins[0].coinbase), (1, true));
    extend(&node, &[]);
}

#[test]
fn a_new_database_has_the_genesis_block() {
    let node = TestNode::new();
    let snapshot = node.snapshot().unwrap();
    let info = snapshot.block_info(BlockRef::Height { height: 0 }).unwrap().unwrap();
    assert_eq!(info.hash.to_string(), "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206");
    assert_eq!((info.transactions, info.next, info.in_best_chain), (Some(1), None, true));
    assert_eq!(snapshot.spent_outputs(info.hash).unwrap().unwrap().len(), 1);
    assert_eq!(snapshot.max_time(0).unwrap(), node.tip().time);
    // The genesis block's coinbase creates no coin.
    assert_eq!(snapshot.info().unwrap().coins, Some(0));
    assert_eq!(snapshot.transaction(genesis().txdata[0].compute_txid()).unwrap(), None);
}

#[test]
fn networks_other_than_regtest_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for network in [Network::Bitcoin, Network::Testnet, Network::Signet] {
        let error = EmbeddedNode::open(folder.path(), Settings { network, ..Settings::default() }).err().unwrap();
        assert!(matches!(error, EmbeddedError::Network(found) if found == network), "{error}");
    }
}

#[test]
fn snapshot_does_not_change() {
    let node = TestNode::new();
    let before = node.snapshot().unwrap();
    let coinbase = extend(&node, &[]).txdata[0].compute_txid();
    let outpoint = bitcoin::OutPoint { txid: coinbase, vout: 0 };
    std::thread::spawn(move || {
        assert_eq!(before.tip().height, 0);
        assert_eq!(before.coins(&[outpoint]).unwrap(), [None]);
        assert!(before.block_info(BlockRef::Height { height: 1 }).unwrap().is_none());
    })
    .join()
    .unwrap();
    let coins = node.snapshot().unwrap().coins(&[outpoint, bitcoin::OutPoint::null()]).unwrap();
    assert_eq!(coins[0].as_ref().map(|coin| (coin.height, coin.coinbase)), Some((1, true)));
    assert_eq!(coins[1], None);
}

#[test]
fn a_full_database_refuses_the_block_and_keeps_everything_else() {
    let mut node = TestNode::with(Settings { map_size: 1 << 20, ..Settings::default() });
    let mut last = node.tip();
    let error = loop {
        let block = Draft::on(&node, last.hash, &[], 0).finish();
        match node.submit_block(&serialize(&block)) {
            Ok(verdict) => assert_eq!(verdict, Verdict::Valid),
            Err(error) => break error,
        }
        last = node.tip();
        assert!(last.height < 100_000, "the database never fills");
    };
    assert!(matches!(error, EmbeddedError::Store(StoreError::MapFull)), "{error}");
    assert_eq!(node.tip(), last);
    let snapshot = node.snapshot().unwrap();
    assert_eq!((snapshot.tip(), snapshot.info().unwrap().coins), (last, Some(u64::from(last.height))));
    drop(snapshot);
    // With a larger map the node continues.
    node.settings.map_size = 1 << 24;
    node.reopen();
    assert_eq!(node.tip(), last);
    extend(&node, &[]);
}

#[test]
fn too_many_snapshots_are_an_error() {
    let node = TestNode::with(Settings { max_readers: 4, ..Settings::default() });
    let mut open = Vec::new();
    let error = loop {
        match node.snapshot() {
            Ok(snapshot) => open.push(snapshot),
            Err(error) => break error,
        }
        assert!(open.len() < 1_000);
    };
    let too_many = EmbeddedError::from(StoreError::TooManyReaders).to_string();
    assert!(matches!(&error, NodeError::Storage(text) if *text == too_many), "{error}");
    drop(open);
    node.snapshot().unwrap();
}

#[test]
fn a_database_cannot_be_opened_twice_at_once() {
    let node = TestNode::new();
    let again = EmbeddedNode::open(node.dir.path(), Settings::default());
    assert!(matches!(again.err(), Some(EmbeddedError::Store(StoreError::Failed(_)))));
}

#[test]
fn an_unfinished_file_that_cannot_be_removed_is_a_failure_of_the_storage() {
    let mut node = TestNode::new();
    node.node = None;
    std::fs::write(node.dir.path().join("data.mdb.making"), "no folder").unwrap();
    let error = EmbeddedNode::open(node.dir.path(), Settings::default()).err().unwrap();
    assert!(matches!(error, EmbeddedError::Store(StoreError::Failed(_))), "{error}");
}

#[test]
fn a_chain_of_a_newer_layout_is_refused_naming_the_version_needed() {
    let mut node = TestNode::new();
    let mut txn = node.store.write().unwrap();
    node.store.put_layout(&mut txn, 99).unwrap();
    txn.commit().unwrap();
    node.node = None;
    let error = EmbeddedNode::open(node.dir.path(), Settings::default()).err();
    let error = error.unwrap();
    assert!(matches!(error, EmbeddedError::Store(StoreError::OtherLayout { found: 99, .. })), "{error}");
    let needed = format!("A build of version {} wrote it.", env!("CARGO_PKG_VERSION"));
    assert!(error.to_string().contains(&needed), "{error}");
}

#[test]
fn a_block_that_cannot_be_decoded_is_damage_and_nothing_more_is_written() {
    let mut node = TestNode::new();
    extend_by(&node, 2);
    let before = node.tip();
    let mut txn = node.store.write().unwrap();
    node.store.put_block(&mut txn, &before.hash, &[0; 79]).unwrap();
    txn.commit().unwrap();
    node.reopen();
    let error = node.invalidate_block(before.hash).unwrap_err();
    let file = node.dir.path().join("data.mdb");
    assert!(
        matches!(&error, EmbeddedError::Store(StoreError::Damage(damage)) if damage.table == "blocks" && damage.file == file),
        "{error}"
    );
    let block = Draft::on(&node, before.hash, &[], 0).finish();
    let refused = node.submit_block(&serialize(&block)).unwrap_err();
    assert!(matches!(refused, EmbeddedError::Store(StoreError::Damage(_))), "{refused}");
    assert_eq!(node.tip(), before);
}

#[test]
fn storage_is_synced_only_when_the_tip_moves() {
    let mut node = TestNode::new();
    extend_by(&node, 2);
    let genesis = node.snapshot().unwrap().block_info(BlockRef::Height { height: 0 }).unwrap().unwrap().hash;
    let syncs = |node: &TestNode| node.store.syncs.load(Ordering::Relaxed);
    let before = syncs(&node);
    let beside: Vec<_> = (1..6).map(|tag| Draft::on(&node, genesis, &[], tag).finish()).collect();
    for block in &beside {
        assert_eq!(node.submit_block(&serialize(block)).unwrap(), Verdict::Inconclusive);
    }
    assert_eq!(syncs(&node), before);
    extend_by(&node, 1);
    assert_eq!(syncs(&node), before + 1);
    node.finish();
    assert_eq!(syncs(&node), before + 2);
    node.reopen();
    for block in &beside {
        assert_eq!(node.submit_block(&serialize(block)).unwrap(), Verdict::Duplicate);
    }
}
