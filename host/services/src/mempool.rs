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
use outrigger_node::{Node, Result as NodeResult};

/// Reads the live mempool, not a snapshot.
pub struct MempoolService {
    pub node: Arc<dyn Node>,
    pub scopes: OwnScopes,
}

impl MempoolService {
    fn ask<T>(&self, _: Scope, ask: impl FnOnce(&dyn Node) -> NodeResult<T>) -> Result<T> {
        Ok(ask(&*self.node)?)
    }

    /// Changes the mempool, and closes the call's snapshots: its later reads see the change.
    fn write<T>(&self, scope: Scope, write: impl FnOnce(&dyn Node) -> NodeResult<T>) -> Result<T> {
        self.scopes.get(scope)?.refresh();
        self.ask(scope, write)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Mempool for MempoolService {
    through! { ask:
        fn info() -> MempoolInfo = |node| node.mempool_info();
        fn ids() -> Vec<Txid> = |node| node.mempool_ids();
        fn entries(txids: Vec<Txid>) -> Vec<Option<MempoolEntry>> = |node| node.mempool_entries(&txids);
        fn transactions(txids: Vec<Txid>) -> Vec<Option<Blob>> = |node| node.mempool_transactions(&txids);
        fn spenders(outpoints: Vec<OutPoint>) -> Vec<Option<Txid>> = |node| node.mempool_spenders(&outpoints);
        fn try_submit(raw: Blob, max_feerate: FeeRate) -> Admission = |node| node.try_submit(&raw, max_feerate);
        fn prioritise(txid: Txid, fee_delta: SignedAmount) -> () = |node| node.prioritise(txid, fee_delta);
        fn prioritised() -> Vec<Prioritised> = |node| node.prioritised();
        fn try_package(transactions: Vec<Blob>) -> PackageOutcome = |node| node.try_package(&transactions);
        fn fee_estimate(blocks: u32, conservative: bool) -> FeeEstimate =
            |node| node.fee_estimate(blocks, conservative);
    }

    through! { write:
        fn submit(raw: Blob, max_feerate: FeeRate) -> Admission = |node| node.submit(&raw, max_feerate);
        fn submit_package(transactions: Vec<Blob>, max_feerate: FeeRate) -> PackageOutcome =
            |node| node.submit_package(&transactions, max_feerate);
    }

    fn candidate(&self, _: Scope, known: Option<u64>) -> Result<Encoded<Option<Candidate>>> {
        Ok(Encoded::new(&self.node.candidate(known)?))
    }

    fn save(&self, _: Scope) -> Result<String> {
        Ok(self.node.save_mempool()?.display().to_string())
    }
}
