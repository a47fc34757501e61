//! The engine against a chain and a mempool in memory.

mod backups;
mod binding;
mod busy;
mod encryption;
mod follow;
mod gap;
mod guarding;
mod history;
mod imports;
mod locks;
mod log;
mod many;
mod pruned_funds;
mod rescans;
mod rules;
mod wallets;

use std::sync::Arc;
use std::time::Duration;

use bitcoin::{Amount, Block, BlockHash, ScriptBuf, Transaction, Txid};
use outrigger_scripted_node::ScriptedNode;
use outrigger_sdk::testing::{StubChain, StubMempool};
use outrigger_service::Scope;
use outrigger_service::chain::BlockRef;
use outrigger_service::events::Event;
use outrigger_service::wallet::{
    AddressType, CoinBatch, CreateOptions, HistoryRowView, ImportOutcome, TxState, WalletCoin, WalletTransaction,
};
use outrigger_service::wire::Blob;
use outrigger_service::{Chain, ErrorKind, Result as ServiceResult, ServiceError};
use parking_lot::Mutex;
use tempfile::TempDir;

use super::{Settings, WalletManager, WalletView};
use outrigger_node::{NodeEvent, Observer, Removal};
use outrigger_testing::made::{descriptor, elsewhere, foreign, keys, spend};
use outrigger_testing::until;

const XPRV: &str =
    "tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtHcQJCCRUcMRvmDUjyEmNUWwx8UbK";
const IMPORTED: ImportOutcome = ImportOutcome::Imported { missing_private_keys: false, unknown_output_type: false };
/// The timeout for results that should arrive immediately.
const PATIENCE: Duration = Duration::from_secs(60);
/// In satoshi.
const SUBSIDY: u64 = 50 * 100_000_000;

fn settings() -> Settings {
    Settings {
        keypool: 20,
        least_map: 64 << 20,
        max_readers: 64,
        kdf_memory_kib: 64,
        kdf_passes: 1,
        ..Settings::default()
    }
}

struct Harness {
    dir: TempDir,
    node: Arc<ScriptedNode>,
    chain: Arc<StubChain>,
    mempool: Arc<StubMempool>,
    manager: Arc<WalletManager>,
    events: Arc<Mutex<Vec<Event>>>,
}

/// A folder in memory if the system has one. The tests do not need fsync.
fn scratch() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

fn open(
    dir: &TempDir,
    settings: Settings,
    node: &Arc<ScriptedNode>,
    events: &Arc<Mutex<Vec<Event>>>,
) -> Arc<WalletManager> {
    let events = events.clone();
    let sink = Arc::new(move |event| events.lock().push(event));
    WalletManager::open(dir.path(), settings, node.clone(), sink).unwrap()
}

impl Harness {
    fn new() -> Self {
        Self::over(ScriptedNode::new())
    }

    fn over(node: Arc<ScriptedNode>) -> Self {
        let dir = scratch();
        let events = Arc::default();
        let manager = open(&dir, settings(), &node, &events);
        let (chain, mempool) = (node.chain.clone(), node.mempool.clone());
        Self { dir, node, chain, mempool, manager, events }
    }

    fn with_wallet() -> Self {
        let harness = Self::new();
        harness.create("w", |_| {});
        harness
    }

    fn blank() -> Self {
        let harness = Self::new();
        harness.create("w", |options| options.blank = true);
        harness
    }

    /// Stops the host, runs `meanwhile`, and starts the host again.
    fn restart(&mut self, meanwhile: impl FnOnce(&Self)) {
        self.restart_with(settings(), meanwhile);
    }

    fn restart_with(&mut self, settings: Settings, meanwhile: impl FnOnce(&Self)) {
        self.manager.shutdown();
        meanwhile(self);
        self.manager = open(&self.dir, settings, &self.node, &self.events);
        self.manager.is_told();
    }

    fn create(&self, name: &str, change: impl FnOnce(&mut CreateOptions)) {
        self.try_create(name, change).unwrap();
    }

    fn try_create(&self, name: &str, change: impl FnOnce(&mut CreateOptions)) -> ServiceResult<Vec<String>> {
        let mut options = CreateOptions { name: name.into(), load_on_startup: Some(true), ..CreateOptions::default() };
        change(&mut options);
        self.manager.create(options)
    }

    fn view(&self) -> WalletView {
        self.manager.select(Some("w")).unwrap()
    }

    fn address(&self, label: Option<&str>) -> ScriptBuf {
        let internal = label.is_none();
        self.view().wallet().new_address(AddressType::Bech32, internal, label.map(Into::into)).unwrap()
    }

    fn mine_to(&self, script: ScriptBuf, transactions: Vec<Transaction>) -> BlockHash {
        let confirmed: Vec<Txid> = transactions.iter().map(Transaction::compute_txid).collect();
        let hash = self.chain.mine_to(script, transactions);
        let height = self.chain.tip(Scope::NONE).unwrap().height;
        for txid in confirmed {
            self.take_out(txid, Removal::Confirmed);
        }
        self.manager.notify(NodeEvent::BlockConnected { hash, height });
        self.manager.notify(NodeEvent::TipChanged { hash, height });
        hash
    }

    fn mine(&self, transactions: Vec<Transaction>) -> BlockHash {
        self.mine_to(foreign(0), transactions)
    }

    fn disconnect(&self) {
        self.disconnect_blocks(1);
    }

    /// Disconnects blocks as a node does: its chain has changed before it announces the first of them.
    fn disconnect_blocks(&self, count: u32) {
        let off = |_| {
            let tip = self.chain.tip(Scope::NONE).unwrap();
            self.chain.disconnect();
            tip
        };
        for tip in (0..count).map(off).collect::<Vec<_>>() {
            self.manager.notify(NodeEvent::BlockDisconnected { hash: tip.hash, height: tip.height });
        }
    }

    fn accept(&self, transaction: &Transaction) {
        self.mempool.add(transaction.clone(), Amount::from_sat(1000));
        let transaction = Arc::new(transaction.clone());
        self.manager.notify(NodeEvent::TransactionAdded {
            transaction,
            time: self.chain.time(Scope::NONE).unwrap(),
            sequence: 0,
        });
    }

    /// Removes a transaction from the mempool, if it is there.
    fn take_out(&self, txid: Txid, reason: Removal) {
        if self.mempool.remove(txid) {
            self.manager.notify(NodeEvent::TransactionRemoved { txid, reason, sequence: 0 });
        }
    }

    fn transaction(&self, txid: Txid) -> Option<Known> {
        let answer = self.view().transactions(&[txid]).unwrap();
        answer.view().unwrap().rows.iter().next().map(Known::read)
    }

    fn known(&self, txid: Txid) -> Known {
        self.transaction(txid).expect("the wallet knows it")
    }

    fn coins(&self) -> Vec<WalletCoin> {
        coins(&self.view())
    }

    fn block(&self, hash: BlockHash) -> Block {
        self.chain.get(hash).unwrap()
    }

    fn height_of(&self, hash: BlockHash) -> u32 {
        self.chain.block_info(Scope::NONE, BlockRef::Hash { hash }).unwrap().unwrap().height
    }
}

#[derive(Debug)]
struct Known {
    row: WalletTransaction,
    conflicts: Vec<Txid>,
    mempool_conflicts: Vec<Txid>,
    trusted: bool,
}

impl Known {
    fn read(row: HistoryRowView<'_>) -> Self {
        let unsettled = row.open().unwrap().1;
        Self {
            row: row.transaction.read().unwrap(),
            conflicts: unsettled.conflicts.iter().collect(),
            mempool_conflicts: unsettled.mempool_conflicts.iter().collect(),
            trusted: unsettled.trusted,
        }
    }
}

impl std::ops::Deref for Known {
    type Target = WalletTransaction;
    fn deref(&self) -> &WalletTransaction {
        &self.row
    }
}

/// All coins. Compares the cached sums and labels with the tables, and the mempool's coins with these among all.
fn coins(view: &WalletView) -> Vec<WalletCoin> {
    view.check_kept();
    let read = |batch: &dyn Fn(Option<&[u8]>) -> crate::error::Result<CoinBatch>| {
        let (mut all, mut after): (Vec<WalletCoin>, Option<Blob>) = (Vec::new(), None);
        loop {
            let batch = batch(after.as_deref()).unwrap();
            all.extend(batch.coins);
            after = batch.next;
            if after.is_none() {
                return all;
            }
        }
    };
    let all = read(&|after| view.coins(after, 3));
    let unconfirmed: Vec<_> = all.iter().filter(|coin| coin.state == TxState::InMempool).cloned().collect();
    assert_eq!(read(&|after| view.mempool_coins(after, 1)), unconfirmed);
    all
}

fn kind_of<T: std::fmt::Debug, E: Into<ServiceError>>(result: Result<T, E>) -> ErrorKind {
    let error: ServiceError = result.expect_err("it is refused").into();
    error.kind
}
