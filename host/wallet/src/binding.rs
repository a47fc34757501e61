//! A wallet is bound to the chain on which it was created.

use std::sync::Arc;

use outrigger_node::ChainIdentity;

use super::Shared;
use super::error::{Result, WalletError};
use super::live::Wallet;
use super::store::Store;
use super::store::tables::CHAIN;

impl Wallet {
    /// The wallet of a store. Fails with [`WalletError::OtherChain`] unless it belongs to the node's chain.
    pub(super) fn of_chain(name: String, store: Store, shared: Arc<Shared>, on_trial: bool) -> Result<Self> {
        let expected = shared.node.chain();
        let txn = store.read()?;
        let row = store.tables.meta.get(&txn, CHAIN)?.ok_or(WalletError::damaged(0))?;
        let found = ChainIdentity::from_bytes(row).ok_or(WalletError::damaged(row.len()))?;
        drop(txn);
        let other_signet = found.signet_challenge.is_some() && found != expected;
        if found.genesis != expected.genesis || other_signet {
            return Err(WalletError::OtherChain { found, expected });
        }
        Self::new(name, store, shared, on_trial)
    }
}
