//! The rows of a wallet's tables.
//!
//! A row is its fields in order in the SDK's wire encoding: little-endian integers of fixed width, lists prefixed by
//! their length. Fields may be added only at the end, marked with the ABI's minor version that introduced them.
//!
//! A transaction's row is a message of the SDK, [`outrigger_service::wallet::WalletTransaction`]: plugins receive the
//! row as stored.

use bitcoin::{Amount, BlockHash, ScriptBuf, Txid};
use outrigger_descriptor::Descriptor;
use outrigger_service::wallet::{KeyOrigin, LogKind, Ownership, TxState, WalletOutput, WalletTransaction};
use outrigger_service::wire::{Blob, wire_struct};
use outrigger_values::params::encode_hex;

wire_struct! {
    #[derive(Clone, PartialEq, Eq, Default, Debug)]
    pub struct MetaRow {
        pub version: u32,
        pub private_keys_enabled: bool,
        /// Whether the wallet was created blank and has no descriptor from createwalletdescriptor. Imports do not change it.
        pub blank: bool,
        pub avoid_reuse: bool,
        pub next_order_position: u64,
        pub next_descriptor: u32,
        /// The number of the next key of the imported keypool.
        pub next_pool: u64,
        /// The time of the wallet's oldest key, script or transaction, in seconds; `u64::MAX` if it has none.
        pub birth_time: u64,
        /// Whether a key or script was imported or created since the last backup.
        pub backup_needed: bool,
        /// The time of the last backup, in seconds; 0 if there was none.
        pub last_backup: u64,
        /// The plugin that signs for the wallet. Set when the wallet is created.
        #[since(1)]
        pub signer: Option<String>,
        /// The plugins that judge for the wallet.
        #[since(1)]
        pub policies: Vec<String>,
    }
}

wire_struct! {
    /// The encryption of a wallet's private entries. Absent if the wallet is not encrypted.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct EncryptionRow {
        /// For Argon2id.
        pub salt: [u8; 16],
        /// Memory of Argon2id, in KiB.
        pub memory_kib: u32,
        pub passes: u32,
        /// The key of the entries, encrypted with the key that Argon2id derives from the passphrase.
        pub encrypted_key: Blob,
        /// Zeros, so that the row fills pages of its own. The wallet can overwrite these once they are free.
        pub filler: Blob,
    }
}

wire_struct! {
    /// Identifies a former secret in the file without revealing it.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct TraceRow {
        /// The first bytes of the secret, for a fast search.
        pub begin: [u8; 4],
        pub len: u32,
        /// SHA-256 of the secret.
        pub hash: [u8; 32],
    }
}

wire_struct! {
    /// An unfinished rescan.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct RescanRow {
        /// The requested birth time, in seconds.
        pub from_time: u64,
        /// The next height to read; `None` before the first block.
        pub next_height: Option<u32>,
        /// The maximum block time up to the last unreadable block, in seconds; 0 if all blocks were readable.
        pub unreadable: u32,
        /// The first height of the rescan; `None` before the first block.
        pub first_height: Option<u32>,
        /// The last height to read; `None` for the wallet's position.
        pub last_height: Option<u32>,
    }
}

impl RescanRow {
    /// The last height to read for a wallet at height `synced`.
    pub fn last(&self, synced: u32) -> u32 {
        self.last_height.map_or(synced, |last| last.min(synced))
    }
}

wire_struct! {
    #[derive(Clone, PartialEq, Eq, Default, Debug)]
    pub struct DescriptorRow {
        /// The public text with checksum, normalised: hardened steps are derived where the keys allow it.
        pub public: String,
        /// The public text as imported.
        pub identity: String,
        /// The birth time, in seconds.
        pub timestamp: u64,
        pub ranged: bool,
        /// The first index in use.
        pub range_begin: u32,
        /// The end (exclusive) of the derived indexes.
        pub range_end: u32,
        /// The first derived index.
        pub derived_begin: u32,
        pub next_index: u32,
        /// The wire number of the `AddressType`; `None` for pk, bare multisig and combo.
        pub output_type: Option<u8>,
        /// Whether the wallet takes new addresses from it.
        pub active: bool,
        pub internal: bool,
        /// Whether its private text is stored.
        pub has_private: bool,
        /// The extended public keys whose private keys are in that text.
        pub private_keys: Vec<String>,
    }
}

impl DescriptorRow {
    /// The row of an inactive descriptor without derived indexes.
    pub fn new(parsed: &Descriptor, timestamp: u64, internal: bool) -> Self {
        let held = parsed.extended_keys().into_iter().filter(|(_, private)| private.is_some());
        Self {
            public: parsed.to_normalized_string(),
            identity: parsed.to_public_string(),
            timestamp,
            ranged: parsed.is_ranged(),
            output_type: parsed.output_type().map(|kind| kind as u8),
            internal,
            has_private: parsed.has_private_keys(),
            private_keys: held.map(|(public, _)| public.to_string()).collect(),
            ..Self::default()
        }
    }

    /// Whether the descriptor holds the private key of `xpub`.
    pub fn holds(&self, xpub: &str) -> bool {
        self.private_keys.iter().any(|held| held == xpub)
    }
}

wire_struct! {
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct ScriptRow {
        pub script: ScriptBuf,
        /// The numbers of the descriptors that derive it, each with the index.
        pub owners: Vec<(u32, u32)>,
        /// The ownership by imported keys and scripts alone.
        pub imported: Ownership,
        /// Whether a transaction of the wallet, in any state, spent an output with this script.
        pub spent_from: bool,
    }
}

impl ScriptRow {
    /// The row of a script without an owner.
    pub fn new(script: ScriptBuf) -> Self {
        Self { script, owners: Vec::new(), imported: Ownership::None, spent_from: false }
    }

    /// A script of a descriptor is spendable. For others, imported keys and scripts decide.
    pub fn ownership(&self) -> Ownership {
        if self.owners.is_empty() { self.imported } else { Ownership::Spendable }
    }
}

wire_struct! {
    /// An unspent output of the wallet. It repeats fields of the transaction's row, so that listing coins
    /// reads one row per coin.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct CoinRow {
        pub value: Amount,
        pub script: ScriptBuf,
        pub state: TxState,
        pub coinbase: bool,
        pub ownership: Ownership,
        /// Whether the transaction spends an output of the wallet.
        pub from_us: bool,
        /// Whether a transaction of the wallet has spent from the script.
        pub reused: bool,
    }
}

impl CoinRow {
    /// An output of a transaction. `reused`: whether a transaction of the wallet has spent from its script.
    pub fn of(row: &WalletTransaction, output: &WalletOutput, reused: bool) -> Self {
        Self {
            value: output.value,
            script: output.script.clone(),
            state: row.state,
            coinbase: row.coinbase,
            ownership: output.ownership,
            from_us: row.is_from_us(),
            reused,
        }
    }
}

wire_struct! {
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct KeyRow {
        /// 33 or 65 bytes.
        pub public_key: Blob,
        /// The birth time, in seconds.
        pub timestamp: u64,
        /// Whether its private key is stored.
        pub private: bool,
        pub origin: Option<KeyOrigin>,
    }
}

impl KeyRow {
    /// The key expression of a descriptor: origin and public key.
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
    /// An imported redeem script or witness script.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct KnownScriptRow {
        pub script: ScriptBuf,
        /// The birth time, in seconds; 0 for a script derived from a key.
        pub timestamp: u64,
    }
}

wire_struct! {
    /// A log entry. Its payments are in the transaction's row.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct LogRow {
        pub kind: LogKind,
        pub txid: Txid,
        pub block: Option<BlockHash>,
        pub height: Option<u32>,
        /// When it was written, in seconds.
        pub time: u64,
    }
}

wire_struct! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct LogStateRow {
        /// The number of the newest entry ever written; 0 for none.
        pub last: u64,
        /// The number of the newest entry that was dropped; 0 for none.
        pub dropped: u64,
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
