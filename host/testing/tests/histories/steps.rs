//! The steps of random histories. A number in a step selects one of the items that exist when the step is played, so any
//! sequence of steps is a valid history.

use proptest::prelude::*;

use super::cast::{LATE, ROLES, STRANGER};

#[derive(Clone, Copy, Debug)]
pub enum Pick {
    /// A new coin.
    Fresh,
    /// An unspent output of an earlier transaction.
    Coin(usize),
    /// An outpoint that an unconfirmed transaction spends. In the mempool the new transaction replaces the old one.
    Contested(usize),
}

#[derive(Clone, Debug)]
pub struct Make {
    pub inputs: Vec<Pick>,
    /// The paid scripts, and their shares of the inputs.
    pub outputs: Vec<(usize, u64)>,
    /// Whether the transaction signals replaceability.
    pub signals: bool,
}

#[derive(Clone, Debug)]
pub struct Plan {
    /// The waiting transactions that the block includes, as bits.
    pub take: u16,
    /// The block's other transactions, which were never in the mempool.
    pub makes: Vec<Make>,
    /// The script that the block's coinbase pays.
    pub reward: usize,
}

#[derive(Clone, Debug)]
pub enum Step {
    Pay(Make),
    Mine(Plan),
    /// This many blocks without transactions of interest arrive.
    Age(u32),
    /// The last blocks are replaced by others, or by none.
    Reorganise {
        depth: usize,
        plans: Vec<Plan>,
        /// Whether the mempool drops the transactions of these blocks.
        lost: bool,
    },
    /// The chain returns to a stale block.
    Return(usize),
    /// A transaction leaves the mempool with its descendants.
    Expire(usize),
    /// A transaction that is in no block and not in the mempool enters the mempool again.
    Again(usize),
    Abandon(usize),
    /// A client imports scripts or keys, with or without a rescan.
    Import {
        number: usize,
        rescan: bool,
    },
    /// A client labels an address.
    Label {
        role: usize,
        label: usize,
    },
    /// A client stores a text with a transaction.
    Remark {
        which: usize,
        key: usize,
        value: usize,
    },
    Tick(u64),
    Restart,
    /// The node fails: the fault starts with the block `first`, lasts for `steps`, and ends with the block `last`.
    Outage {
        fault: Fault,
        first: Plan,
        steps: Vec<Step>,
        last: Plan,
    },
    /// The node goes back to an ancestor of its tip without announcing disconnected blocks, as after a crash.
    GoBack {
        depth: usize,
        /// Whether the node announces its new tip. Otherwise the wallet must notice the change itself.
        told: bool,
        after: After,
    },
    Forget(usize),
    /// A block arrives, is replaced by others, and is forgotten before the wallet learns of it.
    ForgetUntold {
        block: Plan,
        /// Whether the mempool drops the transactions of the block.
        lost: bool,
        plans: Vec<Plan>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The node delays blocks.
    Slow,
    /// The node does not answer.
    Hanging,
    /// The node is unreachable.
    Absent,
    /// The node answers, but its new blocks are unreadable.
    Unreadable,
}

/// The blocks that arrive after the node went back.
#[derive(Clone, Debug)]
pub enum After {
    /// The same blocks.
    Again,
    /// Other blocks, or none.
    Others(Vec<Plan>),
}

/// Labels and remarks.
pub const TEXTS: [&str; 4] = ["", "rent", "a \"b\"", "mine"];
pub const REMARKS: [&str; 3] = ["comment", "to", "replaces_txid"];
/// The most steps during a fault.
pub const STEPS_DURING_FAULT: usize = 8;

fn pick() -> impl Strategy<Value = Pick> {
    prop_oneof![
        2 => Just(Pick::Fresh),
        5 => (0..64_usize).prop_map(Pick::Coin),
        2 => (0..64_usize).prop_map(Pick::Contested),
    ]
}

fn make() -> impl Strategy<Value = Make> {
    // Half of the outputs pay any script, half the wallet's first scripts.
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

fn plans(most: usize) -> impl Strategy<Value = Vec<Plan>> {
    prop::collection::vec(plan(), 0..most)
}

/// Changes of the mempool, or growth of the chain.
fn growth() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => make().prop_map(Step::Pay),
        9 => plan().prop_map(Step::Mine),
        2 => (0..64_usize).prop_map(Step::Expire),
        2 => (0..64_usize).prop_map(Step::Again),
    ]
}

/// Changes of chain and mempool.
fn change() -> impl Strategy<Value = Step> {
    prop_oneof![
        25 => growth(),
        1 => (97..102_u32).prop_map(Step::Age),
        5 => (1..5_usize, plans(6), prop::bool::weighted(0.3))
            .prop_map(|(depth, plans, lost)| Step::Reorganise { depth, plans, lost }),
        2 => (0..64_usize).prop_map(Step::Return),
    ]
}

fn label() -> impl Strategy<Value = Step> {
    (0..ROLES, 0..TEXTS.len()).prop_map(|(role, label)| Step::Label { role, label })
}

fn remark() -> impl Strategy<Value = Step> {
    (0..64_usize, 0..REMARKS.len(), 0..TEXTS.len()).prop_map(|(which, key, value)| Step::Remark { which, key, value })
}

fn tick() -> impl Strategy<Value = Step> {
    (1..2000_u64).prop_map(Step::Tick)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        33 => change(),
        3 => (0..64_usize).prop_map(Step::Abandon),
        3 => (0..LATE, prop::bool::weighted(0.7)).prop_map(|(number, rescan)| Step::Import { number, rescan }),
        1 => label(),
        1 => remark(),
        3 => tick(),
        1 => Just(Step::Restart),
    ]
}

fn go_back() -> impl Strategy<Value = Step> {
    let after = prop_oneof![Just(After::Again), plans(4).prop_map(After::Others)];
    (1..5_usize, any::<bool>(), after).prop_map(|(depth, told, after)| Step::GoBack { depth, told, after })
}

fn forget() -> impl Strategy<Value = Step> {
    (0..64_usize).prop_map(Step::Forget)
}

fn forget_untold() -> impl Strategy<Value = Step> {
    (plan(), any::<bool>(), prop::collection::vec(plan(), 1..4)).prop_map(|(block, lost, plans)| Step::ForgetUntold {
        block,
        lost,
        plans,
    })
}

/// Steps during a fault: only steps for which the model knows the effects that the wallet sees, and their order.
fn steps_during(fault: Fault) -> BoxedStrategy<Vec<Step>> {
    let step = match fault {
        Fault::Slow => prop_oneof![6 => step(), 1 => go_back(), 1 => forget_untold()].boxed(),
        Fault::Hanging => prop_oneof![12 => change(), 1 => label(), 1 => tick()].boxed(),
        Fault::Absent => {
            let node = prop_oneof![12 => change(), 2 => go_back(), 1 => forget()];
            prop_oneof![15 => node, 1 => label(), 1 => remark(), 1 => tick(), 1 => Just(Step::Restart)].boxed()
        }
        Fault::Unreadable => prop_oneof![12 => growth(), 1 => label(), 1 => tick()].boxed(),
    };
    prop::collection::vec(step, 0..=STEPS_DURING_FAULT).boxed()
}

fn outage() -> impl Strategy<Value = Step> {
    let fault = prop_oneof![1 => Just(Fault::Slow), 4 => Just(Fault::Hanging), 4 => Just(Fault::Absent), 2 => Just(Fault::Unreadable)];
    let steps = fault.prop_flat_map(|fault| (Just(fault), plan(), steps_during(fault), plan()));
    steps.prop_map(|(fault, first, steps, last)| Step::Outage { fault, first, steps, last })
}

/// At most `most` steps.
pub fn histories(most: usize) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..=most)
}

/// At most `most` steps, with faults of the node.
pub fn faulty_histories(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![12 => step(), 4 => outage(), 2 => go_back(), 1 => forget(), 1 => forget_untold()];
    prop::collection::vec(step, 1..=most)
}
