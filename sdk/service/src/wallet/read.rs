//! `wallet-read/1`.

use bitcoin::{OutPoint, ScriptBuf, Txid, Wtxid};

use super::{
    Balances, BalancesQuery, CoinBatch, DescriptorInfo, HdKey, HistoryBatch, HistoryQuery, LabelBatch, LabelledScript,
    Received, ReceivedQuery, Replaceable, ScriptInfo, SpendSettings, WalletInfo, WalletLog,
};
#[cfg(doc)]
use super::{Ownership, UnsettledState};
use crate::service;
use crate::wire::{Blob, Encoded};

service! {
    /// Reads wallets, for histories, reports and notifiers. It changes nothing and returns no private key.
    pub trait WalletRead = "wallet-read/1" {
        /// The names of the loaded wallets, in the order of loading.
        fn list() -> Vec<String>;
        /// The scope of the wallet with this name, for work with several wallets outside of calls. The same name gives the same scope.
        /// Functions with the scope use that wallet and see its newest state. It ends with the plugin's instance. `WalletNotLoaded` if
        /// the wallet is not loaded, or the plugin may not know it.
        fn scope_of(name: String) -> u64;
        /// The wallet of the call.
        fn info() -> WalletInfo;
        /// The wallet's knowledge of these scripts, in their order; none for an unknown script. The wallet knows a script that is its own
        /// or watched, that has a label, or that an import gave solving data for. The first descriptor that derives a script outranks
        /// other descriptors and imports.
        fn scripts(scripts: Vec<ScriptBuf>) -> Vec<Option<ScriptInfo>>;
        /// The transactions with these ids that the wallet has, in the requested order (a repeated id gives a repeated row), in one
        /// batch, whose `next` is none.
        fn transactions(txids: Vec<Txid>) -> Encoded<HistoryBatch>;
        /// The serialisations of the wallet's transactions with these ids, in their order, each with the witness of its `wtxid`; none for
        /// an unknown id.
        fn raw_transactions(txids: Vec<Txid>) -> Vec<Option<Blob>>;
        /// A part of the history, in the order of its range, or backwards.
        fn history(query: HistoryQuery) -> Encoded<HistoryBatch>;
        /// The public texts of the descriptors with these numbers, with checksum, in their order: as imported, or since Bitcoin Core 30
        /// as `descriptors` returns them; none for an unknown number. Numbers begin at 0 and are not reused.
        fn descriptor_texts(numbers: Vec<u32>) -> Vec<Option<String>>;
        /// Coins after the outpoint `after`, sorted by the txid's internal bytes, then by the output's number as four little-endian
        /// bytes. A coin is an output that is not [`Ownership::None`], of a transaction that is confirmed, in the mempool or, unless it
        /// is a coinbase, inactive, and that no such transaction of the wallet spends. A transaction that conflicts with the mempool (see
        /// [`UnsettledState::mempool_conflicts`]) neither makes nor spends a coin. With `in_mempool`, only the coins of transactions in the
        /// mempool, without reading others.
        fn coins(in_mempool: bool, after: Option<Blob>, limit: u32) -> CoinBatch;
        /// The descriptors by their numbers, without private keys. Hardened steps are derived as far as the keys allow.
        fn descriptors() -> Vec<DescriptorInfo>;
        /// Imported keys and scripts as descriptors without a range: each key as `combo`, each other script that is not
        /// [`Ownership::None`] by its solving data. Without private keys.
        fn imported_descriptors() -> Vec<DescriptorInfo>;
        /// The extended keys in the descriptors, by public key and chain code, without private keys. For a descriptor with several keys
        /// in a locked wallet, all count as held if some are.
        fn hd_keys() -> Vec<HdKey>;
        /// The address book after the position `after`: each entry once, in a stable order.
        fn labels(after: Option<Blob>, limit: u32) -> LabelBatch;
        /// The distinct labels of the address book, sorted. `sending`: true for addresses with the purpose `send`, false for the others,
        /// none for all.
        fn label_names(sending: Option<bool>) -> Vec<String>;
        /// The addresses with this label, in no particular order.
        fn labelled(label: String) -> Vec<LabelledScript>;
        /// The receipts of the wallet's scripts, in no particular order. Scripts without a payment that counts are left out. All receipts
        /// come at once: the answer takes some 32 bytes for each output.
        fn received(query: ReceivedQuery) -> Encoded<Vec<Received>>;
        /// The sums of the wallet's coins, as `coins` lists them. The time does not grow with the number of coins, except those in the
        /// mempool, whose trust is judged anew.
        fn balances(query: BalancesQuery) -> Balances;
        /// The sums of the coins that only payments outside the mempool spend. `balances` leaves these coins out, since such a payment
        /// may still confirm.
        fn spent_outside_mempool(query: BalancesQuery) -> Balances;
        /// Whether a transaction of the wallet has ever spent an output of each of these scripts while it was the wallet's, in their
        /// order, regardless of that transaction's state.
        fn spent_from(scripts: Vec<ScriptBuf>) -> Vec<bool>;
        /// The transactions of the wallet that spend each of these outpoints, in their order, in whatever state.
        fn spenders(outpoints: Vec<OutPoint>) -> Vec<Vec<Txid>>;
        /// The locked outputs, sorted by the txid's internal bytes, then by the output's number.
        fn locked_coins() -> Vec<OutPoint>;
        /// Whether each of these transactions of the wallet can be replaced (BIP 125), in their order; `Unknown` if the wallet does not
        /// have it. The host asks the node once for all mempool transactions that do not signal it themselves.
        fn replaceable(txids: Vec<Txid>) -> Vec<Replaceable>;
        /// The other wtxids that the wallet has seen of each of these transactions, in their order; empty if it has seen only one
        /// witness, or does not have the transaction.
        fn alternate_wtxids(txids: Vec<Txid>) -> Vec<Vec<Wtxid>>;
        /// The settings for payments of the wallet: the operator's, and the feerate of `set_pay_feerate`.
        fn spend_settings() -> SpendSettings;
        /// The log after the entry with the number `after` (0: from its beginning), at most `limit` entries and 256. Outside of calls it
        /// is the newest state, without waiting for the chain's tip.
        fn log(after: u64, limit: u32) -> WalletLog;
    }
}
