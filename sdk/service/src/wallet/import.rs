//! `wallet-import/1`: imports of descriptors, keys and scripts, and rescans.

use bitcoin::{BlockHash, ScriptBuf, Txid};

#[cfg(doc)]
use super::Ownership;
use super::{KeyOrigin, MAX_SCRIPT_LEN, check_label, check_length};
use crate::service;
use crate::wire::{Blob, Secret, wire_enum, wire_struct};

wire_struct! {
    /// A descriptor to import. The caller has parsed the text and checked its checksum. Ranges are inclusive.
    #[derive(Clone, Default, Debug)]
    pub struct DescriptorImport {
        /// The text, possibly with private keys. A text with several paths (BIP 389) stands for one descriptor per path; the wallet
        /// stores all of them or none. Of two paths the first is for receiving and the second for change.
        pub text: Secret,
        /// The first and the last index to import; none for a descriptor without a wildcard, or for as many as the wallet keeps ahead.
        pub range: Option<(u32, u32)>,
        /// The next index to hand out; none for the beginning of the range.
        pub next_index: Option<u32>,
        /// Whether new addresses of its type come from it.
        pub active: bool,
        /// Whether its addresses are for change; none if the request does not say.
        pub internal: Option<bool>,
        /// The label of its address; none if the request does not say.
        pub label: Option<String>,
        /// Its birth time, in Unix seconds.
        pub timestamp: u64,
    }
}

wire_struct! {
    /// Keys and scripts to import (importmulti), after their analysis.
    #[derive(Clone, Default, Debug)]
    pub struct KeysImport {
        /// The scriptPubKeys of the request, shortest first, then by bytes.
        pub script_pubkeys: Vec<ScriptBuf>,
        /// Redeem scripts and witness scripts.
        pub scripts: Vec<ScriptBuf>,
        /// Private keys, as WIF.
        pub private_keys: Vec<Secret>,
        /// Public keys, in the order of the request.
        pub public_keys: Vec<Blob>,
        /// The origins of keys.
        pub origins: Vec<KeyOrigin>,
        /// Whether the request has solving data (a script, a key, or a descriptor with keys).
        pub solving_data: bool,
        /// Whether payments are change: the scripts get no entry in the address book.
        pub internal: bool,
        /// The label of the addresses.
        pub label: String,
        /// Whether new public keys join the keypool.
        pub keypool: bool,
        /// The birth time of the keys, in Unix seconds, at least 1.
        pub timestamp: u64,
    }
}

wire_enum! {
    /// One request of an import.
    #[derive(Clone, Debug)]
    pub enum Import {
        /// A descriptor (importdescriptors).
        Descriptor {
            /// The descriptor.
            descriptor: DescriptorImport,
        } = 0,
        /// Keys and scripts (importmulti), in several parts for a descriptor with several paths. The wallet stores all parts or none.
        Keys {
            /// The parts.
            parts: Vec<KeysImport>,
        } = 1,
    }
}

impl Import {
    /// Checks that the labels and scripts of the request are short enough to be stored.
    ///
    /// # Errors
    /// `Refused` beyond [`super::MAX_LABEL_LEN`] and [`super::MAX_SCRIPT_LEN`].
    pub fn check_lengths(&self) -> crate::Result<()> {
        let parts = match self {
            Self::Descriptor { descriptor } => return check_label(descriptor.label.as_deref().unwrap_or_default()),
            Self::Keys { parts } => parts,
        };
        for part in parts {
            check_label(&part.label)?;
            let mut scripts = part.script_pubkeys.iter().chain(&part.scripts);
            scripts.try_for_each(|script| check_length("script", script.as_bytes(), MAX_SCRIPT_LEN))?;
        }
        Ok(())
    }
}

wire_enum! {
    /// The outcome of one request of an import.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum ImportOutcome {
        /// Stored.
        Imported {
            /// Whether the wallet may hold private keys and the request lacks some of the descriptor's.
            missing_private_keys: bool,
            /// Whether the descriptor cannot be active because it has no address type.
            unknown_output_type: bool,
        } = 0,
        /// The request has private keys, and the wallet may not hold any.
        PrivateKeysDisabled = 1,
        /// The wallet already owns one of the scripts.
        AlreadyOwned {
            /// The script.
            script: ScriptBuf,
        } = 2,
        /// The wallet cannot derive index 0: a hardened step lacks its private key.
        NotExpandable = 3,
        /// The wallet holds private keys, and the request has none.
        NoPrivateKeys = 4,
        /// The wallet has the descriptor with a range that the new one does not include.
        RangeShrinks {
            /// The first index.
            begin: u32,
            /// The last index.
            end: u32,
        } = 5,
        /// The text does not parse, or exceeds a limit.
        BadDescriptor {
            /// The reason.
            reason: String,
        } = 6,
        /// The storage failed. Nothing of the whole call was stored.
        NotStored = 7,
    }
}

service! {
    /// Imports and rescans.
    pub trait WalletImport = "wallet-import/1" {
        /// Imports all requests in one write, in their order, each with its own outcome. A refused request changes nothing and does not
        /// affect the others. A request sees the imports before it.
        ///
        /// The write marks the wallet as needing a backup, lowers its birth time to the request's if that is earlier, and updates
        /// ownership, change and labels in its rows, coins and scripts. Only a rescan finds earlier transactions in blocks and in the
        /// mempool. A descriptor owns ([`Ownership::Spendable`], with or without private keys) its scripts from index 0, or from the
        /// beginning of a range above 1,000,000, to the end of the range and as far ahead of the next index as the store keeps scripts. A
        /// descriptor whose public text the wallet knows keeps its number and its scripts, and takes the rest from the request. Of two
        /// paths the first is for receiving and the second for change. Only a descriptor without a range that is not for change gets a
        /// label. Keys make scripts spendable that they can spend alone or with known scripts; the request's other scripts are watched.
        ///
        /// `WalletLocked`, also for no requests.
        fn import(requests: Vec<Import>) -> Vec<ImportOutcome>;
        /// Reserves the wallet's only rescan and returns its number, which is unique since the wallet was loaded. `WalletRescanning`
        /// while a rescan is reserved or running.
        fn rescan_reserve() -> u64;
        /// Releases an unused reservation. Does nothing if this rescan is not reserved.
        fn rescan_release(rescan: u64) -> ();
        /// Starts the reserved rescan at the first block whose running-maximum time is at least `from_time` less two hours. It scans up
        /// to the wallet's last block, then the whole mempool. `Event::RescanFinished` reports its end; then another rescan can be
        /// reserved. `NotFound` if this rescan is not reserved.
        fn rescan_start(rescan: u64, from_time: u64) -> ();
        /// Starts the reserved rescan as `rescan_start` does, from the height `first` to the height `last`; without `last`, up to the
        /// wallet's last block, then the whole mempool. `NotFound` if this rescan is not reserved.
        fn rescan_heights(rescan: u64, first: u32, last: Option<u32>) -> ();
        /// Aborts the running rescan. Returns whether one was running; a reserved rescan is not.
        fn rescan_abort() -> bool;
        /// Adds a transaction that pays to the wallet, at its position in a block of the best chain, as if the wallet had found it there.
        /// `NotFound` if the wallet has not followed the block; `Refused` if no output is the wallet's, or the bytes are not a
        /// transaction.
        fn add_confirmed(raw: Blob, block: BlockHash, index: u32) -> ();
        /// Removes a transaction as if the wallet had never seen it. The wallet adds it again if it sees it in a block or the mempool.
        /// `NotFound` if the wallet does not have it.
        fn remove_transaction(txid: Txid) -> ();
    }
}
