//! What a wallet is and where it stands.

use bitcoin::BlockHash;
pub use outrigger_values::AddressType;

use crate::wire::wire_struct;
use crate::{ErrorKind, Result};

wire_struct! {
    /// How far a rescan has come.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct RescanProgress {
        /// How long it has run, in seconds.
        pub duration: u64,
        /// The part that is done, in millionths.
        pub millionths: u32,
    }
}

wire_struct! {
    /// The block up to which a wallet has followed the chain.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Synced {
        /// Its hash.
        pub hash: BlockHash,
        /// Its height.
        pub height: u32,
        /// Its time, in seconds.
        pub time: u32,
        /// The median time of it and its ten predecessors, in seconds.
        pub median_time: u32,
    }
}

wire_struct! {
    /// Where new addresses of one type and side come from: an active descriptor, or the imported keypool.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct AddressSource {
        /// The type.
        pub kind: AddressType,
        /// Whether the addresses are for change.
        pub internal: bool,
        /// Whether it has addresses to give (`CanGetAddresses` of Bitcoin Core): its private keys are held, or scripts are
        /// derived ahead.
        pub available: bool,
    }
}

wire_struct! {
    /// The wallet of the call.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct WalletInfo {
        /// Its name.
        pub name: String,
        /// Where it stands. Depths are counted from here, never from the chain's tip.
        pub synced: Synced,
        /// Whether it may hold private keys.
        pub private_keys_enabled: bool,
        /// Whether it was made without keys of its own, and has got none since. Imports leave it as it is.
        pub blank: bool,
        /// As given to createwallet.
        pub avoid_reuse: bool,
        /// Whether its keys are sealed with a passphrase.
        pub encrypted: bool,
        /// Whether they are sealed now: encrypted and not unlocked.
        pub locked: bool,
        /// Until when it is unlocked, in seconds; 0 when locked or not encrypted.
        pub unlocked_until: u64,
        /// The rescan that runs now, or is reserved by the import that it follows.
        pub rescan: Option<RescanProgress>,
        /// The number of its transactions.
        pub transactions: u64,
        /// Addresses of all types that lie ahead for receiving, and imported keys that wait to give one.
        pub keypool_external: u64,
        /// The same for change.
        pub keypool_internal: u64,
        /// The time of its oldest key, script or transaction, in seconds.
        pub birth_time: u64,
        /// Whether something was imported or created since the last backup.
        pub backup_needed: bool,
        /// When the last backup was made, in seconds; 0 when none was.
        pub last_backup: u64,
        /// How many scripts of each descriptor are kept ahead of the last one used; 0 where the host does not say.
        #[since(1)]
        pub keypool: u32,
        /// Where new addresses come from: at most one source of each type and side, receiving first.
        #[since(1)]
        pub sources: Vec<AddressSource>,
        /// What the wallet's owner should know, for people: that a former key is still to be overwritten in its file.
        #[since(1)]
        pub warnings: Vec<String>,
        /// Where the node stands while it lacks blocks that the wallet has followed; none otherwise.
        #[since(1)]
        pub node_behind: Option<Synced>,
        /// The plugin that signs for it (`keys-provider/1`). Such a wallet holds no private keys itself.
        #[since(1)]
        pub signer: Option<String>,
    }
}

impl WalletInfo {
    /// Whether payments can be signed with its keys, which the wallet holds, or a plugin for it.
    pub fn signs(&self) -> bool {
        self.private_keys_enabled || self.signer.is_some()
    }

    /// Refuses if the wallet is locked.
    ///
    /// # Errors
    /// [`ErrorKind::WalletLocked`], code -13.
    pub fn check_unlocked(&self) -> Result<()> {
        if self.locked { Err(ErrorKind::WalletLocked.into()) } else { Ok(()) }
    }
}
