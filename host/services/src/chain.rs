//! `chain/1` on a node.

use std::sync::Arc;

use bitcoin::{BlockHash, Network, OutPoint, ScriptBuf, Txid};
use outrigger_service::chain::{
    BlockInfo, BlockRef, ChainInfo, ChainTip, Coin, CoinSearch, ConfirmedTransaction, Cursor, Deployment, NextBlock,
    Publication, SpentOutputs, Steps, Tip, UnspentOutput, Verdict,
};
use outrigger_service::wire::{Blob, Encoded};
use outrigger_service::{Chain, Result, Scope};

use super::OwnScopes;
use super::steps::StepReads;
use outrigger_node::{Gap, Node, NodeError, Snapshot};
use outrigger_wallet_engine::WalletManager;

pub struct ChainService {
    pub node: Arc<dyn Node>,
    pub scopes: OwnScopes,
    pub published: Arc<[Publication]>,
    /// The wallets that `wait_for_wallets` waits for.
    pub wallets: Arc<WalletManager>,
}

impl ChainService {
    fn read<T>(
        &self,
        scope: Scope,
        read: impl FnOnce(&dyn Snapshot) -> std::result::Result<T, NodeError>,
    ) -> Result<T> {
        self.scopes.get(scope)?.with_chain(&*self.node, |snapshot| Ok(read(snapshot)?))
    }

    /// Changes the chain. The call's later reads see the change.
    fn write<T>(&self, scope: Scope, write: impl FnOnce(&dyn Node) -> std::result::Result<T, NodeError>) -> Result<T> {
        let call = self.scopes.get(scope)?;
        call.refresh();
        Ok(write(&*self.node)?)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Chain for ChainService {
    fn tip(&self, scope: Scope) -> Result<Tip> {
        self.scopes.get(scope)?.tip(&*self.node)
    }

    fn info(&self, scope: Scope) -> Result<ChainInfo> {
        self.read(scope, |snapshot| snapshot.info())
    }

    fn block_info(&self, scope: Scope, block: BlockRef) -> Result<Option<BlockInfo>> {
        self.read(scope, |snapshot| snapshot.block_info(block))
    }

    fn block(&self, scope: Scope, hash: BlockHash) -> Result<Option<Blob>> {
        self.read(scope, |snapshot| snapshot.block(hash))
    }

    fn spent_outputs(&self, scope: Scope, hash: BlockHash) -> Result<Option<Vec<SpentOutputs>>> {
        self.read(scope, |snapshot| snapshot.spent_outputs(hash))
    }

    fn transaction(&self, scope: Scope, txid: Txid) -> Result<Option<ConfirmedTransaction>> {
        self.read(scope, |snapshot| snapshot.transaction(txid))
    }

    fn coins(&self, scope: Scope, outpoints: Vec<OutPoint>) -> Result<Vec<Option<Coin>>> {
        self.read(scope, |snapshot| snapshot.coins(&outpoints))
    }

    fn fork_point(&self, scope: Scope, hash: BlockHash) -> Result<Option<BlockInfo>> {
        self.read(scope, |snapshot| snapshot.fork_point(hash))
    }

    fn tips(&self, scope: Scope) -> Result<Vec<ChainTip>> {
        self.read(scope, |snapshot| snapshot.tips())
    }

    fn next_block(&self, _: Scope) -> Result<NextBlock> {
        Ok(self.node.next_block()?)
    }

    fn time(&self, _: Scope) -> Result<u64> {
        Ok(self.node.time())
    }

    fn check_block(&self, _: Scope, raw: Blob) -> Result<Verdict> {
        Ok(self.node.check_block(&raw)?)
    }

    fn submit_block(&self, scope: Scope, raw: Blob) -> Result<Verdict> {
        self.write(scope, |node| node.submit_block(&raw))
    }

    fn submit_header(&self, scope: Scope, raw: Blob) -> Result<Verdict> {
        self.write(scope, |node| node.submit_header(&raw))
    }

    fn invalidate_block(&self, scope: Scope, hash: BlockHash) -> Result<()> {
        self.write(scope, |node| node.invalidate_block(hash))
    }

    fn reconsider_block(&self, scope: Scope, hash: BlockHash) -> Result<()> {
        self.write(scope, |node| node.reconsider_block(hash))
    }

    fn precious_block(&self, scope: Scope, hash: BlockHash) -> Result<()> {
        self.write(scope, |node| node.precious_block(hash))
    }

    fn set_mock_time(&self, _: Scope, seconds: u64) -> Result<()> {
        Ok(self.node.set_mock_time(seconds)?)
    }

    fn deployments(&self, _: Scope, hash: BlockHash) -> Result<Option<Vec<Deployment>>> {
        Ok(self.node.deployments(hash)?)
    }

    fn coins_after(&self, scope: Scope, outpoint: Option<OutPoint>, limit: u32) -> Result<Vec<UnspentOutput>> {
        self.read(scope, |snapshot| snapshot.coins_after(outpoint.as_ref(), limit))
    }

    fn find_coins(
        &self,
        scope: Scope,
        scripts: Encoded<Vec<ScriptBuf>>,
        outpoint: Option<OutPoint>,
        limit: u32,
    ) -> Result<CoinSearch> {
        let scripts = scripts.view()?;
        self.read(scope, |snapshot| snapshot.find_coins(scripts, outpoint.as_ref(), limit))
    }

    fn wait_for_wallets(&self, _: Scope) -> Result<()> {
        self.wallets.wait_for_all();
        Ok(())
    }

    fn background_validation(&self, _: Scope) -> Result<Option<u32>> {
        Ok(match self.node.gap()? {
            Gap::Background { first } => Some(first),
            Gap::None | Gap::Pruned { .. } => None,
        })
    }

    fn steps(&self, scope: Scope, after: Option<Cursor>, limit: u32, with_spent: bool) -> Result<Steps> {
        let node = &*self.node;
        self.scopes
            .get(scope)?
            .with_chain(node, |snapshot| Steps::collect(&StepReads { node, snapshot, with_spent }, after, limit))
    }

    fn network(&self, _: Scope) -> Result<Network> {
        Ok(self.node.network())
    }

    fn publications(&self, _: Scope) -> Result<Vec<Publication>> {
        Ok(self.published.to_vec())
    }
}
