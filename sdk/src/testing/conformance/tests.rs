//! The suite over the store in memory, and over stores that each break one promise.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Happening, Report, Subject, TestNode, compare, run};
use crate::service::{Scope, Signer, Wallet};
use crate::testing::MemoryWallet;

/// The store in memory.
pub struct InMemory {
    pub node: TestNode,
    pub wallet: MemoryWallet,
    calls: AtomicU64,
}

impl InMemory {
    pub fn new() -> Self {
        let node = TestNode::new();
        let wallet = MemoryWallet::over(node.chain.clone(), node.mempool.clone());
        Self { node, wallet, calls: AtomicU64::new(1) }
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
        let scope = Scope(self.calls.fetch_add(1, Ordering::Relaxed));
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

fn fresh() -> Box<dyn Subject> {
    Box::new(InMemory::new())
}

#[test]
fn the_store_in_memory_keeps_the_contract() {
    let report = run(&fresh);
    assert!(report.is_clean(), "{report}");
    assert!(report.held.len() > 70);
}

#[test]
fn two_stores_in_memory_answer_the_same() {
    for seed in 0..4 {
        compare(seed, 60, &*fresh(), &*fresh()).unwrap();
    }
}
