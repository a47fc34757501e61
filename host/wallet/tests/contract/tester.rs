//! Shared helpers: calls of the wallet service, keys, scripts and transactions.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt::Debug;

use bitcoin::bip32::Xpriv;
use bitcoin::{BlockHash, Network, OutPoint, ScriptBuf, Transaction, Txid};
use outrigger_node::{Node, NodeEvent};
use outrigger_scripted_node::ScriptedNode;
pub use outrigger_testing::made::{descriptor, elsewhere, foreign, key, keys, p2pkh, p2wpkh, public, spend, wif};
use outrigger_testing::{TestHost, until};

use outrigger_service::chain::Tip;
use outrigger_service::events::Event;
use outrigger_service::wallet::{
    CoinBatch, CreateOptions, HistoryBatch, HistoryQuery, HistoryRange, HistoryRow, Import, ImportOutcome, LabelBatch,
    LabelledScript, ScriptInfo, WalletCoin, WalletInfo, WalletTransaction,
};
use outrigger_service::wire::{Blob, Encoded};
use outrigger_service::{ErrorKind, Host, Result as ServiceResult, Scope, Signer};

pub const IMPORTED: ImportOutcome = ImportOutcome::Imported { missing_private_keys: false, unknown_output_type: false };
/// The batch size for reading a whole list. Small, so that there are several batches.
const BATCH: u32 = 2;
/// The maximum number of batches of a list. More count as endless.
const MAX_BATCHES: usize = 10_000;

pub const WALLET: &str = "w";

/// Wallets on a scripted node, and helpers that change both.
pub struct Tester {
    host: TestHost<ScriptedNode>,
    services: Host,
}

/// Creates the wallet `w` with [`key`] 1. Returns the script of that key.
pub fn with_key(tester: &Tester) -> ScriptBuf {
    tester.create(|_| {});
    tester.take(single(1));
    p2wpkh(1)
}

#[track_caller]
pub fn same<T: PartialEq + Debug>(what: &str, found: T, expected: T) {
    assert_eq!(found, expected, "{what}");
}

#[track_caller]
pub fn refused<T: Debug>(what: &str, answer: ServiceResult<T>, kind: ErrorKind) {
    assert_eq!(answer.expect_err(what).kind, kind, "{what}");
}

impl Tester {
    pub fn new() -> Self {
        let host = TestHost::over(ScriptedNode::new());
        Self { services: host.handle(), host }
    }

    /// Creates the wallet `w`, blank unless `change` changes that.
    pub fn with(change: impl FnOnce(&mut CreateOptions)) -> Self {
        let tester = Self::new();
        tester.create(change);
        tester
    }

    pub fn handle(&self) -> Host {
        self.host.handle()
    }

    pub fn services(&self) -> &Host {
        &self.services
    }

    /// Transactions announced since the last call.
    pub fn told(&self) -> Vec<Txid> {
        let txid = |event| match event {
            Event::WalletTransaction { txid, .. } => Some(txid),
            _ => None,
        };
        self.host.take_events().into_iter().filter_map(txid).collect()
    }

    pub fn node(&self) -> &ScriptedNode {
        &self.host.node
    }

    pub fn open(&self, wallet: Option<&str>) -> (Scope, Box<dyn Any + Send>) {
        self.host.open_call(wallet)
    }

    pub fn keypool(&self) -> u32 {
        TestHost::<ScriptedNode>::KEYPOOL
    }

    pub fn backup_file(&self, name: &str) -> String {
        self.host.path(&format!("{name}.backup")).to_str().unwrap().to_owned()
    }

    pub fn of<T>(&self, wallet: Option<&str>, ask: impl FnOnce(&Host, Scope) -> T) -> T {
        let (scope, _call) = self.open(wallet);
        ask(&self.services, scope)
    }

    pub fn ask<T>(&self, ask: impl FnOnce(&Host, Scope) -> T) -> T {
        self.of(Some(WALLET), ask)
    }

    pub fn sign<T>(&self, ask: impl FnOnce(&dyn Signer, Scope) -> T) -> T {
        let (scope, _call) = self.open(Some(WALLET));
        ask(&*self.services.signer, scope)
    }

    pub fn try_create(&self, name: &str, change: impl FnOnce(&mut CreateOptions)) -> ServiceResult<Vec<String>> {
        let mut options = CreateOptions { name: name.into(), blank: true, ..CreateOptions::default() };
        change(&mut options);
        let made = self.of(None, |host, scope| host.admin.create(scope, options));
        self.tell(self.node().untold());
        made
    }

    pub fn create(&self, change: impl FnOnce(&mut CreateOptions)) {
        self.try_create(WALLET, change).unwrap();
    }

    pub fn load(&self, name: &str) -> ServiceResult<Vec<String>> {
        let loaded = self.of(None, |host, scope| host.admin.load(scope, name.into(), None));
        self.tell(self.node().untold());
        loaded
    }

    pub fn unload(&self, name: &str) -> ServiceResult<Vec<String>> {
        self.of(None, |host, scope| host.admin.unload(scope, name.into(), None))
    }

    /// Sends events to the wallets, each after all wallets have processed the one before.
    pub fn tell(&self, events: Vec<NodeEvent>) {
        for event in events {
            self.node().tell([event]);
            for wallet in self.host.wallets.list() {
                drop(self.host.wallets.select(Some(&wallet)));
            }
        }
    }

    pub fn accept(&self, transaction: &Transaction) {
        self.tell(self.node().accept(transaction.clone()));
    }

    pub fn take_out(&self, txid: Txid) {
        self.tell(self.node().take_out(txid));
    }

    pub fn mine_to(&self, script: &ScriptBuf, transactions: &[&Transaction]) -> BlockHash {
        let transactions = transactions.iter().map(|transaction| (*transaction).clone()).collect();
        let (hash, events) = self.node().connect(script.clone(), transactions);
        self.tell(events);
        hash
    }

    pub fn mine(&self, transactions: &[&Transaction]) -> BlockHash {
        self.mine_to(&foreign(0), transactions)
    }

    pub fn disconnect(&self) {
        self.tell(self.node().disconnect());
    }

    pub fn tip(&self) -> Tip {
        self.node().tip()
    }

    pub fn info(&self) -> WalletInfo {
        self.ask(|host, scope| host.wallet.info(scope)).unwrap()
    }

    pub fn script(&self, script: &ScriptBuf) -> Option<ScriptInfo> {
        let infos = self.ask(|host, scope| host.wallet.scripts(scope, vec![script.clone()])).unwrap();
        same("as many answers as scripts", infos.len(), 1);
        infos.into_iter().next().flatten()
    }

    pub fn import(&self, imports: Vec<Import>) -> ServiceResult<Vec<ImportOutcome>> {
        self.ask(|host, scope| host.import.import(scope, imports))
    }

    #[track_caller]
    pub fn take(&self, import: Import) {
        same("the outcome of an import", self.import(vec![import]).unwrap(), vec![IMPORTED]);
    }

    pub fn rescan(&self, from_time: u64) {
        let rescan = self.ask(|host, scope| host.import.rescan_reserve(scope)).unwrap();
        self.ask(|host, scope| host.import.rescan_start(scope, rescan, from_time)).unwrap();
        self.await_rescan();
    }

    pub fn await_rescan(&self) {
        until("a rescan comes to its end", || self.info().rescan.is_none());
        self.tell(self.node().untold());
    }

    pub fn rows(&self, txids: &[Txid]) -> Vec<HistoryRow> {
        let batch = self.ask(|host, scope| host.wallet.transactions(scope, txids.to_vec())).unwrap().read().unwrap();
        same("a batch of transactions by id has no next batch", batch.next, None);
        batch.rows
    }

    #[track_caller]
    pub fn row(&self, txid: Txid) -> HistoryRow {
        self.rows(&[txid]).into_iter().next().expect("the transaction")
    }

    #[track_caller]
    pub fn known(&self, txid: Txid) -> WalletTransaction {
        self.row(txid).transaction.0
    }

    pub fn batch(&self, range: HistoryRange, reverse: bool, after: Option<Blob>, limit: u32) -> Batch {
        let query = HistoryQuery { range, reverse, after, limit };
        self.ask(|host, scope| host.wallet.history(scope, query))
    }

    pub fn history(&self, range: HistoryRange, reverse: bool, limit: u32) -> Vec<HistoryRow> {
        all(limit, |after| {
            let batch = self.batch(range, reverse, after, limit).unwrap().read().unwrap();
            (batch.rows, batch.next)
        })
    }

    pub fn ids(&self, range: HistoryRange, reverse: bool) -> Vec<Txid> {
        self.history(range, reverse, BATCH).iter().map(|row| row.transaction.0.txid).collect()
    }

    pub fn coin_batch(&self, after: Option<Blob>, limit: u32) -> ServiceResult<CoinBatch> {
        self.ask(|host, scope| host.wallet.coins(scope, false, after, limit))
    }

    pub fn coins(&self) -> Vec<WalletCoin> {
        all(BATCH, |after| {
            let batch = self.coin_batch(after, BATCH).unwrap();
            (batch.coins, batch.next)
        })
    }

    pub fn outpoints(&self) -> Vec<OutPoint> {
        self.coins().iter().map(|coin| coin.outpoint).collect()
    }

    pub fn label_batch(&self, after: Option<Blob>, limit: u32) -> ServiceResult<LabelBatch> {
        self.ask(|host, scope| host.wallet.labels(scope, after, limit))
    }

    pub fn labels(&self) -> Vec<LabelledScript> {
        let mut entries = all(BATCH, |after| {
            let batch = self.label_batch(after, BATCH).unwrap();
            (batch.entries, batch.next)
        });
        entries.sort_by(|one, other| one.script.cmp(&other.script));
        self.check_labels(&entries);
        entries
    }

    /// Compares `label_names` and `labelled` with the whole address book.
    fn check_labels(&self, entries: &[LabelledScript]) {
        for wanted in [None, Some(true), Some(false)] {
            let of = entries.iter().filter(|entry| wanted.is_none_or(|wanted| entry.sending == wanted));
            let names: BTreeSet<String> = of.map(|entry| entry.label.clone()).collect();
            let told = self.ask(|host, scope| host.wallet.label_names(scope, wanted)).unwrap();
            same(&format!("the labels in use, {wanted:?}"), told, names.into_iter().collect());
        }
        for LabelledScript { label, .. } in entries {
            let mut told = self.ask(|host, scope| host.wallet.labelled(scope, label.clone())).unwrap();
            told.sort_by(|one, other| one.script.cmp(&other.script));
            let expected = entries.iter().filter(|entry| entry.label == *label).cloned().collect();
            same(&format!("the addresses with the label {label:?}"), told, expected);
        }
        let none = self.ask(|host, scope| host.wallet.labelled(scope, "a label that nothing has".into())).unwrap();
        same("the addresses with a label that nothing has", none, Vec::new());
    }
}

pub type Batch = ServiceResult<Encoded<HistoryBatch>>;
type Page<T> = (Vec<T>, Option<Blob>);

fn all<T>(limit: u32, mut read: impl FnMut(Option<Blob>) -> Page<T>) -> Vec<T> {
    let (mut rows, mut after) = (Vec::new(), None);
    for _ in 0..MAX_BATCHES {
        let (batch, next) = read(after);
        assert!(batch.len() <= limit.max(1) as usize, "a batch has at most as many rows as requested");
        assert!(next.is_none() || !batch.is_empty(), "a batch with a next batch is not empty");
        rows.extend(batch);
        match next {
            None => return rows,
            next => after = next,
        }
    }
    panic!("a list has too many batches");
}

pub fn master(number: u8) -> String {
    Xpriv::new_master(Network::Regtest, &[number; 32]).unwrap().to_string()
}

/// Imports [`key`] `number` as `wpkh`, with the number as its label.
pub fn single(number: u8) -> Import {
    let text = format!("wpkh({})", wif(number).expose());
    descriptor(&text, |import| import.label = Some(number.to_string()))
}

pub fn watch(script: &ScriptBuf) -> Import {
    keys(|keys| (keys.script_pubkeys, keys.solving_data) = (vec![script.clone()], false))
}

pub fn pay(number: u8, script: &ScriptBuf, value: u64) -> Transaction {
    spend(&[elsewhere(number)], &[(script, value)])
}

pub fn out(transaction: &Transaction, vout: u32) -> OutPoint {
    OutPoint { txid: transaction.compute_txid(), vout }
}
