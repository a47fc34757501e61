//! A wallet is bound to the chain that it was made on.

use std::sync::Arc;

use bitcoin::BlockHash;
use bitcoin::hashes::Hash;
use outrigger_node::ChainIdentity;

use super::Shared;
use super::error::{Result, WalletError};
use super::live::Wallet;
use super::store::Store;
use super::store::tables::CHAIN;

impl Wallet {
    /// The wallet of a store, which has to be of the node's chain.
    ///
    /// # Errors
    /// [`WalletError::OtherChain`].
    pub(super) fn of_chain(name: String, store: Store, shared: Arc<Shared>) -> Result<Self> {
        let expected = shared.node.chain();
        match stored_chain(&store)? {
            Some(found) if found.genesis != expected.genesis => Err(WalletError::OtherChain { found, expected }),
            Some(found) if found.signet_challenge.is_some() && found != expected => {
                Err(WalletError::OtherChain { found, expected })
            }
            _ => Self::new(name, store, shared),
        }
    }

    /// Binds a wallet that was made before wallets were bound. It has followed the node's chain to its tip, so it is of that chain;
    /// where the node is away, that is not known yet.
    pub(super) fn bind(&self) -> Result<()> {
        let t = &self.store.tables;
        if t.meta.get(&*self.store.read()?, CHAIN)?.is_some() || self.lag.lock().is_some() {
            return Ok(());
        }
        let chain = self.shared.node.chain().to_bytes();
        self.write(|write| Ok(write.t.meta.put(&mut write.txn, CHAIN, &chain)?))
    }
}

/// The chain that a wallet is of, as far as its file says: that of its row, else that of the genesis block, if it has followed it.
fn stored_chain(store: &Store) -> Result<Option<ChainIdentity>> {
    let txn = store.read()?;
    if let Some(row) = store.tables.meta.get(&txn, CHAIN)? {
        return Ok(Some(ChainIdentity::from_bytes(row).ok_or(WalletError::damaged(row.len()))?));
    }
    let first = store.tables.blocks.get(&txn, &0_u32.to_be_bytes())?;
    let genesis = first.and_then(|row| BlockHash::from_slice(row).ok());
    Ok(genesis.map(|genesis| ChainIdentity { genesis, signet_challenge: None }))
}
