//! What `wallet/1` is asked to import, and what became of it.

use bitcoin::ScriptBuf;

use super::{KeyOrigin, check_label, check_script};
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
