//! The rows of a wallet's tables.
//!
//! A row is its fields in order in the SDK's wire encoding: little-endian integers of fixed width, counted lists. A
//! field may only be added at the end, marked with the minor version of the ABI that has it.
//!
//! A transaction's row is a message of the SDK, [`outrigger_service::wallet::WalletTransaction`]: what plugins are told is
//! the row as it is stored.

use bitcoin::{Amount, BlockHash, ScriptBuf};
use outrigger_descriptor::Descriptor;
use outrigger_service::wallet::{KeyOrigin, Ownership, TxState};
use outrigger_service::wire::{Blob, wire_struct};
use outrigger_values::params::encode_hex;

wire_struct! {
    /// What a wallet is, and its counters.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct MetaRow {
        /// The version of the tables' layout.
        pub version: u32,
        /// Whether it may hold private keys.
        pub private_keys_enabled: bool,
        /// Whether it was made without keys of its own, and has got none since. Imports leave it as it is.
        pub blank: bool,
        /// As given to createwallet.
        pub avoid_reuse: bool,
        /// The number that the next new transaction gets.
        pub next_order_position: u64,
        /// The number that the next new descriptor gets.
        pub next_descriptor: u32,
        /// The number that the next key of the imported keypool gets.
        pub next_pool: u64,
        /// The time of its oldest key, script or transaction, in seconds; `u64::MAX` while it has none.
        pub birth_time: u64,
        /// Whether something was imported or created since the last backup.
        pub backup_needed: bool,
        /// When the last backup was made, in seconds; 0 when none was.
        pub last_backup: u64,
    }
}

wire_struct! {
    /// How the private entries of an encrypted wallet are encrypted. Absent in one that is not encrypted.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct EncryptionRow {
        /// The salt of Argon2id.
        pub salt: [u8; 16],
        /// Its memory, in KiB.
        pub memory_kib: u32,
        pub passes: u32,
        /// The key that encrypts the entries, itself encrypted with what Argon2id makes of the passphrase.
        pub encrypted_key: Blob,
        /// Zeros, so that the row gets pages of its own, which can be overwritten once they are free.
        pub filler: Blob,
    }
}

wire_struct! {
    /// What finds a former secret in the file, and does not tell it.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct TraceRow {
        /// Its first bytes, by which a search is quick.
        pub begin: [u8; 4],
        /// Its length.
        pub len: u32,
        /// Its SHA-256.
        pub hash: [u8; 32],
    }
}

wire_struct! {
    /// The mark that former secrets are still to be removed from the file. Absent when there are none.
    #[derive(Clone, PartialEq, Eq, Debug, Default)]
    pub struct ScrubRow {
        pub traces: Vec<TraceRow>,
    }
}

wire_struct! {
    /// A rescan that has not come to its end.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct RescanRow {
        /// The birth time that it was asked for, in seconds.
        pub from_time: u64,
        /// The next height to read; none while it has read nothing.
        pub next_height: Option<u32>,
        /// The running-maximum time of the last block that could not be read, in seconds; 0 when all could.
        pub unreadable: u32,
        /// The height at which it began; none while it has read nothing.
        pub first_height: Option<u32>,
        /// The last height to read; none to go on to where the wallet stands.
        pub last_height: Option<u32>,
    }
}

impl RescanRow {
    /// The last height to read where the wallet stands at a height.
    pub fn last(&self, synced: u32) -> u32 {
        self.last_height.map_or(synced, |last| last.min(synced))
    }
}

wire_struct! {
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct DescriptorRow {
        /// Its public text with checksum, with every hardened step that can be taken taken.
        pub public: String,
        /// Its public text as it was imported.
        pub identity: String,
        /// When it was born, in seconds.
        pub timestamp: u64,
        /// Whether it has a wildcard.
        pub ranged: bool,
        /// The first index in use.
        pub range_begin: u32,
        /// The index behind the last derived one.
        pub range_end: u32,
        /// The first derived index.
        pub derived_begin: u32,
        /// The next index to hand out.
        pub next_index: u32,
        /// Which addresses it gives, as the wire number of `AddressType`; none for pk, bare multisig and combo.
        pub output_type: Option<u8>,
        /// Whether new addresses come from it.
        pub active: bool,
        /// Whether it is for change.
        pub internal: bool,
        /// Whether its private text is stored.
        pub has_private: bool,
        /// The extended public keys in it whose private keys are in that text.
        pub private_keys: Vec<String>,
    }
}

impl DescriptorRow {
    /// Notes which private keys a descriptor holds.
    pub fn note_private_keys(&mut self, parsed: &Descriptor) {
        self.has_private = parsed.has_private_keys();
        let held = parsed.extended_keys().into_iter().filter(|(_, private)| private.is_some());
        self.private_keys = held.map(|(public, _)| public.to_string()).collect();
    }

    /// Whether it holds the private key of an extended key that it is written with.
    pub fn holds(&self, xpub: &str) -> bool {
        self.private_keys.iter().any(|held| held == xpub)
    }
}

wire_struct! {
    /// A script that the wallet knows.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct ScriptRow {
        pub script: ScriptBuf,
        /// The descriptors that expand to it, with the index.
        pub owners: Vec<(u32, u32)>,
        /// Whose it is by imported keys and scripts alone.
        pub imported: Ownership,
        /// Whether a transaction of the wallet has spent an output of it, whatever became of that transaction.
        pub spent_from: bool,
    }
}

impl ScriptRow {
    /// That of a script that nobody owns yet.
    pub fn new(script: ScriptBuf) -> Self {
        Self { script, owners: Vec::new(), imported: Ownership::None, spent_from: false }
    }

    /// Whose it is: what a descriptor expands to is ours; otherwise what imported keys and scripts say.
    pub fn ownership(&self) -> Ownership {
        if self.owners.is_empty() { self.imported } else { Ownership::Spendable }
    }
}

wire_struct! {
    /// An unspent output of ours: what its transaction's row says of it, so that listing coins reads one row each.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct CoinRow {
        pub value: Amount,
        pub script: ScriptBuf,
        /// Where its transaction stands.
        pub state: TxState,
        /// Whether its transaction is a coinbase.
        pub coinbase: bool,
        pub ownership: Ownership,
        /// Whether its transaction spends something of ours.
        pub from_us: bool,
        /// Whether its script was spent from.
        pub reused: bool,
    }
}

wire_struct! {
    /// A public key that was imported.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct KeyRow {
        /// It, 33 or 65 bytes.
        pub public_key: Blob,
        /// When it was born, in seconds.
        pub timestamp: u64,
        /// Whether its private key is stored.
        pub private: bool,
        /// Where it comes from.
        pub origin: Option<KeyOrigin>,
    }
}

impl KeyRow {
    /// It as a descriptor has it, behind its origin.
    pub fn expression(&self) -> String {
        let key = encode_hex(&self.public_key);
        self.origin.as_ref().map_or_else(
            || key.clone(),
            |origin| {
                let path = origin.path.strip_prefix('m').unwrap_or(&origin.path);
                format!("[{}{path}]{key}", encode_hex(&origin.fingerprint))
            },
        )
    }
}

wire_struct! {
    /// A redeem script or witness script that was imported.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct KnownScriptRow {
        pub script: ScriptBuf,
        /// When it was born, in seconds; 0 for one that follows from a key.
        pub timestamp: u64,
    }
}

wire_struct! {
    /// A block that the wallet has followed.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct BlockRow {
        pub hash: BlockHash,
    }
}

#[cfg(test)]
mod tests {
    use outrigger_service::wire::{from_bytes, to_bytes};

    use super::*;

    #[test]
    fn scripts_of_a_descriptor_are_ours_whatever_imports_say() {
        let mut row = ScriptRow { imported: Ownership::WatchOnly, ..ScriptRow::new(ScriptBuf::new()) };
        assert_eq!(row.ownership(), Ownership::WatchOnly);
        row.owners.push((0, 7));
        assert_eq!(row.ownership(), Ownership::Spendable);
        assert_eq!(from_bytes::<ScriptRow>(&to_bytes(&row)).unwrap(), row);
    }
}
