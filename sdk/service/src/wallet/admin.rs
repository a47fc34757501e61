//! `wallet-admin/1`.

#[cfg(doc)]
use super::WalletImport;
use super::{DescriptorImport, ImportOutcome};
use crate::service;
use crate::wire::{Secret, wire_struct};

wire_struct! {
    /// The options of a new wallet (createwallet).
    #[derive(Clone, Default, Debug)]
    pub struct CreateOptions {
        /// The name of the wallet and of its folder.
        pub name: String,
        /// Whether the wallet can never hold a private key.
        pub disable_private_keys: bool,
        /// Whether the wallet starts without keys.
        pub blank: bool,
        /// The passphrase that encrypts the wallet from the start; empty for a wallet without encryption.
        pub passphrase: Secret,
        /// Whether balances and lists show coins of reused addresses separately. By default sendtoaddress then leaves these coins out,
        /// and spends all coins of one script together. Other payments ignore the flag.
        pub avoid_reuse: bool,
        /// Whether the host loads the wallet at every start; none leaves the startup list unchanged.
        pub load_on_startup: Option<bool>,
        /// Whether the plugin in the host's setting `wallet.signer` has the keys (`keys-provider/1`). The wallet itself never holds a
        /// private key then.
        pub external_signer: bool,
    }
}

service! {
    /// Makes, loads, encrypts, unlocks, backs up and restores wallets. A backup contains the private keys.
    pub trait WalletAdmin = "wallet-admin/1" {
        /// Makes and loads a wallet, and returns its warnings. The wallet starts at the tip; only a rescan finds earlier payments. A
        /// wallet with keys that is not blank gets a random master key. It derives active descriptors of each address type (BIP 44, 49,
        /// 84, 86) from the key, for receiving and for change. Their birth time is the node's time.
        ///
        /// `WalletExists` if a wallet of this name is on disk; `Refused` for a name that is not a plain path, for a passphrase without
        /// private keys, and for an external signer with private keys or without the setting. A failed call leaves no files.
        fn create(options: CreateOptions) -> Vec<String>;
        /// Loads a wallet, last in the order of loaded wallets, and locked if it is encrypted. The wallet follows the chain from its last
        /// block, and takes over the whole mempool. Returns the wallet's warnings.
        ///
        /// `WalletAlreadyLoaded`; `WalletNotLoaded`, with the reason, if there is no such wallet; `Refused` for a bad name.
        fn load(name: String, load_on_startup: Option<bool>) -> Vec<String>;
        /// Unloads a wallet and returns its warnings. Its file keeps everything that was written.
        ///
        /// `WalletNotLoaded`, unless the host could not load the wallet at its start and `load_on_startup` is false: then the host only
        /// takes it off the list of wallets to load; `WalletRescanning` while a rescan is reserved or running.
        fn unload(name: String, load_on_startup: Option<bool>) -> Vec<String>;
        /// The names of all wallets on disk, sorted by their bytes.
        fn directory() -> Vec<String>;
        /// Makes a wallet of this name from a backup file, and loads it as `load` does. Returns its warnings. `NotFound` if there is no
        /// such file; `WalletExists`; `WalletNotLoaded` if the file is not a backup; `Refused` for a bad name.
        fn restore(name: String, file: String, load_on_startup: Option<bool>) -> Vec<String>;
        /// Writes a copy of the wallet to a file for `restore`. It replaces an existing file only if that is a backup. The wallet then
        /// needs no backup until the next import. `Refused` if the host cannot write the file.
        fn backup(file: String) -> ();
        /// Writes a copy of the wallet without its private keys to a new file for `restore`. `Refused` if the file exists, the host
        /// cannot write it, or the wallet has nothing to watch.
        fn export_watch_only(file: String) -> ();
        /// Sets whether the wallet avoids reused addresses.
        fn set_avoid_reuse(avoid: bool) -> ();
        /// Imports descriptors of the wallet's own keys as `import` does. A blank wallet is no longer blank once it stores one.
        fn add_own_descriptors(descriptors: Vec<DescriptorImport>) -> Vec<ImportOutcome>;
        /// Encrypts the wallet's keys with a passphrase and locks the wallet. Unless the wallet was made blank, a new master key replaces
        /// the active descriptors of each address type; the earlier descriptors, imported ones included, become inactive.
        /// `WrongEncryptionState` if it is encrypted already; `Refused` if it may not hold private keys.
        fn encrypt(passphrase: Secret) -> ();
        /// Unlocks an encrypted wallet for this many seconds, at most 100,000,000. [`super::WalletInfo::unlocked_until`] is by the node's
        /// clock. `WrongEncryptionState` if it is not encrypted; `PassphraseIncorrect`, which changes nothing.
        fn unlock(passphrase: Secret, seconds: u64) -> ();
        /// Locks the wallet now; does nothing if it is locked. `WrongEncryptionState` if it is not encrypted.
        fn lock() -> ();
        /// Changes the passphrase; the wallet stays locked or unlocked. `WrongEncryptionState` if it is not encrypted;
        /// `PassphraseIncorrect`, which locks the wallet.
        fn change_passphrase(old: Secret, new: Secret) -> ();
    }
}
