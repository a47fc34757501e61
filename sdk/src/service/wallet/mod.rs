//! `wallet/1`: the wallets, what they own, and their history.
//!
//! The functions above the line in [`Wallet`] concern the set of wallets; those below it the wallet of the call (the one
//! its URI names, or the only one loaded) and fail with [`super::ErrorKind::WalletNotLoaded`],
//! [`super::ErrorKind::NoWallet`] or [`super::ErrorKind::WalletNotSpecified`] where there is none. The first of them
//! in a call waits until the wallet has followed the chain to the tip that the call met, and opens the call's snapshot.
//!
//! What may be long comes in batches, each with the place where the next one goes on:
//!
//! ```
//! use outrigger_sdk::bitcoin::{OutPoint, ScriptBuf};
//! use outrigger_sdk::service::wallet::{Ownership, TxState, WalletCoin};
//! use outrigger_sdk::service::{ErrorKind, Scope, ServiceError};
//! use outrigger_sdk::testing::{TestHost, WalletState};
//! use outrigger_sdk::Host;
//!
//! /// The most coins that are asked for at a time.
//! const BATCH: u32 = 256;
//!
//! /// What can be spent of the coins with a label, in satoshi.
//! fn labelled(host: &Host, scope: Scope, label: &str) -> Result<u64, ServiceError> {
//!     let (mut total, mut after) = (0, None);
//!     loop {
//!         let batch = host.wallet.coins(scope, after, BATCH)?;
//!         let coins = batch.coins.iter().filter(|coin| coin.ownership == Ownership::Spendable);
//!         total += coins.filter(|coin| coin.label.as_deref() == Some(label)).map(|coin| coin.value).sum::<u64>();
//!         match batch.next {
//!             None => return Ok(total),
//!             next => after = next,
//!         }
//!     }
//! }
//!
//! let coin = |vout: u32, label: &str| WalletCoin {
//!     outpoint: OutPoint { vout, ..OutPoint::null() },
//!     value: 1000,
//!     script: ScriptBuf::new(),
//!     state: TxState::InMempool,
//!     coinbase: false,
//!     ownership: Ownership::Spendable,
//!     change: false,
//!     label: Some(label.to_owned()),
//!     trusted: true,
//!     from_us: false,
//! };
//! let test = TestHost::new();
//! assert_eq!(labelled(&test.handle(), Scope::NONE, "rent").unwrap_err().kind, ErrorKind::NoWallet);
//! let mut wallet = WalletState::empty("home");
//! wallet.coins = vec![coin(0, "rent"), coin(1, "food"), coin(2, "rent")];
//! test.wallet.set(Some(wallet));
//! assert_eq!(labelled(&test.handle(), Scope::NONE, "rent"), Ok(2000));
//! ```

mod history;
mod import;
#[cfg(test)]
mod tests;
mod write;

use bitcoin::{BlockHash, ScriptBuf, Txid};

pub use history::{
    CoinBatch, HistoryBatch, HistoryBatchView, HistoryQuery, HistoryRange, HistoryRow, HistoryRowView, Outlook,
    OutlookView, Replaceable, TxState, WalletCoin, WalletOutput, WalletOutputView, WalletTransaction,
    WalletTransactionView,
};
pub use import::{DescriptorImport, Import, ImportOutcome, KeysImport};
pub use write::HistoryWriter;

use super::service;
use crate::wire::{Blob, Encoded, Secret, wire_enum, wire_struct};

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
        /// Accepted and shown; coins are chosen as without it.
        pub avoid_reuse: bool,
        /// Which imports it takes: descriptors only, keys and scripts only, or (none) both.
        pub descriptors: Option<bool>,
        /// Whether the host loads it at every start; none leaves the list as it is.
        pub load_on_startup: Option<bool>,
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
    /// The wallet of the call.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct WalletInfo {
        /// Its name.
        pub name: String,
        /// Where it stands. Depths are counted from here, never from the chain's tip.
        pub synced: Synced,
        /// Which imports it takes.
        pub kind: WalletKind,
        /// Whether it may hold private keys.
        pub private_keys_enabled: bool,
        /// Whether it holds neither keys nor scripts.
        pub blank: bool,
        /// As given to createwallet.
        pub avoid_reuse: bool,
        /// Whether its keys are sealed with a passphrase.
        pub encrypted: bool,
        /// Whether they are sealed now: encrypted and not unlocked.
        pub locked: bool,
        /// Until when it is unlocked, in seconds; 0 when locked or not encrypted.
        pub unlocked_until: u64,
        /// The rescan that runs now.
        pub rescan: Option<RescanProgress>,
        /// The number of its transactions.
        pub transactions: u64,
        /// Scripts derived ahead for receiving.
        pub keypool_external: u64,
        /// Scripts derived ahead for change.
        pub keypool_internal: u64,
        /// The birth time of its oldest key or script, in seconds.
        pub birth_time: u64,
        /// Whether something was imported or created since the last backup.
        pub backup_needed: bool,
        /// When the last backup was made, in seconds; 0 when none was.
        pub last_backup: u64,
    }
}

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
        /// The public keys behind key hashes and in the scripts, 33 or 65 bytes each.
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

wire_struct! {
    /// A descriptor of the wallet.
    #[derive(Clone, Debug)]
    pub struct DescriptorInfo {
        /// Its text with checksum: public, or with private keys where these were asked for.
        pub text: Secret,
        /// When it was born, in seconds.
        pub timestamp: u64,
        /// Whether new addresses come from it.
        pub active: bool,
        /// Whether these are for change; none for one that is not active.
        pub internal: Option<bool>,
        /// The indexes in use: first and last, for a ranged one.
        pub range: Option<(u32, u32)>,
        /// The next index to hand out.
        pub next_index: u32,
    }
}

wire_struct! {
    /// An entry of the address book.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct LabelledScript {
        /// The address's script.
        pub script: ScriptBuf,
        /// Its label.
        pub label: String,
        /// Whose it is: of others' are those that the wallet pays to.
        pub ownership: Ownership,
    }
}

wire_struct! {
    /// Entries of the address book.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct LabelBatch {
        /// They, in no order that means anything.
        pub entries: Vec<LabelledScript>,
        /// Where the next batch goes on; none at the end.
        pub next: Option<Blob>,
    }
}

wire_enum! {
    /// The kind of an address.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum AddressType {
        /// P2PKH.
        Legacy = 0,
        /// P2WPKH in P2SH.
        P2shSegwit = 1,
        /// P2WPKH.
        Bech32 = 2,
        /// P2TR.
        Bech32m = 3,
    }
}

service! {
    /// The wallets.
    ///
    /// From [`Wallet::info`] on, the functions concern the wallet of the call: the one that its URI names, or the only one
    /// loaded. They fail with [`crate::service::ErrorKind::WalletNotLoaded`], [`crate::service::ErrorKind::NoWallet`] or
    /// [`crate::service::ErrorKind::WalletNotSpecified`] where there is none. The first of them in a call waits until the
    /// wallet has followed the chain to the tip that the call met.
    pub trait Wallet as WalletClient = "wallet/1" {
        /// Makes a wallet and loads it. Gives its warnings.
        fn create(options: CreateOptions) -> Vec<String>;
        /// Loads a wallet. Gives its warnings.
        fn load(name: String, load_on_startup: Option<bool>) -> Vec<String>;
        /// Unloads a wallet; its file stays.
        fn unload(name: String, load_on_startup: Option<bool>) -> Vec<String>;
        /// The names of the loaded wallets, in the order in which they were loaded.
        fn list() -> Vec<String>;
        /// The names of all wallets on disk.
        fn directory() -> Vec<String>;

        /// The wallet of the call.
        fn info() -> WalletInfo;
        /// What the wallet knows of these scripts, in their order; none where it knows nothing.
        fn scripts(scripts: Vec<ScriptBuf>) -> Vec<Option<ScriptInfo>>;
        /// Those of these transactions that the wallet has, in their order, in one batch.
        fn transactions(txids: Vec<Txid>) -> Encoded<HistoryBatch>;
        /// The serialisations of the wallet's transactions of these ids, in their order.
        fn raw_transactions(txids: Vec<Txid>) -> Vec<Option<Blob>>;
        /// A part of the history.
        fn history(query: HistoryQuery) -> Encoded<HistoryBatch>;
        /// The public texts of descriptors by their numbers, as they were imported and with checksum, in their order; none
        /// where the wallet has no such descriptor.
        fn descriptor_texts(numbers: Vec<u32>) -> Vec<Option<String>>;
        /// Coins, from the outpoint after `after` on.
        fn coins(after: Option<Blob>, limit: u32) -> CoinBatch;
        /// The descriptors; with private keys only when unlocked.
        fn descriptors(private: bool) -> Vec<DescriptorInfo>;
        /// A fresh address's script, entered in the address book with the label (none: for change, not entered).
        fn new_address(kind: AddressType, internal: bool, label: Option<String>) -> ScriptBuf;
        /// Sets a script's label in the address book.
        fn set_label(script: ScriptBuf, label: String) -> ();
        /// Imports all requests in one write, each with its own outcome.
        fn import(requests: Vec<Import>) -> Vec<ImportOutcome>;
        /// Reserves the wallet's one rescan, or fails with `WalletRescanning`.
        fn rescan_reserve() -> u64;
        /// Gives a reservation back unused.
        fn rescan_release(rescan: u64) -> ();
        /// Starts the reserved rescan at the first block whose running-maximum time is at least `from_time` less two
        /// hours. Its end is told by `Event::RescanFinished`.
        fn rescan_start(rescan: u64, from_time: u64) -> ();
        /// Aborts the running rescan; whether there was one.
        fn rescan_abort() -> bool;
        /// Stores a text with a transaction (`comment`, `to`).
        fn set_metadata(txid: Txid, key: String, value: String) -> ();
        /// Gives up a transaction that is neither in the chain nor in the mempool.
        fn abandon(txid: Txid) -> ();
        /// Seals the wallet's keys with a passphrase and locks it.
        fn encrypt(passphrase: Secret) -> ();
        /// Unlocks an encrypted wallet for a time, in seconds.
        fn unlock(passphrase: Secret, seconds: u64) -> ();
        /// Locks it now.
        fn lock() -> ();
        /// Changes the passphrase.
        fn change_passphrase(old: Secret, new: Secret) -> ();
        /// The address book, from the place `after` on.
        #[since(1)]
        fn labels(after: Option<Blob>, limit: u32) -> LabelBatch;
        /// Derives scripts until `size` lie ahead of the next index of each active descriptor; none: as many as the host
        /// keeps ahead.
        #[since(1)]
        fn refill_keypool(size: Option<u32>) -> ();
        /// Sets whether the wallet avoids reused addresses.
        #[since(1)]
        fn set_avoid_reuse(avoid: bool) -> ();
        /// Writes a copy of the wallet as it is now to a file, which `restore` opens. A file that is there is replaced.
        #[since(1)]
        fn backup(file: String) -> ();
        /// Makes a wallet of a name from the file of a backup and loads it. Gives its warnings.
        #[since(1)]
        fn restore(name: String, file: String, load_on_startup: Option<bool>) -> Vec<String>;
    }
}
