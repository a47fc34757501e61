//! Rules that come into force by signals of miners (BIP 9), and those that are in force by height.
//!
//! The development chain has one deployment of signals, `testdummy`, which changes no rule: it is there so that software
//! can be tried with it. Its start lies before every block and its timeout after all of them, so it can neither wait for
//! time nor fail. Where a block stands in it follows from the block's parent, so each block in the tree keeps that.

use outrigger_service::chain::DeploymentStage;

use super::params::BLOCK_VERSION;
use super::store::rows::BlockEntry;

/// The name of the deployment.
pub const TESTDUMMY: &str = "testdummy";
/// The bit of a block's version that signals for it.
pub const TESTDUMMY_BIT: u8 = 28;
/// How many blocks make a period: the stage changes between two of them.
pub(super) const PERIOD: u32 = 144;
/// How many blocks of a period must signal.
pub(super) const THRESHOLD: u32 = 108;
/// The bits of a version that say whether the others are signals, and what they are then (BIP 9).
const TOP_MASK: u32 = 0xe000_0000;
const TOP_BITS: u32 = 0x2000_0000;

/// Where a block stands in the deployment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signals {
    /// The stage of its period.
    pub stage: DeploymentStage,
    /// The height of the first block of that stage.
    pub since: u32,
    /// How many blocks of the period up to it signal.
    count: u32,
}

impl Signals {
    /// Where the first block of a chain stands, which is old and signals nothing.
    pub const FIRST: Self = Self { stage: DeploymentStage::Defined, since: 0, count: 0 };

    /// Where a block stands that builds on this one.
    pub fn of_child(self, parent: &BlockEntry, child: &BlockEntry) -> Self {
        let (stage, since) = self.next(parent.height);
        let counted = if child.height.is_multiple_of(PERIOD) { 0 } else { self.count };
        Self { stage, since, count: counted + u32::from(signals(child)) }
    }

    /// The stage of a block on this one, which has this height, and the height of that stage's first block.
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

/// Whether a block signals for the deployment.
pub(super) fn signals(entry: &BlockEntry) -> bool {
    let version = entry.header.version.to_consensus().cast_unsigned();
    version & TOP_MASK == TOP_BITS && version & (1 << TESTDUMMY_BIT) != 0
}

/// Whether blocks of this stage should signal.
pub(super) fn is_signalled(stage: DeploymentStage) -> bool {
    matches!(stage, DeploymentStage::Started | DeploymentStage::LockedIn)
}

/// What a block of this stage has by the deployment: its version, the rules it is under, and what can be signalled, as
/// BIP 9 has them in a template.
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
