//! Implements [`Node`], the host's interface to a node.

use std::path::PathBuf;
use std::sync::Arc;

use bitcoin::{BlockHash, Network, OutPoint, SignedAmount, Transaction, Txid};
use outrigger_node::interest::concerning;
use outrigger_node::{Node, NodeError, Observer, Result, Snapshot};
use outrigger_service::chain::{Deployment, NextBlock, Tip, Verdict};
use outrigger_service::mempool::{
    Admission, Candidate, FeeEstimate, MempoolEntry, MempoolInfo, PackageOutcome, Prioritised,
};
use outrigger_service::wire::Blob;
use outrigger_values::FeeRate;

use super::{ChainSnapshot, EmbeddedNode};

impl Node for EmbeddedNode {
    fn network(&self) -> Network {
        self.settings.network
    }

    fn release(&self) -> Option<u32> {
        self.settings.release
    }

    fn tip(&self) -> Tip {
        self.tip()
    }

    fn time(&self) -> u64 {
        self.clock.now()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        Ok(Box::new(ChainSnapshot::take(&self.store, self.settings.network)?))
    }

    fn observe(&self, observer: Arc<dyn Observer>) {
        self.observers.write().push(observer);
    }

    /// Syncs the database, and writes the mempool file.
    fn finish(&self) {
        if let Err(error) = self.store.sync() {
            tracing::error!(%error, "the last block may not be on the disk");
        }
        if let Err(error) = self.write_mempool() {
            tracing::error!(%error, "the mempool cannot be written");
        }
    }

    fn set_mock_time(&self, seconds: u64) -> Result<()> {
        self.clock.set(seconds);
        Ok(())
    }

    fn next_block(&self) -> Result<NextBlock> {
        Ok(self.describe_next(**self.best.load()))
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
        Ok(self.pool.read().info(self.clock.now()))
    }

    fn mempool_ids(&self) -> Result<Vec<Txid>> {
        Ok(self.pool.read().ids())
    }

    fn mempool_entries(&self, txids: &[Txid]) -> Result<Vec<Option<MempoolEntry>>> {
        Ok(self.pool.read().entries(txids))
    }

    fn mempool_transactions(&self, txids: &[Txid]) -> Result<Vec<Option<Blob>>> {
        Ok(self.pool.read().transactions(txids))
    }

    fn mempool_concerning(&self, wanted: &dyn Fn(u64) -> bool) -> Result<Vec<(Txid, Arc<Transaction>)>> {
        // A copy, so that `concerning` hashes the scripts without the mempool's lock.
        let all = self.pool.read().all();
        Ok(concerning(all, wanted))
    }

    fn mempool_spenders(&self, outpoints: &[OutPoint]) -> Result<Vec<Option<Txid>>> {
        Ok(self.pool.read().spenders(outpoints))
    }

    fn submit(&self, raw: &[u8], max_feerate: FeeRate) -> Result<Admission> {
        Ok(self.offer(raw, max_feerate, true)?)
    }

    fn try_submit(&self, raw: &[u8], max_feerate: FeeRate) -> Result<Admission> {
        Ok(self.offer(raw, max_feerate, false)?)
    }

    fn submit_package(&self, raw: &[Blob], max_feerate: FeeRate) -> Result<PackageOutcome> {
        Ok(self.submit_package(raw, max_feerate)?)
    }

    fn try_package(&self, raw: &[Blob]) -> Result<PackageOutcome> {
        Ok(self.try_package(raw)?)
    }

    /// No estimate, as from a bitcoind that has seen no transactions.
    fn fee_estimate(&self, _: u32, _: bool) -> Result<FeeEstimate> {
        Ok(FeeEstimate { feerate: None, blocks: 0 })
    }

    fn candidate(&self, known: Option<u64>) -> Result<Option<Candidate>> {
        let chosen = self.select();
        if known == Some(chosen.version) {
            return Ok(None);
        }
        Ok(Some(Candidate {
            version: chosen.version,
            next: self.next_block_on(chosen.tip)?,
            transactions: chosen.transactions.clone(),
            fees: chosen.fees,
            sequence: chosen.sequence,
        }))
    }

    fn prioritise(&self, txid: Txid, fee_delta: SignedAmount) -> Result<()> {
        let _chain = self.lock_chain()?;
        self.change_pool(|pool| pool.prioritise(txid, fee_delta));
        Ok(())
    }

    fn prioritised(&self) -> Result<Vec<Prioritised>> {
        Ok(self.pool.read().prioritised())
    }

    fn save_mempool(&self) -> Result<PathBuf> {
        self.write_mempool().map_err(|error| NodeError::Refused(error.to_string()))
    }
}
