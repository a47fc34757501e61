//! The engine against a chain and a mempool in memory.

mod backups;
mod busy;
mod contract;
mod encryption;
mod follow;
mod history;
mod imports;
mod many;
mod model;
mod rescans;
mod rules;
mod signatures;
mod truth;
mod wallets;

use std::ops::Range;
use std::sync::Arc;

use bitcoin::absolute::LockTime;
use bitcoin::consensus::deserialize;
use bitcoin::hashes::Hash;
use bitcoin::{
    Amount, Block, BlockHash, Network, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid, Witness,
    transaction,
};
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::chain::{BlockInfo, BlockRef};
use outrigger_sdk::service::events::Event;
use outrigger_sdk::service::wallet::{
    AddressType, CreateOptions, DescriptorImport, HistoryRowView, Import, Replaceable, WalletCoin, WalletTransaction,
};
use outrigger_sdk::service::{Chain, ErrorKind, Result as ServiceResult};
use outrigger_sdk::testing::{MemoryChain, MemoryMempool};
use outrigger_sdk::wire::Secret;
use parking_lot::Mutex;
use tempfile::TempDir;

use super::follow::header_time;
use super::{Settings, WalletManager, WalletView};
use crate::node::find::{Finder, Findings, Found, FoundBlock, ScriptSet, matching};
use crate::node::observer::{NodeEvent, Observer, Removal};

/// The first chain's subsidy, in satoshi.
const SUBSIDY: u64 = 50 * 100_000_000;

fn settings() -> Settings {
    Settings {
        keypool: 20,
        least_map: 64 << 20,
        max_readers: 64,
        kdf_memory_kib: 64,
        kdf_passes: 1,
        data_directory: None,
    }
}

/// Searches a chain without an index, by reading every block.
struct Reader(Arc<dyn Chain>);

impl Reader {
    fn info(&self, height: u32) -> ServiceResult<Option<BlockInfo>> {
        self.0.block_info(Scope::NONE, BlockRef::Height { height })
    }

    fn max_time(&self, height: u32) -> ServiceResult<u32> {
        let mut max = 0;
        for height in 0..=height {
            max = max.max(self.info(height)?.as_ref().map_or(0, header_time));
        }
        Ok(max)
    }
}

impl Finder for Reader {
    fn first_at(&self, time: u64) -> ServiceResult<Option<u32>> {
        for height in 0..=self.0.tip(Scope::NONE)?.height {
            if u64::from(self.max_time(height)?) >= time {
                return Ok(Some(height));
            }
        }
        Ok(None)
    }

    fn find(&self, heights: Range<u32>, wanted: &ScriptSet) -> ServiceResult<Findings> {
        let mut blocks = Vec::new();
        for height in heights.clone() {
            let Some(info) = self.info(height)? else { break };
            let spent = self.0.spent_outputs(Scope::NONE, info.hash)?.unwrap_or_default();
            let block: Option<Block> =
                self.0.block(Scope::NONE, info.hash).ok().flatten().map(|raw| deserialize(&raw).unwrap());
            let found =
                block.map(|block| Found { time: block.header.time, transactions: matching(block, &spent, wanted) });
            blocks.push(FoundBlock { hash: info.hash, height, max_time: self.max_time(height)?, found });
        }
        Ok(Findings { tip: self.0.tip(Scope::NONE)?.hash, blocks, next: heights.end })
    }
}

/// A node in memory with wallets on disk.
struct Harness {
    dir: TempDir,
    chain: Arc<MemoryChain>,
    mempool: Arc<MemoryMempool>,
    pool: Mutex<Vec<Transaction>>,
    manager: Arc<WalletManager>,
    events: Arc<Mutex<Vec<Event>>>,
}

/// A folder for wallets: in memory where the system has such a place, for what a disk would sync is not what is tested.
fn scratch() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

fn open(
    dir: &TempDir,
    chain: Arc<dyn Chain>,
    mempool: &Arc<MemoryMempool>,
    events: &Arc<Mutex<Vec<Event>>>,
) -> Arc<WalletManager> {
    let events = events.clone();
    let sink = Arc::new(move |event| events.lock().push(event));
    let finder = Arc::new(Reader(chain.clone()));
    WalletManager::open(dir.path(), Network::Regtest, settings(), chain, mempool.clone(), finder, sink).unwrap()
}

impl Harness {
    fn new() -> Self {
        let chain = Arc::new(MemoryChain::new());
        Self::over(chain.clone(), chain)
    }

    /// Wallets that see the chain through `seen`.
    fn over(chain: Arc<MemoryChain>, seen: Arc<dyn Chain>) -> Self {
        let dir = scratch();
        let mempool = Arc::new(MemoryMempool::new(chain.clone()));
        let events = Arc::default();
        let manager = open(&dir, seen, &mempool, &events);
        Self { dir, chain, mempool, pool: Mutex::default(), manager, events }
    }

    /// A harness with an ordinary wallet `w`.
    fn with_wallet() -> Self {
        let harness = Self::new();
        harness.create("w", |_| {});
        harness
    }

    /// As if the host had been stopped and, after `meanwhile`, started again.
    fn restart(&mut self, meanwhile: impl FnOnce(&Self)) {
        self.manager.shutdown();
        meanwhile(self);
        self.manager = open(&self.dir, self.chain.clone(), &self.mempool, &self.events);
        self.manager.is_told();
    }

    fn create(&self, name: &str, change: impl FnOnce(&mut CreateOptions)) {
        self.try_create(name, change).unwrap();
    }

    fn try_create(&self, name: &str, change: impl FnOnce(&mut CreateOptions)) -> ServiceResult<Vec<String>> {
        let mut options = CreateOptions {
            name: name.into(),
            disable_private_keys: false,
            blank: false,
            passphrase: Secret::default(),
            avoid_reuse: false,
            descriptors: None,
            load_on_startup: Some(true),
        };
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
        let tip = self.chain.tip(Scope::NONE).unwrap();
        self.chain.disconnect();
        self.manager.notify(NodeEvent::BlockDisconnected { hash: tip.hash, height: tip.height });
    }

    fn accept(&self, transaction: &Transaction) {
        self.pool.lock().push(transaction.clone());
        self.mempool.add(transaction.clone(), 1000);
        let transaction = Arc::new(transaction.clone());
        self.manager.notify(NodeEvent::TransactionAdded {
            transaction,
            time: self.chain.time(Scope::NONE).unwrap(),
            sequence: 0,
        });
    }

    /// Takes a transaction out of the mempool, if it is there.
    fn take_out(&self, txid: Txid, reason: Removal) {
        let mut pool = self.pool.lock();
        let before = pool.len();
        pool.retain(|transaction| transaction.compute_txid() != txid);
        if pool.len() == before {
            return;
        }
        self.mempool.clear();
        pool.iter().for_each(|transaction| self.mempool.add(transaction.clone(), 1000));
        drop(pool);
        self.manager.notify(NodeEvent::TransactionRemoved { txid, reason, sequence: 0 });
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

/// A transaction as the wallet tells it.
#[derive(Debug)]
struct Known {
    row: WalletTransaction,
    conflicts: Vec<Txid>,
    mempool_conflicts: Vec<Txid>,
    trusted: bool,
    replaceable: Replaceable,
}

impl Known {
    fn read(row: HistoryRowView<'_>) -> Self {
        let outlook = row.open().unwrap().1;
        Self {
            row: row.transaction.read().unwrap(),
            conflicts: outlook.conflicts.iter().collect(),
            mempool_conflicts: outlook.mempool_conflicts.iter().collect(),
            trusted: outlook.trusted,
            replaceable: outlook.replaceable,
        }
    }
}

impl std::ops::Deref for Known {
    type Target = WalletTransaction;
    fn deref(&self) -> &WalletTransaction {
        &self.row
    }
}

fn coins(view: &WalletView) -> Vec<WalletCoin> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let batch = view.coins(after, 3).unwrap();
        all.extend(batch.coins);
        after = batch.next;
        if after.is_none() {
            return all;
        }
    }
}

/// A script that no wallet here has.
fn foreign(number: u8) -> ScriptBuf {
    ScriptBuf::from_bytes([&[0, 20][..], &[0xee; 19], &[number]].concat())
}

/// An outpoint that no wallet here knows.
fn elsewhere(number: u8) -> OutPoint {
    OutPoint { txid: Txid::from_byte_array([number; 32]), vout: 0 }
}

fn spend(inputs: &[OutPoint], outputs: &[(&ScriptBuf, u64)]) -> Transaction {
    Transaction {
        version: transaction::Version::TWO,
        lock_time: LockTime::ZERO,
        input: inputs
            .iter()
            .map(|outpoint| TxIn {
                previous_output: *outpoint,
                script_sig: ScriptBuf::new(),
                sequence: Sequence::MAX,
                witness: Witness::new(),
            })
            .collect(),
        output: outputs
            .iter()
            .map(|(script, value)| TxOut { value: Amount::from_sat(*value), script_pubkey: (*script).clone() })
            .collect(),
    }
}

fn kind_of<T: std::fmt::Debug>(result: ServiceResult<T>) -> ErrorKind {
    result.expect_err("it is refused").kind
}

fn descriptor(text: &str, change: impl FnOnce(&mut DescriptorImport)) -> Import {
    let mut descriptor = DescriptorImport {
        text: Secret::new(text.into()),
        range: None,
        next_index: None,
        active: false,
        internal: None,
        label: None,
        timestamp: 1,
    };
    change(&mut descriptor);
    Import::Descriptor { descriptor }
}
