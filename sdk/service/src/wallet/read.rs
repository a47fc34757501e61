//! `wallet-read/1`.

use bitcoin::{OutPoint, ScriptBuf, Txid, Wtxid};

use super::{
    Balances, BalancesQuery, CoinBatch, DescriptorInfo, HdKey, HistoryBatch, HistoryQuery, LabelBatch, LabelledAddress,
    Received, ReceivedQuery, Replaceable, ScriptInfo, SpendSettings, WalletInfo, WalletLog,
};
#[cfg(doc)]
use super::{Ownership, UnsettledState};
use crate::service;
use crate::wire::{Blob, Encoded};

service! {
    /// Reads wallets, for histories, reports and notifiers. It changes nothing and gives no private key.
    pub trait WalletRead as WalletReadClient = "wallet-read/1" {
        /// The names of the loaded wallets, in the order in which they were loaded.
        fn list() -> Vec<String>;
        /// The scope of a wallet by its name, for work outside of calls with several wallets; the same for the same name. Functions
        /// with it concern that wallet and see the newest state. It ends with the plugin's instance. `WalletNotLoaded` for a wallet
        /// that is not loaded, or that the plugin may not know.
        fn scope_of(name: String) -> u64;
        /// The wallet of the call.
        fn info() -> WalletInfo;
        /// What the wallet knows of these scripts, in their order; none where it knows nothing. It knows a script that is its
        /// own or watched, that has a label, or of whose spending an import said something. What the first descriptor that
        /// derives it says outranks other descriptors and imports.
        fn scripts(scripts: Vec<ScriptBuf>) -> Vec<Option<ScriptInfo>>;
        /// Those of these transactions that the wallet has, in the order asked for (one asked for twice comes twice), in one
        /// batch, whose `next` is none.
        fn transactions(txids: Vec<Txid>) -> Encoded<HistoryBatch>;
        /// The serialisations of the wallet's transactions of these ids, in their order, each with the witness of its `wtxid`; none
        /// for those that it does not have.
        fn raw_transactions(txids: Vec<Txid>) -> Vec<Option<Blob>>;
        /// A part of the history, in the order of its range or backwards.
        fn history(query: HistoryQuery) -> Encoded<HistoryBatch>;
        /// The public texts of descriptors by their numbers and with checksum, in their order: as they were imported, or as
        /// `descriptors` gives them since Bitcoin Core 30; none where the wallet has no such descriptor. Numbers begin at 0 and are never given again.
        fn descriptor_texts(numbers: Vec<u32>) -> Vec<Option<String>>;
        /// Coins, from the outpoint after `after` on: by the txid's internal bytes, then the output's number as four
        /// little-endian bytes. A coin is an output that is not [`Ownership::None`], of a transaction that is confirmed, in
        /// the mempool or, unless it is a coinbase, inactive, and that no such transaction of the wallet spends. What conflicts
        /// with a transaction of the mempool (see [`UnsettledState::mempool_conflicts`]) neither makes nor spends a coin.
        fn coins(after: Option<Blob>, limit: u32) -> CoinBatch;
        /// The descriptors by their numbers, without private keys, hardened steps taken as far as the keys allow.
        fn descriptors() -> Vec<DescriptorInfo>;
        /// What was imported as keys and scripts, as descriptors without a range: each key as `combo`, each other script that is not
        /// [`Ownership::None`] by what is known of it. Without private keys.
        fn imported_descriptors() -> Vec<DescriptorInfo>;
        /// The extended keys that the descriptors are written with, by public key and chain code, without private keys. Of a locked
        /// wallet's descriptor with several keys, all count as held where some are.
        fn hd_keys() -> Vec<HdKey>;
        /// The address book, from the place `after` on: each entry once, in an order that does not change.
        fn labels(after: Option<Blob>, limit: u32) -> LabelBatch;
        /// The labels of the address book, each once and sorted: of its addresses with the purpose `send` where `sending` is true, of
        /// the others where it is false, and of all where it is none.
        fn label_names(sending: Option<bool>) -> Vec<String>;
        /// The addresses with a label, in no order that means anything.
        fn labelled(label: String) -> Vec<LabelledAddress>;
        /// What scripts of the wallet received, in no order that means anything. Only those are told that received something which
        /// counts. All of them come at once: the answer takes some 32 bytes for each output.
        fn received(query: ReceivedQuery) -> Encoded<Vec<Received>>;
        /// The sums of the wallet's coins, as `coins` lists them. Takes the same time however many coins there are, but for those in
        /// the mempool, whose transactions are judged anew.
        fn balances(query: BalancesQuery) -> Balances;
        /// The sums of the coins that only payments outside the mempool spend: `balances` leaves them out, while such a payment may
        /// still confirm.
        fn spent_outside_mempool(query: BalancesQuery) -> Balances;
        /// Whether a transaction of the wallet has spent an output of each of these scripts while it was the wallet's, in their
        /// order, whatever became of that transaction.
        fn spent_from(scripts: Vec<ScriptBuf>) -> Vec<bool>;
        /// The transactions of the wallet that spend each of these outpoints, in their order, whatever became of them.
        fn spenders(outpoints: Vec<OutPoint>) -> Vec<Vec<Txid>>;
        /// The locked outputs: by the txid's internal bytes, then the output's number.
        fn locked_coins() -> Vec<OutPoint>;
        /// Whether each of these transactions of the wallet can be replaced (BIP 125), in their order; `Unknown` where the wallet does
        /// not have it. The node is asked once for all those of the mempool that do not signal it themselves.
        fn replaceable(txids: Vec<Txid>) -> Vec<Replaceable>;
        /// The ids with other witnesses that the wallet has met of each of these transactions, in their order; none where it has met
        /// one witness, or does not have the transaction.
        fn alternate_wtxids(txids: Vec<Txid>) -> Vec<Vec<Wtxid>>;
        /// What holds for payments of the wallet: what the operator has set for all, and what `set_pay_feerate` has.
        fn spend_settings() -> SpendSettings;
        /// The log from the entry after number `after` on (0 for all that is kept), at most `limit` entries and 256, of the newest
        /// state outside of calls. Does not wait for the chain's tip outside of calls.
        #[since(1)]
        fn log(after: u64, limit: u32) -> WalletLog;
    }
}
