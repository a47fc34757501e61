//! What happens in a random history. The numbers choose among what there is when a step is played, so that any sequence
//! of steps is a history.

use proptest::prelude::*;

use super::cast::{LATE, ROLES, STRANGER};

/// An input of a transaction.
#[derive(Clone, Copy, Debug)]
pub enum Pick {
    /// A coin that nobody here knew of.
    Fresh,
    /// An unspent output of a transaction that was made before.
    Coin(usize),
    /// What an unconfirmed transaction spends: in the mempool, the new one takes the old one's place.
    Contested(usize),
}

/// A transaction.
#[derive(Clone, Debug)]
pub struct Make {
    pub inputs: Vec<Pick>,
    /// The scripts that it pays to, and their shares of what there is.
    pub outputs: Vec<(usize, u64)>,
    /// Whether it says that it may be replaced.
    pub signals: bool,
}

/// A block.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which transactions that wait for a block it has.
    pub take: u16,
    /// What it has besides, that nobody saw before.
    pub makes: Vec<Make>,
    /// The script that its coinbase pays to.
    pub reward: usize,
}

/// Something that happens.
#[derive(Clone, Debug)]
pub enum Step {
    /// A transaction comes to the mempool.
    Pay(Make),
    /// A block comes.
    Mine(Plan),
    /// Many blocks come, with nothing of interest in them.
    Age(u32),
    /// The last blocks give way to others, or to none.
    Reorganise {
        depth: usize,
        plans: Vec<Plan>,
        /// The mempool does not take back what was in the blocks.
        lost: bool,
    },
    /// The chain goes back to a block that it left.
    Return(usize),
    /// A transaction leaves the mempool, with what builds on it.
    Expire(usize),
    /// One that is nowhere comes to the mempool again.
    Again(usize),
    /// A client gives a transaction up.
    Abandon(usize),
    /// A client imports something, and perhaps has the chain read again.
    Import { number: usize, rescan: bool },
    /// A client labels an address.
    Label { role: usize, label: usize },
    /// A client stores a text with a transaction.
    Remark { which: usize, key: usize, value: usize },
    /// Time passes, in seconds.
    Tick(u64),
    /// The host is stopped and started.
    Restart,
}

/// The texts that labels and remarks are chosen from.
pub const TEXTS: [&str; 4] = ["", "rent", "a \"b\"", "mine"];
/// The keys of remarks.
pub const REMARKS: [&str; 3] = ["comment", "to", "replaces_txid"];

fn pick() -> impl Strategy<Value = Pick> {
    prop_oneof![
        2 => Just(Pick::Fresh),
        5 => (0..64_usize).prop_map(Pick::Coin),
        2 => (0..64_usize).prop_map(Pick::Contested),
    ]
}

fn make() -> impl Strategy<Value = Make> {
    // Half of what is paid goes to anyone at all, half to what is the wallet's from the beginning.
    let role = prop_oneof![0..ROLES, 0..3_usize, Just(STRANGER)];
    (prop::collection::vec(pick(), 1..3), prop::collection::vec((role, 1..5_u64), 1..4), prop::bool::weighted(0.3))
        .prop_map(|(inputs, outputs, signals)| Make { inputs, outputs, signals })
}

fn plan() -> impl Strategy<Value = Plan> {
    (any::<u16>(), prop::collection::vec(make(), 0..3), 0..ROLES - 1).prop_map(|(take, makes, reward)| Plan {
        take,
        makes,
        reward,
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => make().prop_map(Step::Pay),
        9 => plan().prop_map(Step::Mine),
        1 => (97..102_u32).prop_map(Step::Age),
        5 => (1..5_usize, prop::collection::vec(plan(), 0..6), prop::bool::weighted(0.3))
            .prop_map(|(depth, plans, lost)| Step::Reorganise { depth, plans, lost }),
        2 => (0..64_usize).prop_map(Step::Return),
        2 => (0..64_usize).prop_map(Step::Expire),
        2 => (0..64_usize).prop_map(Step::Again),
        3 => (0..64_usize).prop_map(Step::Abandon),
        3 => (0..LATE, prop::bool::weighted(0.7)).prop_map(|(number, rescan)| Step::Import { number, rescan }),
        1 => (0..ROLES, 0..TEXTS.len()).prop_map(|(role, label)| Step::Label { role, label }),
        1 => (0..64_usize, 0..REMARKS.len(), 0..TEXTS.len())
            .prop_map(|(which, key, value)| Step::Remark { which, key, value }),
        3 => (1..2000_u64).prop_map(Step::Tick),
        1 => Just(Step::Restart),
    ]
}

/// Histories of at most so many steps.
pub fn histories(most: usize) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..=most)
}
