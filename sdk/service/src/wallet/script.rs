//! The ownership of a script and its solving data.

pub use outrigger_values::{KeyOrigin, SolvingData, TapLeaf, TaprootData};

use crate::wire::{wire_enum, wire_struct};

wire_enum! {
    /// The ownership of a script. Ordered: if several rules apply, the greater one wins.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum Ownership {
        /// Not the wallet's.
        None = 0,
        /// Watched, but not spendable by this wallet's keys.
        WatchOnly = 1,
        /// The wallet's own.
        Spendable = 2,
    }
}

wire_struct! {
    /// The wallet's knowledge of a script.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct ScriptInfo {
        /// Its ownership.
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
        /// The definite descriptor of this script, with checksum; empty where unknown.
        pub descriptor: String,
        /// The wallet's descriptors that derive it, public and with checksum.
        pub parents: Vec<String>,
        /// The data for spending it.
        pub solving: SolvingData,
        /// The origins of its keys.
        pub origins: Vec<KeyOrigin>,
    }
}
