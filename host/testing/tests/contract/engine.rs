//! The contract of a wallet's store: the SDK's suite over the engine, through the services that plugins ask.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger_service::{Chain, Scope, Signer, Wallet};
use outrigger_sdk::testing::MemoryWallet;
use outrigger_sdk::testing::conformance::{self, Happening, Subject, TestNode};
use parking_lot::Mutex;
use tempfile::TempDir;

use super::{WalletManager, open, scratch, settings};
use outrigger_node::events::{NodeEvent, Observer, Removal};
use outrigger_services::{Keys, OwnScopes, ScopeGuard, Scopes, WalletService};

/// The engine over a node in memory, its wallets on disk.
struct Engine {
    node: TestNode,
    // Before the folder, so that the wallets are closed first.
    service: WalletService,
    manager: Arc<WalletManager>,
    scopes: Arc<Scopes>,
    calls: Mutex<HashMap<u64, ScopeGuard>>,
    next: AtomicU64,
    /// Where the wallets are; nothing else is written there.
    _dir: TempDir,
    backups: TempDir,
}

impl Engine {
    fn new() -> Self {
        let (node, dir, backups) = (TestNode::new(), scratch(), scratch());
        let manager = open(&dir, node.chain.clone(), &node.mempool, &Arc::default());
        let scopes = Arc::new(Scopes::default());
        let own = OwnScopes::of(scopes.clone(), 0);
        let service = WalletService { manager: manager.clone(), scopes: own, keys: Keys::All };
        Self { node, service, manager, scopes, calls: Mutex::default(), next: AtomicU64::new(1), _dir: dir, backups }
    }

    fn fresh() -> Box<dyn Subject> {
        Box::new(Self::new())
    }
}

impl Subject for Engine {
    fn node(&self) -> &TestNode {
        &self.node
    }

    fn tell(&self, happening: &Happening) {
        let (event, then) = match happening.clone() {
            Happening::Added { transaction } => {
                let time = self.node.chain.time(Scope::NONE).unwrap();
                (NodeEvent::TransactionAdded { transaction: Arc::new(transaction), time, sequence: 0 }, None)
            }
            Happening::Removed { txid, confirmed } => {
                let reason = if confirmed { Removal::Confirmed } else { Removal::Dropped };
                (NodeEvent::TransactionRemoved { txid, reason, sequence: 0 }, None)
            }
            Happening::Connected { hash, height } => {
                (NodeEvent::BlockConnected { hash, height }, Some(NodeEvent::TipChanged { hash, height }))
            }
            Happening::Disconnected { hash, height } => (NodeEvent::BlockDisconnected { hash, height }, None),
        };
        std::iter::once(event).chain(then).for_each(|event| self.manager.notify(event));
        // What the engine asks the node on its own thread must not meet what happens next.
        for wallet in self.manager.loaded() {
            self.manager.wait_synced(&wallet).unwrap();
        }
    }

    fn wallet(&self) -> &dyn Wallet {
        &self.service
    }

    fn signer(&self) -> &dyn Signer {
        &self.service
    }

    fn open(&self, wallet: Option<&str>) -> Scope {
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        let guard = self.scopes.open(token, 0, wallet.map(Into::into), None, None);
        self.calls.lock().insert(token, guard);
        Scope(token)
    }

    fn close(&self, scope: Scope) {
        self.calls.lock().remove(&scope.0);
    }

    fn keypool(&self) -> u32 {
        settings().keypool
    }

    fn backup_file(&self, name: &str) -> String {
        self.backups.path().join(format!("{name}.backup")).to_str().unwrap().to_owned()
    }
}

/// The store in memory, over a node of its own.
struct InMemory {
    node: TestNode,
    wallet: MemoryWallet,
    next: AtomicU64,
}

impl InMemory {
    fn new() -> Self {
        let node = TestNode::new();
        let wallet = MemoryWallet::over(node.chain.clone(), node.mempool.clone());
        Self { node, wallet, next: AtomicU64::new(1) }
    }
}

impl Subject for InMemory {
    fn node(&self) -> &TestNode {
        &self.node
    }

    fn tell(&self, _: &Happening) {
        self.wallet.list(Scope::NONE).unwrap();
    }

    fn wallet(&self) -> &dyn Wallet {
        &self.wallet
    }

    fn signer(&self) -> &dyn Signer {
        &self.wallet
    }

    fn open(&self, wallet: Option<&str>) -> Scope {
        let scope = Scope(self.next.fetch_add(1, Ordering::Relaxed));
        if let Some(wallet) = wallet {
            self.wallet.open_call(scope, wallet);
        }
        scope
    }

    fn close(&self, scope: Scope) {
        self.wallet.close_call(scope);
    }

    fn keypool(&self) -> u32 {
        MemoryWallet::KEYPOOL
    }

    fn backup_file(&self, name: &str) -> String {
        name.to_owned()
    }
}

#[test]
fn the_engine_keeps_the_contract() {
    let report = conformance::run(&Engine::fresh);
    assert!(report.is_clean(), "{report}");
}

#[test]
fn the_engine_and_the_store_in_memory_answer_the_same() {
    let compare = |seed| conformance::compare(seed, 60, &Engine::new(), &InMemory::new()).err();
    let failures: Vec<String> = (0..10).filter_map(compare).map(|failure| failure.to_string()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
