//! What `wallet/1` tells of a script: whose it is, and how it is spent.

use bitcoin::ScriptBuf;

use crate::wire::{Blob, wire_enum, wire_struct};

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
    /// A leaf of a taproot output's script tree.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct TapLeaf {
        /// Its script.
        pub script: ScriptBuf,
        /// Its control block.
        pub control_block: Blob,
    }
}

wire_struct! {
    /// What spending a taproot output takes.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct TaprootData {
        /// The internal key, x only.
        pub internal_key: [u8; 32],
        /// The root of the script tree, where there is one.
        pub merkle_root: Option<[u8; 32]>,
        /// The leaves.
        pub leaves: Vec<TapLeaf>,
    }
}

wire_struct! {
    /// What is known for spending an output, short of the keys themselves.
    #[derive(Clone, PartialEq, Eq, Default, Debug)]
    pub struct SolvingData {
        /// Redeem scripts and witness scripts.
        pub scripts: Vec<ScriptBuf>,
        /// The public keys by their hashes, 33 or 65 bytes each; those that tapscripts hash, x only (32 bytes).
        pub public_keys: Vec<Blob>,
        /// For a taproot output.
        pub taproot: Option<TaprootData>,
    }
}

wire_struct! {
    /// Where a public key comes from (BIP 32).
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct KeyOrigin {
        /// The public key.
        pub public_key: Blob,
        /// The master key's fingerprint.
        pub fingerprint: [u8; 4],
        /// The path from there, as `m/84h/1h/0h/0/5`.
        pub path: String,
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
