//! How a wallet is made, and what becomes of one of keys and scripts.

use crate::wire::{Secret, wire_enum, wire_struct};

wire_struct! {
    /// How a wallet is made (createwallet).
    #[derive(Clone, Debug)]
    pub struct CreateOptions {
        /// Its name, also of its folder.
        pub name: String,
        /// It will never hold a private key.
        pub disable_private_keys: bool,
        /// It begins without keys of its own.
        pub blank: bool,
        /// It is encrypted from the start with this passphrase, where it is not empty.
        pub passphrase: Secret,
        /// Balances and lists tell apart coins of scripts that were spent from before. sendtoaddress leaves these coins and spends the
        /// coins of a script together, unless it is told otherwise; other payments choose as without it.
        pub avoid_reuse: bool,
        /// Which imports it takes: descriptors only, keys and scripts only, or (none) both.
        pub descriptors: Option<bool>,
        /// Whether the host loads it at every start; none leaves the list as it is.
        pub load_on_startup: Option<bool>,
    }
}

wire_struct! {
    /// What became of a wallet of keys and scripts (migratewallet).
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Migration {
        /// Its name, as before.
        pub wallet: String,
        /// The wallet of what it watched without private keys, where there was any.
        pub watch_only: Option<String>,
        /// The wallet of what it could help to spend and did not watch, where there was any.
        pub solvables: Option<String>,
        /// The file with a copy of it as it was.
        pub backup: String,
    }
}

wire_enum! {
    /// Which imports a wallet takes.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum WalletKind {
        /// Both.
        Both = 0,
        /// importdescriptors only.
        Descriptors = 1,
        /// importmulti only.
        Legacy = 2,
    }
}
