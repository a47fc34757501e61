use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bitcoin::consensus::deserialize;
use bitcoin::{Block, BlockHash, Network, OutPoint, SignedAmount, Transaction, Txid};
use outrigger_node::interest::concerning;
use outrigger_node::search::{Found, FoundBlock, matching};
use outrigger_node::{Findings, Gap, Link, Node, NodeError, Observer, Result, ScriptSet, Snapshot};
use outrigger_sdk::FeeRate;
use outrigger_sdk::testing::{StubChain, StubMempool};
use outrigger_service::chain::{
    BlockInfo, BlockRef, ChainInfo, ChainTip, Coin, ConfirmedTransaction, Deployment, NextBlock, SpentOutputs, Tip,
    Verdict,
};
use outrigger_service::mempool::{Admission, Candidate, FeeEstimate, MempoolEntry, MempoolInfo, Prioritised};
use outrigger_service::wire::Blob;
use outrigger_service::{Chain, ErrorKind, Mempool, Scope, ServiceError};

use crate::{Faults, ScriptedNode};

fn node_error(error: ServiceError) -> NodeError {
    match error.kind {
        ErrorKind::Refused => NodeError::Refused(error.detail),
        ErrorKind::Storage => NodeError::Storage(error.detail),
        _ => NodeError::Internal(error.to_string()),
    }
}

impl ScriptedNode {
    /// Queries the chain, after the faults that the test has set.
    fn chain<T>(&self, ask: impl FnOnce(&StubChain) -> outrigger_service::Result<T>) -> Result<T> {
        self.faults.pass()?;
        ask(&self.chain).map_err(node_error)
    }

    /// Queries the mempool, after the faults that the test has set.
    fn mempool<T>(&self, ask: impl FnOnce(&StubMempool) -> outrigger_service::Result<T>) -> Result<T> {
        self.faults.pass()?;
        ask(&self.mempool).map_err(node_error)
    }

    /// As [`Self::chain`]; an unknown block is [`NodeError::UnknownBlock`].
    fn mark(&self, hash: BlockHash, ask: impl FnOnce(&StubChain) -> outrigger_service::Result<()>) -> Result<()> {
        self.faults.pass()?;
        ask(&self.chain).map_err(|error| match error.kind {
            ErrorKind::NotFound => NodeError::UnknownBlock(hash),
            _ => node_error(error),
        })
    }
}

impl Node for ScriptedNode {
    fn network(&self) -> Network {
        Network::Regtest
    }

    fn tip(&self) -> Tip {
        let tip = self.chain.tip(Scope::NONE);
        tip.unwrap_or_else(|error| unreachable!("the stub always has a tip: {error}"))
    }

    fn gap(&self) -> Result<Gap> {
        self.faults.pass()?;
        Ok(self.faults.gap())
    }

    fn release(&self) -> Option<u32> {
        Some(self.release.load(Ordering::Relaxed)).filter(|release| *release > 0)
    }

    fn link(&self) -> Option<Link> {
        Some(Link { reached: !self.faults.is_absent(), ..Link::default() })
    }

    fn time(&self) -> u64 {
        self.chain.time(Scope::NONE).unwrap_or_default()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        self.faults.pass()?;
        Ok(Box::new(ScriptedSnapshot { tip: self.tip(), chain: self.chain.clone(), faults: self.faults.clone() }))
    }

    fn observe(&self, observer: Arc<dyn Observer>) {
        self.observers.lock().push(observer);
    }

    fn set_mock_time(&self, seconds: u64) -> Result<()> {
        self.chain(|chain| chain.set_mock_time(Scope::NONE, seconds))
    }

    fn next_block(&self) -> Result<NextBlock> {
        self.chain(|chain| chain.next_block(Scope::NONE))
    }

    fn deployments(&self, hash: BlockHash) -> Result<Option<Vec<Deployment>>> {
        self.chain(|chain| chain.deployments(Scope::NONE, hash))
    }

    fn check_block(&self, raw: &[u8]) -> Result<Verdict> {
        self.chain(|chain| chain.check_block(Scope::NONE, raw.to_vec().into()))
    }

    fn submit_block(&self, raw: &[u8]) -> Result<Verdict> {
        self.chain(|chain| chain.submit_block(Scope::NONE, raw.to_vec().into()))
    }

    fn submit_header(&self, raw: &[u8]) -> Result<Verdict> {
        self.chain(|chain| chain.submit_header(Scope::NONE, raw.to_vec().into()))
    }

    fn invalidate_block(&self, hash: BlockHash) -> Result<()> {
        self.mark(hash, |chain| chain.invalidate_block(Scope::NONE, hash))
    }

    fn reconsider_block(&self, hash: BlockHash) -> Result<()> {
        self.mark(hash, |chain| chain.reconsider_block(Scope::NONE, hash))
    }

    fn precious_block(&self, hash: BlockHash) -> Result<()> {
        self.mark(hash, |chain| chain.precious_block(Scope::NONE, hash))
    }

    fn mempool_info(&self) -> Result<MempoolInfo> {
        self.mempool(|mempool| mempool.info(Scope::NONE))
    }

    fn mempool_ids(&self) -> Result<Vec<Txid>> {
        self.mempool(|mempool| mempool.ids(Scope::NONE))
    }

    fn mempool_entries(&self, txids: &[Txid]) -> Result<Vec<Option<MempoolEntry>>> {
        self.mempool(|mempool| mempool.entries(Scope::NONE, txids.to_vec()))
    }

    fn mempool_transactions(&self, txids: &[Txid]) -> Result<Vec<Option<Blob>>> {
        self.mempool(|mempool| mempool.transactions(Scope::NONE, txids.to_vec()))
    }

    fn mempool_concerning(&self, wanted: &dyn Fn(u64) -> bool) -> Result<Vec<(Txid, Arc<Transaction>)>> {
        self.faults.pass()?;
        let all = self.pool().into_iter().map(|transaction| (transaction.compute_txid(), Arc::new(transaction)));
        Ok(concerning(all, wanted))
    }

    fn mempool_spenders(&self, outpoints: &[OutPoint]) -> Result<Vec<Option<Txid>>> {
        self.mempool(|mempool| mempool.spenders(Scope::NONE, outpoints.to_vec()))
    }

    fn submit(&self, raw: &[u8], max_feerate: FeeRate) -> Result<Admission> {
        let (raw, drops) = (raw.to_vec().into(), self.faults.drops_submitted());
        let take = if drops { StubMempool::try_submit } else { StubMempool::submit };
        self.faults.submit(|| take(&self.mempool, Scope::NONE, raw, max_feerate).map_err(node_error))
    }

    fn try_submit(&self, raw: &[u8], max_feerate: FeeRate) -> Result<Admission> {
        self.mempool(|mempool| mempool.try_submit(Scope::NONE, raw.to_vec().into(), max_feerate))
    }

    fn fee_estimate(&self, blocks: u32, _: bool) -> Result<FeeEstimate> {
        Ok(FeeEstimate { feerate: None, blocks })
    }

    fn candidate(&self, known: Option<u64>) -> Result<Option<Candidate>> {
        self.mempool(|mempool| Ok(mempool.candidate(Scope::NONE, known)?.read()?))
    }

    fn prioritise(&self, txid: Txid, fee_delta: SignedAmount) -> Result<()> {
        self.mempool(|mempool| mempool.prioritise(Scope::NONE, txid, fee_delta))
    }

    fn prioritised(&self) -> Result<Vec<Prioritised>> {
        self.mempool(|mempool| mempool.prioritised(Scope::NONE))
    }
}

/// A snapshot of the tip only. All other reads see the current chain, so a test can change it under a reader.
struct ScriptedSnapshot {
    tip: Tip,
    chain: Arc<StubChain>,
    faults: Arc<Faults>,
}

impl Drop for ScriptedSnapshot {
    fn drop(&mut self) {
        self.faults.let_go();
    }
}

impl ScriptedSnapshot {
    fn ask<T>(&self, ask: impl FnOnce(&StubChain) -> outrigger_service::Result<T>) -> Result<T> {
        self.faults.pass()?;
        ask(&self.chain).map_err(node_error)
    }

    fn info_at(&self, height: u32) -> Result<Option<BlockInfo>> {
        self.ask(|chain| chain.block_info(Scope::NONE, BlockRef::Height { height }))
    }

    fn read(&self, hash: BlockHash, height: u32) -> Result<Option<Blob>> {
        if self.faults.block(hash, height)? { self.ask(|chain| chain.block(Scope::NONE, hash)) } else { Ok(None) }
    }
}

impl Snapshot for ScriptedSnapshot {
    fn tip(&self) -> Tip {
        self.tip
    }

    fn info(&self) -> Result<ChainInfo> {
        self.ask(|chain| chain.info(Scope::NONE))
    }

    fn block_info(&self, block: BlockRef) -> Result<Option<BlockInfo>> {
        self.ask(|chain| chain.block_info(Scope::NONE, block))
    }

    fn block(&self, hash: BlockHash) -> Result<Option<Blob>> {
        let info = self.block_info(BlockRef::Hash { hash })?;
        info.map_or(Ok(None), |info| self.read(hash, info.height))
    }

    fn spent_outputs(&self, hash: BlockHash) -> Result<Option<Vec<SpentOutputs>>> {
        self.ask(|chain| chain.spent_outputs(Scope::NONE, hash))
    }

    fn transaction(&self, txid: Txid) -> Result<Option<ConfirmedTransaction>> {
        self.ask(|chain| chain.transaction(Scope::NONE, txid))
    }

    fn coins(&self, outpoints: &[OutPoint]) -> Result<Vec<Option<Coin>>> {
        self.ask(|chain| chain.coins(Scope::NONE, outpoints.to_vec()))
    }

    fn fork_point(&self, hash: BlockHash) -> Result<Option<BlockInfo>> {
        self.ask(|chain| chain.fork_point(Scope::NONE, hash))
    }

    fn tips(&self) -> Result<Vec<ChainTip>> {
        self.ask(|chain| chain.tips(Scope::NONE))
    }

    fn max_time(&self, height: u32) -> Result<u32> {
        let mut max = 0;
        for height in 0..=height {
            let info = self.info_at(height)?;
            let time = info.and_then(|info| info.header.get(68..72)?.try_into().ok().map(u32::from_le_bytes));
            max = max.max(time.unwrap_or_default());
        }
        Ok(max)
    }

    /// Reads every block: there is no index.
    fn find(&self, heights: Range<u32>, wanted: &ScriptSet) -> Result<Findings> {
        let mut blocks = Vec::new();
        for height in heights.clone() {
            let Some(info) = self.info_at(height)? else { break };
            let spent = self.spent_outputs(info.hash)?.unwrap_or_default();
            let block = self.read(info.hash, height).ok().flatten().and_then(|raw| deserialize::<Block>(&raw).ok());
            let found = block
                .map(|block| Found { time: block.header.time, transactions: matching(block, &[], &spent, wanted) });
            blocks.push(FoundBlock { hash: info.hash, height, max_time: self.max_time(height)?, found });
        }
        Ok(Findings { tip: self.tip.hash, blocks, next: heights.end })
    }
}
