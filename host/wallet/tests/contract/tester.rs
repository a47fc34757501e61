//! Shared helpers: calls of the wallet service, keys, scripts and transactions.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use bitcoin::bip32::Xpriv;
use bitcoin::{
    BlockHash, CompressedPublicKey, Network, NetworkKind, OutPoint, PrivateKey, PublicKey, ScriptBuf, Transaction, Txid,
};
use outrigger_node::{Node, NodeEvent};
use outrigger_scripted_node::ScriptedNode;
use outrigger_testing::TestHost;
pub use outrigger_testing::made::{descriptor, elsewhere, foreign, keys, spend};
use secp256k1::{Secp256k1, SecretKey};

use super::{Failure, Outcome};
use outrigger_service::chain::Tip;
use outrigger_service::events::Event;
use outrigger_service::wallet::{
    CoinBatch, CreateOptions, HistoryBatch, HistoryQuery, HistoryRange, HistoryRow, Import, ImportOutcome, LabelBatch,
    LabelledAddress, LabelledScript, ScriptInfo, WalletCoin, WalletInfo, WalletTransaction,
};
use outrigger_service::wire::{Blob, Encoded, Secret};
use outrigger_service::{ErrorKind, Host, Result as ServiceResult, Scope, Signer};

pub const IMPORTED: ImportOutcome = ImportOutcome::Imported { missing_private_keys: false, unknown_output_type: false };
/// The batch size for reading a whole list. Small, so that there are several batches.
const BATCH: u32 = 2;
/// The maximum number of batches of a list. More count as endless.
const MAX_BATCHES: usize = 10_000;
const PATIENCE: Duration = Duration::from_secs(60);

pub const WALLET: &str = "w";

/// Wallets on a scripted node, and helpers that change both.
pub struct Tester {
    host: TestHost<ScriptedNode>,
    services: Host,
}

/// Creates the wallet `w` with [`key`] 1. Returns the script of that key.
pub fn with_key(tester: &Tester) -> Result<ScriptBuf, Failure> {
    tester.create(|_| {})?;
    tester.take(single(1)?)?;
    p2wpkh(1)
}

pub fn becomes(what: &str, holds: impl Fn() -> bool) -> Outcome {
    let begun = Instant::now();
    while !holds() {
        if begun.elapsed() > PATIENCE {
            return Err(Failure::from(format!("timed out before this held: {what}")));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

pub fn same<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Outcome {
    if found == expected {
        Ok(())
    } else {
        Err(Failure::from(format!("{what}: found {found:?}, expected {expected:?}")))
    }
}

pub fn holds(what: &str, holds: bool) -> Outcome {
    if holds { Ok(()) } else { Err(Failure::from(format!("this does not hold: {what}"))) }
}

pub fn refused<T: Debug>(what: &str, answer: ServiceResult<T>, kind: ErrorKind) -> Outcome {
    match answer {
        Err(error) if error.kind == kind => Ok(()),
        other => Err(Failure::from(format!("{what}: found {other:?}, expected the error {kind:?}"))),
    }
}

pub fn some<T>(what: &str, found: Option<T>) -> Result<T, Failure> {
    found.ok_or_else(|| Failure::from(format!("{what} is missing")))
}

impl Tester {
    pub fn new() -> Self {
        let host = TestHost::over(ScriptedNode::new());
        Self { services: host.handle(), host }
    }

    /// Creates the wallet `w`, blank unless `change` changes that.
    pub fn with(change: impl FnOnce(&mut CreateOptions)) -> Result<Self, Failure> {
        let tester = Self::new();
        tester.create(change)?;
        Ok(tester)
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

    pub fn create(&self, change: impl FnOnce(&mut CreateOptions)) -> Outcome {
        self.try_create(WALLET, change)?;
        Ok(())
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

    pub fn tip(&self) -> Result<Tip, Failure> {
        Ok(self.node().tip())
    }

    pub fn info(&self) -> Result<WalletInfo, Failure> {
        Ok(self.ask(|host, scope| host.wallet.info(scope))?)
    }

    pub fn script(&self, script: &ScriptBuf) -> Result<Option<ScriptInfo>, Failure> {
        let infos = self.ask(|host, scope| host.wallet.scripts(scope, vec![script.clone()]))?;
        same("as many answers as scripts", infos.len(), 1)?;
        Ok(infos.into_iter().next().flatten())
    }

    pub fn import(&self, imports: Vec<Import>) -> ServiceResult<Vec<ImportOutcome>> {
        self.ask(|host, scope| host.import.import(scope, imports))
    }

    pub fn take(&self, import: Import) -> Outcome {
        same("the outcome of an import", self.import(vec![import])?, vec![IMPORTED])
    }

    pub fn rescan(&self, from_time: u64) -> Outcome {
        let rescan = self.ask(|host, scope| host.import.rescan_reserve(scope))?;
        self.ask(|host, scope| host.import.rescan_start(scope, rescan, from_time))?;
        self.await_rescan()
    }

    pub fn await_rescan(&self) -> Outcome {
        let begun = Instant::now();
        while self.info()?.rescan.is_some() {
            holds("a rescan comes to its end", begun.elapsed() < PATIENCE)?;
            std::thread::sleep(Duration::from_millis(1));
        }
        self.tell(self.node().untold());
        Ok(())
    }

    pub fn rows(&self, txids: &[Txid]) -> Result<Vec<HistoryRow>, Failure> {
        let batch = self.ask(|host, scope| host.wallet.transactions(scope, txids.to_vec()))?.read()?;
        same("a batch of transactions by id has no next batch", batch.next, None)?;
        Ok(batch.rows)
    }

    pub fn row(&self, txid: Txid) -> Result<HistoryRow, Failure> {
        some("the transaction", self.rows(&[txid])?.into_iter().next())
    }

    pub fn known(&self, txid: Txid) -> Result<WalletTransaction, Failure> {
        Ok(self.row(txid)?.transaction.0)
    }

    pub fn batch(&self, range: HistoryRange, reverse: bool, after: Option<Blob>, limit: u32) -> Batch {
        let query = HistoryQuery { range, reverse, after, limit };
        self.ask(|host, scope| host.wallet.history(scope, query))
    }

    pub fn history(&self, range: HistoryRange, reverse: bool, limit: u32) -> Result<Vec<HistoryRow>, Failure> {
        all(limit, |after| {
            let batch = self.batch(range, reverse, after, limit)?.read()?;
            Ok((batch.rows, batch.next))
        })
    }

    pub fn ids(&self, range: HistoryRange, reverse: bool) -> Result<Vec<Txid>, Failure> {
        Ok(self.history(range, reverse, BATCH)?.iter().map(|row| row.transaction.0.txid).collect())
    }

    pub fn coin_batch(&self, after: Option<Blob>, limit: u32) -> ServiceResult<CoinBatch> {
        self.ask(|host, scope| host.wallet.coins(scope, after, limit))
    }

    pub fn coins(&self) -> Result<Vec<WalletCoin>, Failure> {
        all(BATCH, |after| {
            let batch = self.coin_batch(after, BATCH)?;
            Ok((batch.coins, batch.next))
        })
    }

    pub fn outpoints(&self) -> Result<Vec<OutPoint>, Failure> {
        Ok(self.coins()?.iter().map(|coin| coin.outpoint).collect())
    }

    pub fn label_batch(&self, after: Option<Blob>, limit: u32) -> ServiceResult<LabelBatch> {
        self.ask(|host, scope| host.wallet.labels(scope, after, limit))
    }

    pub fn labels(&self) -> Result<Vec<LabelledScript>, Failure> {
        let mut entries = all(BATCH, |after| {
            let batch = self.label_batch(after, BATCH)?;
            Ok((batch.entries, batch.next))
        })?;
        entries.sort_by(|one, other| one.script.cmp(&other.script));
        self.check_labels(&entries)?;
        Ok(entries)
    }

    /// Compares `label_names` and `labelled` with the whole address book.
    fn check_labels(&self, entries: &[LabelledScript]) -> Result<(), Failure> {
        let sending = self.sending()?;
        for wanted in [None, Some(true), Some(false)] {
            let of =
                entries.iter().filter(|entry| wanted.is_none_or(|wanted| sending.contains(&entry.script) == wanted));
            let names: BTreeSet<String> = of.map(|entry| entry.label.clone()).collect();
            let told = self.ask(|host, scope| host.wallet.label_names(scope, wanted))?;
            same(&format!("the labels in use, {wanted:?}"), told, names.into_iter().collect())?;
        }
        for LabelledScript { label, .. } in entries {
            let mut told = self.ask(|host, scope| host.wallet.labelled(scope, label.clone()))?;
            told.sort_by(|one, other| one.script.cmp(&other.script));
            let address = |entry: &LabelledScript| LabelledAddress {
                script: entry.script.clone(),
                sending: sending.contains(&entry.script),
            };
            let expected = entries.iter().filter(|entry| entry.label == *label).map(address).collect();
            same(&format!("the addresses with the label {label:?}"), told, expected)?;
        }
        let none = self.ask(|host, scope| host.wallet.labelled(scope, "a label that nothing has".into()))?;
        same("the addresses with a label that nothing has", none, Vec::new())
    }

    /// The scripts of the address book's `send` entries, which were not ours when they were labelled.
    pub fn sending(&self) -> Result<Vec<ScriptBuf>, Failure> {
        let mut sending = Vec::new();
        all(BATCH, |after| {
            let batch = self.label_batch(after, BATCH)?;
            sending.extend(batch.sending);
            Ok((batch.entries, batch.next))
        })?;
        Ok(sending)
    }
}

pub type Batch = ServiceResult<Encoded<HistoryBatch>>;
type Page<T> = (Vec<T>, Option<Blob>);

fn all<T>(limit: u32, mut read: impl FnMut(Option<Blob>) -> Result<Page<T>, Failure>) -> Result<Vec<T>, Failure> {
    let (mut rows, mut after) = (Vec::new(), None);
    for _ in 0..MAX_BATCHES {
        let (batch, next) = read(after)?;
        holds("a batch has at most as many rows as requested", batch.len() <= limit.max(1) as usize)?;
        holds("a batch with a next batch is not empty", next.is_none() || !batch.is_empty())?;
        rows.extend(batch);
        match next {
            None => return Ok(rows),
            next => after = next,
        }
    }
    Err("a list has too many batches".into())
}

/// The private key whose 32 bytes are all `number`.
pub fn key(number: u8) -> Result<PrivateKey, Failure> {
    Ok(PrivateKey { compressed: true, network: NetworkKind::Test, inner: SecretKey::from_slice(&[number; 32])? })
}

pub fn public(number: u8) -> Result<PublicKey, Failure> {
    Ok(key(number)?.public_key(&Secp256k1::new()))
}

pub fn wif(number: u8) -> Result<Secret, Failure> {
    Ok(Secret::new(key(number)?.to_wif()))
}

pub fn p2wpkh(number: u8) -> Result<ScriptBuf, Failure> {
    Ok(ScriptBuf::new_p2wpkh(&CompressedPublicKey(public(number)?.inner).wpubkey_hash()))
}

pub fn p2pkh(number: u8) -> Result<ScriptBuf, Failure> {
    Ok(ScriptBuf::new_p2pkh(&public(number)?.pubkey_hash()))
}

pub fn master(number: u8) -> Result<String, Failure> {
    Ok(Xpriv::new_master(Network::Regtest, &[number; 32])?.to_string())
}

/// Imports [`key`] `number` as `wpkh`, with the number as its label.
pub fn single(number: u8) -> Result<Import, Failure> {
    let text = format!("wpkh({})", wif(number)?.expose());
    Ok(descriptor(&text, |import| import.label = Some(number.to_string())))
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
