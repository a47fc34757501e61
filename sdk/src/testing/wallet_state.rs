//! The data of the stub wallet.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bitcoin::hashes::Hash;
use bitcoin::{BlockHash, OutPoint, ScriptBuf, Txid};
use secp256k1::SecretKey;

use super::rows::KnownTransaction;
use outrigger_service::wallet::{
    AddressSource, AddressType, Balances, DescriptorInfo, HdKey, Import, ImportOutcome, LabelledScript, LogEntry,
    Ownership, Received, ScriptInfo, SpendSettings, Synced, WalletCoin, WalletInfo, WalletTransaction,
};
use outrigger_service::wire::{Blob, Secret};

/// The data that the wallet answers with.
#[derive(Clone, Default, Debug)]
pub struct WalletState {
    /// The wallet as a whole.
    pub info: WalletInfo,
    /// The wallet's information on scripts.
    pub scripts: BTreeMap<ScriptBuf, ScriptInfo>,
    /// The transactions, by their order position.
    pub transactions: Vec<KnownTransaction>,
    /// The log, by the numbers of its entries.
    pub log: Vec<LogEntry>,
    /// The texts of descriptors by the numbers that outputs name.
    pub descriptor_texts: BTreeMap<u32, String>,
    /// The coins.
    pub coins: Vec<WalletCoin>,
    /// The answer of `balances` to every query.
    pub balances: Balances,
    /// The answer of `received` to every query.
    pub received: Vec<Received>,
    /// The scripts that it has spent from.
    pub spent_from: BTreeSet<ScriptBuf>,
    /// The locked outputs.
    pub locked: BTreeSet<OutPoint>,
    /// The settings for payments.
    pub spending: SpendSettings,
    /// The descriptors.
    pub descriptors: Vec<DescriptorInfo>,
    /// The descriptors of imported keys and scripts.
    pub imported: Vec<DescriptorInfo>,
    /// The addresses to hand out next.
    pub addresses: VecDeque<ScriptBuf>,
    /// The keys that may sign.
    pub keys: Vec<SecretKey>,
    /// The imports.
    pub imports: Vec<Import>,
    /// The outcomes of the next imports; `Imported` when it is empty.
    pub outcomes: VecDeque<ImportOutcome>,
    /// The number of the reserved or running rescan, and the time when its scan began.
    pub rescan: Option<(u64, Option<u64>)>,
    /// The extended keys.
    pub hd_keys: Vec<HdKey>,
    /// The transactions that were added by hand, with block and position.
    pub added: Vec<(Blob, BlockHash, u32)>,
    /// The height range of the last rescan that was started with one.
    pub rescan_heights: Option<(u32, Option<u32>)>,
    /// The passphrase of an encrypted wallet.
    pub passphrase: Option<Secret>,
    /// The files that backups were written to. A wallet of one of them can be restored.
    pub backups: Vec<String>,
    /// The transactions that were sent and not refused, with their texts.
    pub sent: Vec<(Blob, Vec<(String, String)>)>,
    /// The number of the last rescan.
    pub(super) last_rescan: u64,
}

impl WalletState {
    /// An empty wallet of this name that has followed the chain to this block.
    pub fn new(name: &str, hash: BlockHash, height: u32, time: u32) -> Self {
        Self {
            info: WalletInfo {
                name: name.to_owned(),
                synced: Synced { hash, height, time, median_time: time },
                private_keys_enabled: true,
                birth_time: 1,
                keypool: 1000,
                sources: all_sources(),
                ..WalletInfo::default()
            },
            ..Self::default()
        }
    }

    /// As [`WalletState::new`]: an empty wallet that has not followed any chain.
    pub fn empty(name: &str) -> Self {
        Self::new(name, BlockHash::all_zeros(), 0, 0)
    }

    pub(super) fn known(&self, txid: Txid) -> Option<&KnownTransaction> {
        self.transactions.iter().find(|known| known.transaction.txid == txid)
    }

    pub(super) fn transaction_mut(&mut self, txid: Txid) -> Option<&mut WalletTransaction> {
        self.transactions.iter_mut().map(|known| &mut known.transaction).find(|transaction| transaction.txid == txid)
    }

    /// The address book.
    pub(super) fn book(&mut self) -> Vec<LabelledScript> {
        let entry = |(script, info): (&ScriptBuf, &ScriptInfo)| {
            let (label, ownership) = (info.label.clone()?, info.ownership);
            Some(LabelledScript { script: script.clone(), label, ownership, sending: ownership == Ownership::None })
        };
        self.scripts.iter().filter_map(entry).collect()
    }

    pub(super) fn lock_now(&mut self) {
        self.info.locked = true;
        self.info.unlocked_until = 0;
    }
}

/// Sources of all types for both sides.
fn all_sources() -> Vec<AddressSource> {
    let kinds = [AddressType::Legacy, AddressType::P2shSegwit, AddressType::Bech32, AddressType::Bech32m];
    let side = |internal| kinds.map(|kind| AddressSource { kind, internal, available: true });
    [side(false), side(true)].concat()
}
