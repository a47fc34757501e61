//! `wallet-admin/1`.

#[cfg(doc)]
use super::WalletImport;
use super::{DescriptorImport, ImportOutcome};
use crate::service;
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
        /// Whether balances and lists show coins of reused addresses apart. By default sendtoaddress then leaves these coins out, and
        /// spends all coins of one script together. Other payments ignore the flag.
        pub avoid_reuse: bool,
        /// Whether the host loads it at every start; none leaves the list as it is.
        pub load_on_startup: Option<bool>,
        /// Whether the plugin of the host's setting `wallet.signer` has its keys (`keys-provider/1`). It never holds a private key itself.
        #[since(1)]
        pub external_signer: bool,
    }
}

service! {
    /// Makes, loads, encrypts, unlocks, backs up and restores wallets. A backup has the private keys.
    pub trait WalletAdmin as WalletAdminClient = "wallet-admin/1" {
        /// Makes and loads a wallet, and returns its warnings. The wallet starts at the tip; only a rescan finds earlier payments. A
        /// wallet with keys that is not blank gets a random master key. From the key it derives active descriptors of each address
        /// type (BIP 44, 49, 84, 86), for receiving and for change, with the node's time as their birth.
        ///
        /// `WalletExists` if a wallet of this name is on disk; `Refused` for a name that is no plain path, for a passphrase without
        /// private keys, and for an external signer with private keys or without the setting. A failed call leaves no files.
        fn create(options: CreateOptions) -> Vec<String>;
        /// Loads a wallet as the last of the loaded ones, locked if it is encrypted. It follows the chain from where it
        /// stood, and takes over the whole mempool. Gives its warnings.
        ///
        /// `WalletAlreadyLoaded`; `WalletNotLoaded` when there is no such wallet, with the reason; `Refused` for a bad name.
        fn load(name: String, load_on_startup: Option<bool>) -> Vec<String>;
        /// Unloads a wallet; its file stays, with everything that was written. Gives its warnings.
        ///
        /// `WalletNotLoaded`; `WalletRescanning` while a rescan is reserved or runs.
        fn unload(name: String, load_on_startup: Option<bool>) -> Vec<String>;
        /// The names of all wallets on disk, sorted by their bytes.
        fn directory() -> Vec<String>;
        /// Makes a wallet of a name from the file of a backup and loads it, as `load` does. Gives its warnings. `NotFound`
        /// when there is no such file; `WalletExists`; `WalletNotLoaded` when it is no backup; `Refused` for a bad name.
        fn restore(name: String, file: String, load_on_startup: Option<bool>) -> Vec<String>;
        /// Writes a copy of the wallet as it is now to a file, which `restore` opens. Only a backup there is replaced. The
        /// wallet itself then needs no backup until the next import. `Refused` when the file cannot be written.
        fn backup(file: String) -> ();
        /// Writes a copy of the wallet without its private keys to a new file, which `restore` opens. `Refused` when the file exists
        /// or cannot be written, or the wallet has nothing to watch.
        fn export_watch_only(file: String) -> ();
        /// Sets whether the wallet avoids reused addresses.
        fn set_avoid_reuse(avoid: bool) -> ();
        /// Imports descriptors of the wallet's own keys as `import` does; where it stored one, a wallet that was made blank is blank no
        /// more.
        fn add_own_descriptors(descriptors: Vec<DescriptorImport>) -> Vec<ImportOutcome>;
        /// Seals the wallet's keys with a passphrase and locks it. Unless it was made blank, a fresh master key gives the active
        /// descriptors of each address type from then on; the former ones, imported ones included, stay as inactive ones. `WrongEncryptionState` when it is
        /// encrypted; `Refused` when it may not hold private keys.
        fn encrypt(passphrase: Secret) -> ();
        /// Unlocks an encrypted wallet for this many seconds, at most 100,000,000. [`super::WalletInfo::unlocked_until`] is a time of
        /// the node's clock. `WrongEncryptionState` for a wallet that is not encrypted; `PassphraseIncorrect`, which changes nothing.
        fn unlock(passphrase: Secret, seconds: u64) -> ();
        /// Locks it now; nothing where it is locked. `WrongEncryptionState` when it is not encrypted.
        fn lock() -> ();
        /// Changes the passphrase, and leaves it locked or unlocked. `WrongEncryptionState` when it is not encrypted;
        /// `PassphraseIncorrect`, which locks it.
        fn change_passphrase(old: Secret, new: Secret) -> ();
    }
}
