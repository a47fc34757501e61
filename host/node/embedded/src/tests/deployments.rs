//! The BIP 9 deployment, from the first block to activation.

use bitcoin::block::Version;
use bitcoin::consensus::serialize;
use outrigger_service::chain::{DeploymentRule, DeploymentStage as Stage, SignalledDeployment, Verdict};

use super::super::EmbeddedNode;
use super::TestNode;
use super::miner::Draft;

const PLAIN: i32 = 0x2000_0000;
const SIGNAL: i32 = 0x3000_0000;

/// Extends the best chain to this height. `version` maps a height to a block version.
fn extend_to(node: &EmbeddedNode, height: u32, version: impl Fn(u32) -> i32) {
    while node.tip().height < height {
        let version = Version::from_consensus(version(node.tip().height + 1));
        let block = Draft::on(node, node.tip().hash, &[], 0).edit(|block| block.header.version = version).finish();
        assert_eq!(node.submit_block(&serialize(&block)).unwrap(), Verdict::Valid);
    }
}

fn testdummy(node: &EmbeddedNode) -> SignalledDeployment {
    let all = node.deployments(node.tip().hash).unwrap().unwrap();
    match &all[5].rule {
        DeploymentRule::Signalled { progress } => progress.clone(),
        DeploymentRule::Buried { .. } => panic!("miners signal for testdummy"),
    }
}

/// Checks the tip's stage, its first height and the next stage.
fn check(node: &EmbeddedNode, stage: Stage, since: u32, next: Stage) {
    let height = node.tip().height;
    let found = testdummy(node);
    assert_eq!((found.stage, found.since, found.next_stage), (stage, since, next), "height {height}");
}

#[test]
fn testdummy_goes_from_defined_to_active() {
    let mut node = TestNode::new();
    check(&node, Stage::Defined, 0, Stage::Defined);
    extend_to(&node, 142, |_| SIGNAL);
    check(&node, Stage::Defined, 0, Stage::Defined);
    extend_to(&node, 143, |_| SIGNAL);
    check(&node, Stage::Defined, 0, Stage::Started);
    // 108 of the period's blocks signal, the last of them at its end.
    extend_to(&node, 286, |height| if height < 144 + 107 { SIGNAL } else { PLAIN });
    check(&node, Stage::Started, 144, Stage::Started);
    assert_eq!(testdummy(&node).signals.iter().filter(|signals| **signals).count(), 107);
    extend_to(&node, 287, |_| SIGNAL);
    check(&node, Stage::Started, 144, Stage::LockedIn);
    let signals = testdummy(&node).signals;
    assert_eq!((signals.len(), signals[0], signals[107], signals[143]), (144, true, false, true));
    extend_to(&node, 430, |_| PLAIN);
    check(&node, Stage::LockedIn, 288, Stage::LockedIn);
    extend_to(&node, 431, |_| PLAIN);
    check(&node, Stage::LockedIn, 288, Stage::Active);
    assert_eq!((testdummy(&node).next_since, testdummy(&node).signals.len()), (432, 144));
    let last = node.tip().hash;
    extend_to(&node, 432, |_| PLAIN);
    check(&node, Stage::Active, 432, Stage::Active);
    assert!(testdummy(&node).signals.is_empty());
    // The stage is the same after a restart, and a lower block still has its own stage.
    node.reopen();
    check(&node, Stage::Active, 432, Stage::Active);
    node.invalidate_block(node.tip().hash).unwrap();
    assert_eq!(node.tip().hash, last);
    check(&node, Stage::LockedIn, 288, Stage::Active);
}

#[test]
fn testdummy_stays_started_without_enough_signals() {
    let node = TestNode::new();
    // One signal too few: some versions have the bit, but not the top bits.
    let version = |height: u32| match height {
        ..=143 => PLAIN,
        144..=250 => SIGNAL,
        251..=260 => 0x1000_0004,
        261..=270 => 0x5000_0000,
        _ => PLAIN,
    };
    extend_to(&node, 287, version);
    check(&node, Stage::Started, 144, Stage::Started);
    assert_eq!(testdummy(&node).signals.iter().filter(|signals| **signals).count(), 107);
    extend_to(&node, 288, |_| PLAIN);
    check(&node, Stage::Started, 144, Stage::Started);
    assert_eq!(testdummy(&node).signals, [false]);
}
