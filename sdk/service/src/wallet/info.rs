//! A wallet's settings and state.

pub use outrigger_values::AddressType;

/// The block up to which a wallet has followed the chain.
pub use crate::chain::Tip as Synced;
use crate::wire::wire_struct;
use crate::{ErrorKind, Result};

wire_struct! {
    /// The progress of a rescan.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct RescanProgress {
        /// Its duration so far, in seconds.
        pub duration: u64,
        /// The completed part, in millionths.
        pub millionths: u32,
    }
}

wire_struct! {
    /// The source of new addresses of one type and side: an active descriptor, or the imported keypool.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct AddressSource {
        /// The type.
        pub kind: AddressType,
        /// Whether the addresses are for change.
        pub internal: bool,
        /// Whether it has addresses to give (`CanGetAddresses` of Bitcoin Core): the wallet holds its private keys, or has derived
        /// scripts ahead.
        pub available: bool,
    }
}

wire_struct! {
    /// The wallet of the call.
    #[derive(Clone, PartialEq, Eq, Default, Debug)]
    pub struct WalletInfo {
        /// Its name.
        pub name: String,
        /// The last block that it has followed. Depths are counted from here, never from the chain's tip.
        pub synced: Synced,
        /// Whether it may hold private keys.
        pub private_keys_enabled: bool,
        /// Whether it was made without keys and has no keys of its own since. Imports do not change this.
        pub blank: bool,
        /// The flag `avoid_reuse` (createwallet, setwalletflag).
        pub avoid_reuse: bool,
        /// Whether its keys are encrypted with a passphrase.
        pub encrypted: bool,
        /// Whether it is encrypted and not unlocked.
        pub locked: bool,
        /// When it locks again, in Unix seconds; 0 if locked or not encrypted.
        pub unlocked_until: u64,
        /// The running rescan, or the one that an import has reserved.
        pub rescan: Option<RescanProgress>,
        /// The number of its transactions.
        pub transactions: u64,
        /// The number of receiving addresses of all types that are derived ahead, plus unused imported keys.
        pub keypool_external: u64,
        /// The same for change.
        pub keypool_internal: u64,
        /// The time of its oldest key, script or transaction, in seconds.
        pub birth_time: u64,
        /// Whether something was imported or created since the last backup.
        pub backup_needed: bool,
        /// The time of the last backup, in Unix seconds; 0 if there is none.
        pub last_backup: u64,
        /// How many scripts of each descriptor are kept ahead of the last one used; 0 if the host does not say.
        pub keypool: u32,
        /// The sources of new addresses: at most one of each type and side, receiving first.
        pub sources: Vec<AddressSource>,
        /// Warnings for the wallet's owner, for example that its file still contains a former key.
        pub warnings: Vec<String>,
        /// The node's tip while it lacks blocks that the wallet has followed; none otherwise.
        pub node_behind: Option<Synced>,
        /// The plugin that signs for it (`keys-provider/1`). Such a wallet holds no private keys itself.
        pub signer: Option<String>,
    }
}

impl WalletInfo {
    /// Whether the wallet, or a plugin for it, can sign payments with its keys.
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
