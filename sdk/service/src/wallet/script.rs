//! What the services of wallets tell of a script: whose it is, and how it is spent.

pub use outrigger_values::{KeyOrigin, SolvingData, TapLeaf, TaprootData};

use crate::wire::{wire_enum, wire_struct};

wire_enum! {
    /// Whose a script is. Ordered: the greater one wins where several rules apply.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum Ownership {
        /// Not ours.
        None = 0,
        /// Watched, but not spendable by this wallet's keys.
        WatchOnly = 1,
        /// Ours.
        Spendable = 2,
    }
}

wire_struct! {
    /// What the wallet knows of a script.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct ScriptInfo {
        /// Whose it is.
        pub ownership: Ownership,
        /// Whether its spending conditions are known.
        pub solvable: bool,
        /// Its label in the address book; none where it has no entry.
        pub label: Option<String>,
        /// Whether payments to it count as change.
        pub change: bool,
        /// Whether it was derived for change.
        pub internal: bool,
        /// The birth time of its key or descriptor, in seconds; 0 when unknown.
        pub timestamp: u64,
        /// The definite descriptor of this very script, with checksum; empty where unknown.
        pub descriptor: String,
        /// The descriptors of the wallet it was derived from, public and with checksum.
        pub parents: Vec<String>,
        /// For spending it.
        pub solving: SolvingData,
        /// Where its keys come from.
        pub origins: Vec<KeyOrigin>,
    }
}
