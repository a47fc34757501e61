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
use outrigger_node::{Gap, Node, Result as NodeResult, Snapshot};
use outrigger_wallet_engine::WalletManager;

pub struct ChainService {
    pub node: Arc<dyn Node>,
    pub scopes: OwnScopes,
    pub published: Arc<[Publication]>,
    /// The wallets that `wait_for_wallets` waits for.
    pub wallets: Arc<WalletManager>,
}

impl ChainService {
    fn read<T>(&self, scope: Scope, read: impl FnOnce(&dyn Snapshot) -> NodeResult<T>) -> Result<T> {
        self.scopes.get(scope)?.with_chain(&*self.node, |snapshot| Ok(read(snapshot)?))
    }

    /// Asks the node itself, for data outside of snapshots.
    fn ask<T>(&self, _: Scope, ask: impl FnOnce(&dyn Node) -> NodeResult<T>) -> Result<T> {
        Ok(ask(&*self.node)?)
    }

    /// Changes the chain. The call's later reads see the change.
    fn write<T>(&self, scope: Scope, write: impl FnOnce(&dyn Node) -> NodeResult<T>) -> Result<T> {
        let call = self.scopes.get(scope)?;
        call.refresh();
        Ok(write(&*self.node)?)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Chain for ChainService {
    through! { read:
        fn info() -> ChainInfo = |chain| chain.info();
        fn block_info(block: BlockRef) -> Option<BlockInfo> = |chain| chain.block_info(block);
        fn block(hash: BlockHash) -> Option<Blob> = |chain| chain.block(hash);
        fn spent_outputs(hash: BlockHash) -> Option<Vec<SpentOutputs>> = |chain| chain.spent_outputs(hash);
        fn transaction(txid: Txid) -> Option<ConfirmedTransaction> = |chain| chain.transaction(txid);
        fn coins(outpoints: Vec<OutPoint>) -> Vec<Option<Coin>> = |chain| chain.coins(&outpoints);
        fn fork_point(hash: BlockHash) -> Option<BlockInfo> = |chain| chain.fork_point(hash);
        fn tips() -> Vec<ChainTip> = |chain| chain.tips();
        fn coins_after(outpoint: Option<OutPoint>, limit: u32) -> Vec<UnspentOutput> =
            |chain| chain.coins_after(outpoint.as_ref(), limit);
    }

    through! { write:
        fn submit_block(raw: Blob) -> Verdict = |node| node.submit_block(&raw);
        fn submit_header(raw: Blob) -> Verdict = |node| node.submit_header(&raw);
        fn invalidate_block(hash: BlockHash) -> () = |node| node.invalidate_block(hash);
        fn reconsider_block(hash: BlockHash) -> () = |node| node.reconsider_block(hash);
        fn precious_block(hash: BlockHash) -> () = |node| node.precious_block(hash);
    }

    through! { ask:
        fn next_block() -> NextBlock = |node| node.next_block();
        fn check_block(raw: Blob) -> Verdict = |node| node.check_block(&raw);
        fn set_mock_time(seconds: u64) -> () = |node| node.set_mock_time(seconds);
        fn deployments(hash: BlockHash) -> Option<Vec<Deployment>> = |node| node.deployments(hash);
    }

    fn tip(&self, scope: Scope) -> Result<Tip> {
        self.scopes.get(scope)?.tip(&*self.node)
    }

    fn time(&self, _: Scope) -> Result<u64> {
        Ok(self.node.time())
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
