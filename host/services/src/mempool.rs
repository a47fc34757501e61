//! `mempool/1` on a node.

use std::sync::Arc;

use bitcoin::{OutPoint, SignedAmount, Txid};
use outrigger_service::mempool::{
    Admission, Candidate, FeeEstimate, MempoolEntry, MempoolInfo, PackageOutcome, Prioritised,
};
use outrigger_service::wire::{Blob, Encoded};
use outrigger_service::{Mempool, Result, Scope};
use outrigger_values::FeeRate;

use super::OwnScopes;
use outrigger_node::Node;

/// Reads the live mempool, not a snapshot.
pub struct MempoolService {
    pub node: Arc<dyn Node>,
    pub scopes: OwnScopes,
}

#[deny(clippy::missing_trait_methods)]
impl Mempool for MempoolService {
    fn info(&self, _: Scope) -> Result<MempoolInfo> {
        Ok(self.node.mempool_info()?)
    }

    fn ids(&self, _: Scope) -> Result<Vec<Txid>> {
        Ok(self.node.mempool_ids()?)
    }

    fn entries(&self, _: Scope, txids: Vec<Txid>) -> Result<Vec<Option<MempoolEntry>>> {
        Ok(self.node.mempool_entries(&txids)?)
    }

    fn transactions(&self, _: Scope, txids: Vec<Txid>) -> Result<Vec<Option<Blob>>> {
        Ok(self.node.mempool_transactions(&txids)?)
    }

    fn spenders(&self, _: Scope, outpoints: Vec<OutPoint>) -> Result<Vec<Option<Txid>>> {
        Ok(self.node.mempool_spenders(&outpoints)?)
    }

    fn submit(&self, scope: Scope, raw: Blob, max_feerate: FeeRate) -> Result<Admission> {
        self.scopes.get(scope)?.refresh();
        Ok(self.node.submit(&raw, max_feerate)?)
    }

    fn try_submit(&self, _: Scope, raw: Blob, max_feerate: FeeRate) -> Result<Admission> {
        Ok(self.node.try_submit(&raw, max_feerate)?)
    }

    fn candidate(&self, _: Scope, known: Option<u64>) -> Result<Encoded<Option<Candidate>>> {
        Ok(Encoded::new(&self.node.candidate(known)?))
    }

    fn prioritise(&self, _: Scope, txid: Txid, fee_delta: SignedAmount) -> Result<()> {
        Ok(self.node.prioritise(txid, fee_delta)?)
    }

    fn prioritised(&self, _: Scope) -> Result<Vec<Prioritised>> {
        Ok(self.node.prioritised()?)
    }

    fn submit_package(&self, scope: Scope, transactions: Vec<Blob>, max_feerate: FeeRate) -> Result<PackageOutcome> {
        self.scopes.get(scope)?.refresh();
        Ok(self.node.submit_package(&transactions, max_feerate)?)
    }

    fn try_package(&self, _: Scope, transactions: Vec<Blob>) -> Result<PackageOutcome> {
        Ok(self.node.try_package(&transactions)?)
    }

    fn fee_estimate(&self, _: Scope, blocks: u32, conservative: bool) -> Result<FeeEstimate> {
        Ok(self.node.fee_estimate(blocks, conservative)?)
    }

    fn save(&self, _: Scope) -> Result<String> {
        Ok(self.node.save_mempool()?.display().to_string())
    }
}
