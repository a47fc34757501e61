//! The consensus deployments, as `getdeploymentinfo` reports them.

use bitcoin::BlockHash;
use outrigger_service::chain::{Deployment, DeploymentRule, DeploymentStage, SignalledDeployment};

use super::deployments::{PERIOD, TESTDUMMY, TESTDUMMY_BIT, THRESHOLD, is_signalled, signals};
use super::tree::Tree;
use super::{EmbeddedError, EmbeddedNode};

/// bitcoind's start time of a deployment that is always active.
const ALWAYS_ACTIVE: i64 = -1;
/// bitcoind's timeout of a deployment that never times out.
const NO_TIMEOUT: i64 = i64::MAX;
/// Taproot's version bit, and the activation heights of the buried deployments.
const TAPROOT_BIT: u8 = 2;
const BURIED: [(&str, u32); 5] = [("bip34", 1), ("bip66", 1), ("bip65", 1), ("csv", 1), ("segwit", 0)];

impl EmbeddedNode {
    /// The deployments as of a block on any branch, in bitcoind's order; `None` if the block is unknown.
    pub fn deployments(&self, hash: BlockHash) -> Result<Option<Vec<Deployment>>, EmbeddedError> {
        let chain = self.lock_chain()?;
        let Some(testdummy) = testdummy(&chain.tree, hash) else { return Ok(None) };
        drop(chain);
        let buried = BURIED.map(|(name, height)| (name, DeploymentRule::Buried { height }));
        let signalled = [(TESTDUMMY, testdummy), ("taproot", always_active(TAPROOT_BIT))]
            .map(|(name, progress)| (name, DeploymentRule::Signalled { progress }));
        let all = buried.into_iter().chain(signalled);
        Ok(Some(all.map(|(name, rule)| Deployment { name: name.to_owned(), rule }).collect()))
    }
}

fn testdummy(tree: &Tree, hash: BlockHash) -> Option<SignalledDeployment> {
    let (entry, own) = (tree.get(&hash)?, tree.signals(&hash)?);
    let (next_stage, next_since) = own.next(entry.height);
    let mut seen = Vec::new();
    if is_signalled(own.stage) {
        let before = (entry.height % PERIOD) as usize;
        seen.push(signals(entry));
        seen.extend(tree.ancestors(&hash).take(before).map(|(_, entry)| signals(entry)));
        seen.reverse();
    }
    Some(SignalledDeployment {
        start_time: 0,
        stage: own.stage,
        since: own.since,
        next_stage,
        next_since,
        signals: seen,
        ..always_active(TESTDUMMY_BIT)
    })
}

/// A deployment that is active from the first block. Bitcoin Core 29 reports taproot as such a signalled deployment on regtest.
fn always_active(bit: u8) -> SignalledDeployment {
    SignalledDeployment {
        bit,
        start_time: ALWAYS_ACTIVE,
        timeout: NO_TIMEOUT,
        min_activation_height: 0,
        stage: DeploymentStage::Active,
        since: 0,
        next_stage: DeploymentStage::Active,
        next_since: 0,
        period: PERIOD,
        threshold: THRESHOLD,
        signals: Vec::new(),
    }
}
