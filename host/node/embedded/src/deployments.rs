//! BIP 9 deployments.
//!
//! The development chain has one, `testdummy`, which changes no rule and exists for tests. Its start time precedes every
//! block and it never times out, so only signals change its state. A block's state follows from its parent's, so the tree
//! keeps a state for each block.

use outrigger_service::chain::DeploymentStage;

use super::params::BLOCK_VERSION;
use super::store::rows::BlockEntry;

pub const TESTDUMMY: &str = "testdummy";
pub const TESTDUMMY_BIT: u8 = 28;
/// The number of blocks in a period. The stage changes between periods only.
pub(super) const PERIOD: u32 = 144;
/// The number of signalling blocks in a period that locks the deployment in.
pub(super) const THRESHOLD: u32 = 108;
/// The top bits of a version, and their value if the other bits are signals (BIP 9).
const TOP_MASK: u32 = 0xe000_0000;
const TOP_BITS: u32 = 0x2000_0000;

/// A block's state in the deployment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signals {
    pub stage: DeploymentStage,
    /// The height of the first block of that stage.
    pub since: u32,
    /// How many blocks of the period signal, up to and including this one.
    count: u32,
}

impl Signals {
    /// The state of the genesis block, which signals nothing.
    pub const FIRST: Self = Self { stage: DeploymentStage::Defined, since: 0, count: 0 };

    pub fn of_child(self, parent: &BlockEntry, child: &BlockEntry) -> Self {
        let (stage, since) = self.next(parent.height);
        let counted = if child.height.is_multiple_of(PERIOD) { 0 } else { self.count };
        Self { stage, since, count: counted + u32::from(signals(child)) }
    }

    /// The stage of a child of this block at `height`, and the height of that stage's first block.
    pub fn next(self, height: u32) -> (DeploymentStage, u32) {
        use DeploymentStage as Stage;
        let first = height.saturating_add(1);
        if !first.is_multiple_of(PERIOD) {
            return (self.stage, self.since);
        }
        match self.stage {
            Stage::Defined => (Stage::Started, first),
            Stage::Started if self.count >= THRESHOLD => (Stage::LockedIn, first),
            Stage::LockedIn => (Stage::Active, first),
            stage @ (Stage::Started | Stage::Active | Stage::Failed) => (stage, self.since),
        }
    }
}

pub(super) fn signals(entry: &BlockEntry) -> bool {
    let version = entry.header.version.to_consensus().cast_unsigned();
    version & TOP_MASK == TOP_BITS && version & (1 << TESTDUMMY_BIT) != 0
}

/// Whether miners should signal in this stage.
pub(super) fn is_signalled(stage: DeploymentStage) -> bool {
    matches!(stage, DeploymentStage::Started | DeploymentStage::LockedIn)
}

/// The version, rules and available deployments of a block template in this stage (BIP 9).
pub fn template(stage: DeploymentStage) -> (i32, Vec<String>, Vec<(String, u8)>) {
    let mut rules = vec!["csv", "!segwit"];
    if stage == DeploymentStage::Active {
        rules.push(TESTDUMMY);
    }
    rules.push("taproot");
    let rules = rules.into_iter().map(str::to_owned).collect();
    match is_signalled(stage) {
        true => (BLOCK_VERSION | 1 << TESTDUMMY_BIT, rules, vec![(TESTDUMMY.to_owned(), TESTDUMMY_BIT)]),
        false => (BLOCK_VERSION, rules, Vec::new()),
    }
}
