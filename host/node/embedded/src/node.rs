//! Implements the host's node traits.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bitcoin::{BlockHash, Network, OutPoint, SignedAmount, Transaction, Txid};
use outrigger_node::interest::concerning;
use outrigger_node::{CoinScripts, Findings, Node, NodeError, Observer, Result, ScriptSet, Snapshot};
use outrigger_service::chain::{
    BlockInfo, BlockRef, ChainInfo, ChainTip, Coin, CoinSearch, ConfirmedTransaction, Deployment, NextBlock,
    SpentOutputs, Tip, UnspentOutput, Verdict,
};
use outrigger_service::mempool::{
    Admission, Candidate, FeeEstimate, MempoolEntry, MempoolInfo, PackageOutcome, Prioritised, RawTransaction,
};
use outrigger_service::wire::Blob;
use outrigger_values::FeeRate;

use super::{ChainSnapshot, EmbeddedNode};

impl Node for EmbeddedNode {
    fn network(&self) -> Network {
        self.settings.network
    }

    fn tip(&self) -> Tip {
        self.tip()
    }

    fn time(&self) -> u64 {
        self.time()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        Ok(Box::new(self.snapshot()?))
    }

    fn observe(&self, observer: Arc<dyn Observer>) {
        self.observe(observer);
    }

    fn finish(&self) {
        self.finish();
    }

    fn set_mock_time(&self, seconds: u64) -> Result<()> {
        self.set_mock_time(seconds);
        Ok(())
    }

    fn next_block(&self) -> Result<NextBlock> {
        Ok(self.next_block())
    }

    fn deployments(&self, hash: BlockHash) -> Result<Option<Vec<Deployment>>> {
        Ok(self.deployments(hash)?)
    }

    fn check_block(&self, raw: &[u8]) -> Result<Verdict> {
        Ok(self.check_block(raw)?)
    }

    fn submit_block(&self, raw: &[u8]) -> Result<Verdict> {
        Ok(self.submit_block(raw)?)
    }

    fn submit_header(&self, raw: &[u8]) -> Result<Verdict> {
        Ok(self.submit_header(raw)?)
    }

    fn invalidate_block(&self, hash: BlockHash) -> Result<()> {
        Ok(self.invalidate_block(hash)?)
    }

    fn reconsider_block(&self, hash: BlockHash) -> Result<()> {
        Ok(self.reconsider_block(hash)?)
    }

    fn precious_block(&self, hash: BlockHash) -> Result<()> {
        Ok(self.precious_block(hash)?)
    }

    fn mempool_info(&self) -> Result<MempoolInfo> {
        Ok(self.mempool_info())
    }

    fn mempool_ids(&self) -> Result<Vec<Txid>> {
        Ok(self.mempool_ids())
    }

    fn mempool_entries(&self, txids: &[Txid]) -> Result<Vec<Option<MempoolEntry>>> {
        Ok(self.mempool_entries(txids))
    }

    fn mempool_transactions(&self, txids: &[Txid]) -> Result<Vec<Option<RawTransaction>>> {
        Ok(self.mempool_transactions(txids))
    }

    fn mempool_concerning(&self, wanted: &dyn Fn(u64) -> bool) -> Result<Vec<(Txid, Arc<Transaction>)>> {
        // The scripts are hashed after the mempool's lock is released.
        let all = self.mempool_all();
        Ok(concerning(all, wanted))
    }

    fn mempool_spenders(&self, outpoints: &[OutPoint]) -> Result<Vec<Option<Txid>>> {
        Ok(self.mempool_spenders(outpoints))
    }

    fn mempool_unbroadcast(&self, txids: &[Txid]) -> Result<Vec<bool>> {
        Ok(self.mempool_unbroadcast(txids))
    }

    fn submit(&self, raw: &[u8], max_feerate: FeeRate) -> Result<Admission> {
        Ok(self.submit(raw, max_feerate)?)
    }

    fn try_submit(&self, raw: &[u8], max_feerate: FeeRate) -> Result<Admission> {
        Ok(self.try_submit(raw, max_feerate)?)
    }

    fn submit_package(&self, raw: &[Blob], max_feerate: FeeRate) -> Result<PackageOutcome> {
        Ok(self.submit_package(raw, max_feerate)?)
    }

    fn try_package(&self, raw: &[Blob]) -> Result<PackageOutcome> {
        Ok(self.try_package(raw)?)
    }

    /// None, as in a bitcoind that has seen no transactions.
    fn fee_estimate(&self, _: u32, _: bool) -> Result<FeeEstimate> {
        Ok(FeeEstimate { feerate: None, blocks: 0 })
    }

    fn candidate(&self, known: Option<u64>) -> Result<Option<Candidate>> {
        Ok(self.candidate(known)?)
    }

    fn prioritise(&self, txid: Txid, fee_delta: SignedAmount) -> Result<()> {
        Ok(self.prioritise(txid, fee_delta)?)
    }

    fn prioritised(&self) -> Result<Vec<Prioritised>> {
        Ok(self.prioritised())
    }

    fn save_mempool(&self) -> Result<PathBuf> {
        self.save_mempool().map_err(|error| NodeError::Refused(error.to_string()))
    }
}

impl Snapshot for ChainSnapshot {
    fn tip(&self) -> Tip {
        self.tip()
    }

    fn info(&self) -> Result<ChainInfo> {
        Ok(self.info()?)
    }

    fn block_info(&self, block: BlockRef) -> Result<Option<BlockInfo>> {
        Ok(self.block_info(block)?)
    }

    fn block(&self, hash: BlockHash) -> Result<Option<Blob>> {
        Ok(self.block(hash)?)
    }

    fn spent_outputs(&self, hash: BlockHash) -> Result<Option<Vec<SpentOutputs>>> {
        Ok(self.spent_outputs(hash)?)
    }

    fn transaction(&self, txid: Txid) -> Result<Option<ConfirmedTransaction>> {
        Ok(self.transaction(txid)?)
    }

    fn coins(&self, outpoints: &[OutPoint]) -> Result<Vec<Option<Coin>>> {
        Ok(self.coins(outpoints)?)
    }

    fn coins_after(&self, outpoint: Option<&OutPoint>, limit: u32) -> Result<Vec<UnspentOutput>> {
        Ok(self.coins_after(outpoint, limit)?)
    }

    fn find_coins(&self, scripts: CoinScripts<'_>, outpoint: Option<&OutPoint>, limit: u32) -> Result<CoinSearch> {
        Ok(self.find_coins(scripts, outpoint, limit)?)
    }

    fn fork_point(&self, hash: BlockHash) -> Result<Option<BlockInfo>> {
        Ok(self.fork_point(hash)?)
    }

    fn tips(&self) -> Result<Vec<ChainTip>> {
        Ok(self.tips()?)
    }

    fn first_at(&self, time: u64) -> Result<Option<u32>> {
        Ok(self.first_at(time)?)
    }

    fn find(&self, heights: Range<u32>, wanted: &ScriptSet) -> Result<Findings> {
        Ok(self.find(heights, wanted)?)
    }
}
