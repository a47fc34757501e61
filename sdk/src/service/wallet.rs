//! `wallet/1`: the wallets, what they own, and their history.
//!
//! The functions above the line in [`Wallet`] concern the set of wallets; those below it the wallet of the call (the one
//! its URI names, or the only one loaded) and fail with [`super::ErrorKind::WalletNotLoaded`],
//! [`super::ErrorKind::NoWallet`] or [`super::ErrorKind::WalletNotSpecified`] where there is none. The first of them
//! in a call waits until the wallet has followed the chain to the tip that the call met, and opens the call's snapshot.

use bitcoin::{BlockHash, OutPoint, ScriptBuf, Txid, Wtxid};

use super::service;
use crate::wire::{Blob, Secret, wire_enum, wire_struct};

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

wire_enum! {
    /// Where a wallet's transaction stands.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum TxState {
        /// In the best chain.
        Confirmed {
            /// The block.
            block: BlockHash,
            /// The block's height.
            height: u32,
            /// The position in the block.
            index: u32,
            /// The block's time, in seconds.
            time: u32,
        } = 0,
        /// In the mempool.
        InMempool = 1,
        /// Neither, though nothing speaks against it.
        Inactive = 2,
        /// Neither, and given up: its inputs may be spent again.
        Abandoned = 3,
        /// Made impossible by another transaction in a block.
        Conflicted {
            /// The block of the other.
            block: BlockHash,
            /// Its height.
            height: u32,
        } = 4,
    }
}

wire_enum! {
    /// Whether a transaction can be replaced (BIP 125).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Replaceable {
        /// It cannot, or is confirmed.
        No = 0,
        /// It, or an unconfirmed ancestor, signals it.
        Yes = 1,
        /// It is not in the mempool, so its ancestors are not known.
        Unknown = 2,
    }
}

wire_struct! {
    /// An output of a wallet's transaction.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct WalletOutput {
        /// Its value, in satoshi.
        pub value: u64,
        /// Its script.
        pub script: ScriptBuf,
        /// Whose it is.
        pub ownership: Ownership,
        /// Whether it is change: ours, and without an entry in the address book.
        pub change: bool,
        /// The label of its address; none where it has no entry in the address book.
        pub label: Option<String>,
        /// The descriptors of the wallet it was derived from, public and with checksum.
        pub parents: Vec<String>,
    }
}

wire_struct! {
    /// A transaction as the wallet knows it. Ownership, debit and labels are those of now: imports re-derive them.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct WalletTransaction {
        /// Its id.
        pub txid: Txid,
        /// Its id with witness.
        pub wtxid: Wtxid,
        /// Where it stands.
        pub state: TxState,
        /// Its number in the order in which the wallet met its transactions.
        pub arrival: u64,
        /// Its smart time, in seconds.
        pub time: u64,
        /// When the wallet met it, in seconds.
        pub time_received: u64,
        /// Whether it is a coinbase.
        pub coinbase: bool,
        /// The sum of all its outputs, in satoshi.
        pub total_output: u64,
        /// What it spends of ours that is spendable, in satoshi.
        pub debit_spendable: u64,
        /// What it spends of ours that is watched, in satoshi.
        pub debit_watch_only: u64,
        /// All its outputs.
        pub outputs: Vec<WalletOutput>,
        /// Other transactions of the wallet that spend one of its inputs, by internal bytes.
        pub conflicts: Vec<Txid>,
        /// Transactions of the mempool that spend one of its inputs, by internal bytes.
        pub mempool_conflicts: Vec<Txid>,
        /// What was stored with it (`comment`, `to`, ...), by key.
        pub metadata: Vec<(String, String)>,
        /// Whether its unconfirmed outputs may be relied on; meaningful while it is unconfirmed.
        pub trusted: bool,
        /// Whether it can be replaced.
        pub replaceable: Replaceable,
    }
}

wire_enum! {
    /// Which transactions, and in which order.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum HistoryRange {
        /// Those in the best chain from a height on, by height and position.
        Confirmed {
            /// The first height.
            from_height: u32,
        } = 0,
        /// Those in the mempool, inactive or abandoned, by arrival.
        Unconfirmed = 1,
        /// Those whose conflict confirmed at a height or above, by that height, then arrival.
        Conflicted {
            /// The first height.
            from_height: u32,
        } = 2,
        /// All, by arrival.
        All = 3,
    }
}

wire_struct! {
    /// A question for a part of the history.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct HistoryQuery {
        /// Which transactions.
        pub range: HistoryRange,
        /// From the end backwards.
        pub reverse: bool,
        /// Where the last batch ended; none for the first.
        pub after: Option<Blob>,
        /// The most to give; the host may give fewer.
        pub limit: u32,
    }
}

wire_struct! {
    /// A part of the history.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct HistoryBatch {
        /// The transactions.
        pub transactions: Vec<WalletTransaction>,
        /// Where to go on; none when this was the end.
        pub next: Option<Blob>,
    }
}

wire_struct! {
    /// An output of ours that nothing in the chain, the mempool or the wallet spends.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct WalletCoin {
        /// Which.
        pub outpoint: OutPoint,
        /// Its value, in satoshi.
        pub value: u64,
        /// Its script.
        pub script: ScriptBuf,
        /// Where its transaction stands: confirmed, in the mempool or inactive.
        pub state: TxState,
        /// Whether its transaction is a coinbase.
        pub coinbase: bool,
        /// Whose it is.
        pub ownership: Ownership,
        /// Whether it is change.
        pub change: bool,
        /// The label of its address.
        pub label: Option<String>,
        /// Whether its transaction is confirmed or trusted.
        pub trusted: bool,
        /// Whether the wallet spent something of its own in its transaction.
        pub from_us: bool,
    }
}

wire_struct! {
    /// A part of the coins.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct CoinBatch {
        /// The coins, by outpoint.
        pub coins: Vec<WalletCoin>,
        /// Where to go on; none when this was the end.
        pub next: Option<Blob>,
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

wire_struct! {
    /// A descriptor to import. Its text has been parsed and its checksum checked; ranges are inclusive.
    #[derive(Clone, Debug)]
    pub struct DescriptorImport {
        /// The text, possibly with private keys.
        pub text: Secret,
        /// The indexes to import; none for one without a wildcard.
        pub range: Option<(u32, u32)>,
        /// The next index to hand out; none for the range's beginning.
        pub next_index: Option<u32>,
        /// Whether new addresses of its type come from it.
        pub active: bool,
        /// Whether they are for change; none where the request did not say.
        pub internal: Option<bool>,
        /// The label of its address; none where the request did not say.
        pub label: Option<String>,
        /// When it was born, in seconds.
        pub timestamp: u64,
    }
}

wire_struct! {
    /// Keys and scripts to import (importmulti), after their analysis.
    #[derive(Clone, Debug)]
    pub struct KeysImport {
        /// The scriptPubKeys that the request is about, shortest first, then by bytes.
        pub script_pubkeys: Vec<ScriptBuf>,
        /// Redeem scripts and witness scripts to know.
        pub scripts: Vec<ScriptBuf>,
        /// Private keys, as WIF.
        pub private_keys: Vec<Secret>,
        /// Public keys to know, in the order of the request.
        pub public_keys: Vec<Blob>,
        /// Where keys come from.
        pub origins: Vec<KeyOrigin>,
        /// Whether the request says how to spend (a script, a key, or a descriptor with keys).
        pub solving_data: bool,
        /// Payments are change: no entry in the address book.
        pub internal: bool,
        /// The label of the addresses.
        pub label: String,
        /// Whether new public keys join the keypool.
        pub keypool: bool,
        /// When the keys were born, in seconds, at least 1.
        pub timestamp: u64,
    }
}

wire_enum! {
    /// One request of an import.
    #[derive(Clone, Debug)]
    pub enum Import {
        /// A descriptor (importdescriptors).
        Descriptor {
            /// It.
            descriptor: DescriptorImport,
        } = 0,
        /// Keys and scripts (importmulti).
        Keys {
            /// They.
            keys: KeysImport,
        } = 1,
    }
}

wire_enum! {
    /// What became of one request of an import.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum ImportOutcome {
        /// Stored.
        Imported {
            /// The wallet may hold private keys, and not all of the descriptor's were given.
            missing_private_keys: bool,
            /// It cannot be active: it has no address type.
            unknown_output_type: bool,
        } = 0,
        /// The wallet may not hold private keys, and some were given.
        PrivateKeysDisabled = 1,
        /// The wallet owns a script of it already.
        AlreadyOwned {
            /// The script.
            script: ScriptBuf,
        } = 2,
        /// Index 0 cannot be derived: a hardened step without the private key.
        NotExpandable = 3,
        /// The wallet holds private keys, and none was given.
        NoPrivateKeys = 4,
        /// The descriptor is known with a range that the new one does not include.
        RangeShrinks {
            /// The first index.
            begin: u32,
            /// The last index.
            end: u32,
        } = 5,
        /// The text does not parse, or is beyond a limit.
        BadDescriptor {
            /// Why.
            reason: String,
        } = 6,
        /// The storage failed; nothing of the whole call was stored.
        NotStored = 7,
    }
}

service! {
    /// The wallets.
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
        /// The wallet's transactions of these ids, in their order.
        fn transactions(txids: Vec<Txid>) -> Vec<Option<WalletTransaction>>;
        /// The same, serialised.
        fn raw_transactions(txids: Vec<Txid>) -> Vec<Option<Blob>>;
        /// A part of the history.
        fn history(query: HistoryQuery) -> HistoryBatch;
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
    }
}
