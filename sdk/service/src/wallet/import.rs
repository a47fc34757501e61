//! `wallet-import/1`: descriptors, keys and scripts, what became of each, and rescans.

use bitcoin::{BlockHash, ScriptBuf, Txid};

#[cfg(doc)]
use super::Ownership;
use super::{KeyOrigin, check_label, check_script};
use crate::service;
use crate::wire::{Blob, Secret, wire_enum, wire_struct};

wire_struct! {
    /// A descriptor to import. Its text has been parsed and its checksum checked; ranges are inclusive.
    #[derive(Clone, Debug)]
    pub struct DescriptorImport {
        /// The text, possibly with private keys. One with several paths (BIP 389) stands for a descriptor each, which are
        /// stored together or not at all; of two paths the first is for receiving and the second for change.
        pub text: Secret,
        /// The indexes to import; none for one without a wildcard, or for as many as the wallet keeps ahead.
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
        /// Keys and scripts of several parts (importmulti of a descriptor with several paths), which are stored together or
        /// not at all.
        #[since(1)]
        Parts {
            /// The parts.
            parts: Vec<KeysImport>,
        } = 2,
    }
}

impl Import {
    /// Checks that what the request brings is short enough to be stored: its labels, and its scripts.
    ///
    /// # Errors
    /// `Refused` beyond [`super::MAX_LABEL_LEN`] and [`super::MAX_SCRIPT_LEN`].
    pub fn check_lengths(&self) -> crate::Result<()> {
        let parts = match self {
            Self::Descriptor { descriptor } => return check_label(descriptor.label.as_deref().unwrap_or_default()),
            Self::Keys { keys } => std::slice::from_ref(keys),
            Self::Parts { parts } => parts,
        };
        for part in parts {
            check_label(&part.label)?;
            part.script_pubkeys.iter().chain(&part.scripts).try_for_each(|script| check_script(script))?;
        }
        Ok(())
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
    /// Imports and rescans.
    pub trait WalletImport as WalletImportClient = "wallet-import/1" {
        /// Imports all requests in one write, in their order, each with its own outcome: one that is refused changes nothing
        /// and leaves the others as they are. A request sees what those before it imported.
        ///
        /// At once the wallet needs a backup, its birth time is no later than the request's, and its rows,
        /// coins and scripts say what they are now. What was in blocks or in the mempool before and concerns it only now is
        /// found by a rescan. A descriptor owns ([`Ownership::Spendable`], with or without private keys) what it derives from
        /// index 0, or the range's beginning where that is above 1,000,000, to its range's end and as far ahead of the next
        /// index as the store keeps scripts. One that is known by its public text keeps its number and its scripts and takes
        /// on the rest of the request. Of two paths the first is for receiving and the second for change. Only a descriptor
        /// without a range that is not for change gets a label. Keys make spendable what they can spend by themselves or with
        /// known scripts; what else the request names is watched.
        ///
        /// `WalletLocked`, also for no requests.
        fn import(requests: Vec<Import>) -> Vec<ImportOutcome>;
        /// Reserves the wallet's one rescan and gives its number, which no other rescan had since the wallet was loaded.
        /// `WalletRescanning` while one is reserved or runs.
        fn rescan_reserve() -> u64;
        /// Gives a reservation back unused. Nothing where it is not reserved.
        fn rescan_release(rescan: u64) -> ();
        /// Starts the reserved rescan at the first block whose running-maximum time is at least `from_time` less two hours, up
        /// to where the wallet stands, then the whole mempool. Its end is told by `Event::RescanFinished`; then its place is
        /// free. `NotFound` when this is not reserved.
        fn rescan_start(rescan: u64, from_time: u64) -> ();
        /// Starts the reserved rescan as `rescan_start` does, at the height `first` and up to the height `last`; without one up to
        /// where the wallet stands, then the whole mempool. `NotFound` when this is not reserved.
        fn rescan_heights(rescan: u64, first: u32, last: Option<u32>) -> ();
        /// Aborts the running rescan; whether there was one. A reserved one does not run.
        fn rescan_abort() -> bool;
        /// Takes over a transaction that pays to the wallet, at its position in a block of the best chain, as if the wallet had met
        /// it there. `NotFound` when the block is none that the wallet has followed; `Refused` when no output is the
        /// wallet's, or the bytes are no transaction.
        fn add_confirmed(raw: Blob, block: BlockHash, index: u32) -> ();
        /// Removes a transaction, as if it had never been met; it is met again where a block or the mempool has it.
        /// `NotFound` for one that the wallet does not have.
        fn remove_transaction(txid: Txid) -> ();
    }
}
