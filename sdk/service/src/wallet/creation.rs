//! How a wallet is made.

use crate::wire::{Secret, wire_struct};

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
        /// Whether the host loads it at every start; none leaves the list as it is.
        pub load_on_startup: Option<bool>,
    }
}
