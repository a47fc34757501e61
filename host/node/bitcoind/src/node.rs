//! [`Node`] for a running bitcoind.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::Duration;

use bitcoin::consensus::encode::{deserialize, serialize};
use bitcoin::{BlockHash, Network, OutPoint, SignedAmount, Transaction, Txid, Weight};
use outrigger_node::{Abilities, ChainIdentity, Gap, Link, Node, NodeError, Observer, Result, SearchReads, Snapshot};
use outrigger_service::chain::{BlockRef, Deployment, NextBlock, Tip, Verdict};
use outrigger_service::mempool::{
    Admission, Candidate, ClusterLimits, FeeEstimate, MempoolEntry, MempoolInfo, Prioritised,
};
use outrigger_service::wire::Blob;
use outrigger_upstream::Upstream;
use parking_lot::Mutex;
use serde_json::json;

use super::answers::{
    Btc, ChainAnswer, EntryAnswer, FeeAnswer, MempoolAnswer, NetworkAnswer, SpenderAnswer, StatesAnswer, outpoint,
};
use super::blocks;
use super::error::{AskError, OpenError, known};
use super::filters::Filters;
use super::hints::{self, Hint, ZmqSetting};
use super::mirror::Mirror;
use super::rpc::Rpc;
use super::search::has_filters;
use super::signals;
use super::snapshot::NodeSnapshot;
use super::standing::RewindLimit;
use super::submit;
use super::sync::Follower;
use super::template::{Selections, Template, deployments, prioritised, proven};
use outrigger_values::{FeeRate, RpcErrorCode};

#[derive(Clone, Debug)]
pub struct Settings {
    pub network: Network,
    /// The major release whose answers clients get; `None` for the node's own.
    pub release: Option<u32>,
    /// The node must be on this chain.
    pub chain: ChainIdentity,
    pub folder: PathBuf,
    pub filters: PathBuf,
    /// The size of the filter cache, in bytes; 0 disables it.
    pub filter_cache: u64,
    /// Whether searches use block filters, which the host cannot verify.
    pub use_filters: bool,
    /// The host refuses higher fee estimates of the node.
    pub max_estimate: FeeRate,
    pub rewind: RewindLimit,
    /// How long the node may be behind before it counts as stalled.
    pub behind_patience: Duration,
    /// How long the host serves cached data while the node is away; `None` is without limit.
    pub patience: Option<Duration>,
    pub zmq: ZmqSetting,
    /// Whether long polls for blocks may occupy a thread of the node, if it sends no notifications.
    pub may_wait: bool,
}

pub struct BitcoindNode {
    settings: Settings,
    follower: Arc<Follower>,
    selections: Selections,
    wake: SyncSender<Hint>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl BitcoindNode {
    /// Opens the mirror, and starts to follow the node. The node need not be reachable yet.
    pub fn open(upstream: Arc<Upstream>, settings: &Settings) -> std::result::Result<Arc<Self>, OpenError> {
        let rpc = Arc::new(Rpc::start(upstream).map_err(OpenError::Threads)?);
        if let Err(error) = rpc.ask::<u32>("getblockcount", &json!([])) {
            let endpoint = rpc.upstream().endpoint();
            let error = OpenError::of_first_question(endpoint, error)?;
            tracing::warn!(%endpoint, %error, "the node cannot be reached yet");
        }
        // If the node does not answer, the follower asks again.
        if let Ok(answer) = rpc.ask::<NetworkAnswer>("getnetworkinfo", &json!([])) {
            answer.check()?;
        }
        let mirror = |error: super::error::MirrorError| OpenError::Mirror(error.to_string());
        let genesis = bitcoin::constants::genesis_block(settings.network).header;
        let mirrored = Mirror::open(&settings.folder, &settings.chain, genesis).map_err(mirror)?;
        let filters = Filters::new(settings.filters.clone(), settings.filter_cache, settings.use_filters);
        let followed = Follower::new(rpc, mirrored, filters, settings.rewind, settings.patience);
        let follower = Arc::new(followed.map_err(mirror)?);
        if let Err(error) = follower.sync(false) {
            tracing::warn!(%error, "the node is not followed yet");
        }
        let settings = settings.clone();
        let started = hints::start(&follower, settings.zmq.clone(), settings.may_wait);
        let (wake, thread) = started.map_err(OpenError::Threads)?;
        let (selections, thread) = (Selections::default(), Mutex::new(Some(thread)));
        Ok(Arc::new(Self { settings, follower, selections, wake, thread }))
    }

    pub fn follower(&self) -> &Arc<Follower> {
        &self.follower
    }

    /// The node's own release, even if clients get another release's answers; `None` until the node has answered.
    pub fn node_release(&self) -> Option<u32> {
        self.follower.release()
    }

    pub fn rpc(&self) -> &Rpc {
        &self.follower.rpc
    }

    fn unit(&self, method: &str, params: &serde_json::Value) -> Result<()> {
        self.rpc().ask::<serde_json::Value>(method, params).map(drop).map_err(NodeError::from)
    }

    /// Reads the node's changes now. If that fails, the follower reads them later.
    fn follow_now(&self) {
        if let Err(error) = self.follower.sync(false) {
            tracing::warn!(%error, "the node's changes cannot be read now; the host will retry");
        }
    }

    /// Calls a method that marks a block at the node, and follows the resulting chain.
    fn mark(&self, method: &str, hash: BlockHash) -> Result<()> {
        let done = known(self.rpc().ask::<serde_json::Value>(method, &json!([hash])))?;
        done.ok_or(NodeError::UnknownBlock(hash))?;
        self.follow_now();
        Ok(())
    }
}

impl Node for BitcoindNode {
    fn network(&self) -> Network {
        self.settings.network
    }

    fn chain(&self) -> ChainIdentity {
        self.settings.chain.clone()
    }

    fn release(&self) -> Option<u32> {
        self.settings.release.or_else(|| self.follower.release())
    }

    fn abilities(&self) -> Result<Abilities> {
        Ok(crate::search::abilities(self.rpc(), Node::release(self))?)
    }

    fn warnings(&self) -> Vec<String> {
        self.follower.standing.held().into_iter().collect()
    }

    fn tip(&self) -> Tip {
        self.follower.tip()
    }

    fn gap(&self) -> Result<Gap> {
        let unvalidated = match self.rpc().ask::<StatesAnswer>("getchainstates", &json!([])) {
            Ok(states) => states.unvalidated(),
            // Before Bitcoin Core 26, or -rpcwhitelist forbids the method.
            Err(error) if error.code().is_some() => None,
            Err(AskError::Forbidden(_)) => None,
            Err(error) => return Err(error.into()),
        };
        if let Some(hash) = unvalidated
            && let Some(base) = self.snapshot()?.block_info(BlockRef::Hash { hash })?
        {
            return Ok(Gap::Background { first: base.height.saturating_add(1).min(self.tip().height) });
        }
        let chain = self.rpc().ask::<ChainAnswer>("getblockchaininfo", &json!([]))?;
        Ok(chain.pruneheight.map_or(Gap::None, |first| Gap::Pruned { first }))
    }

    fn catch_up(&self) -> Result<()> {
        self.follower.catch_up();
        if self.follower.has_returned() {
            // The follower reads the mempool once for all waiters. If the channel is full, the hints in it wake the follower.
            let _ = self.wake.try_send(Hint::Look);
            self.follower.wait_until_told();
        }
        self.follower.check_patience()
    }

    fn is_caught_up(&self) -> bool {
        self.follower.is_caught_up()
    }

    fn link(&self) -> Option<Link> {
        let upstream = self.rpc().upstream();
        let figures = upstream.figures();
        Some(Link {
            reached: self.follower.is_reached(),
            ends_connections: upstream.ends_connections(),
            requests: figures.requests.load(Ordering::Relaxed),
            failures: figures.failures.load(Ordering::Relaxed),
            replies: figures.replies.load(Ordering::Relaxed),
            reply_microseconds: figures.reply_microseconds.load(Ordering::Relaxed),
            filters_kept: self.follower.filters.hits.load(Ordering::Relaxed),
            filters_fetched: self.follower.filters.fetched.load(Ordering::Relaxed),
            hints: *self.follower.source.lock(),
            behind: self.follower.standing.behind(),
            stalled: self.follower.standing.is_stalled(self.settings.behind_patience),
            unproven: self.rpc().unproven.load(Ordering::Relaxed),
        })
    }

    fn search_reads(&self) -> SearchReads {
        if self.follower.filters.used && has_filters(self.rpc()) { SearchReads::Filters } else { SearchReads::Blocks }
    }

    fn time(&self) -> u64 {
        self.follower.clock.now()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        let moment = self.follower.moment()?;
        Ok(Box::new(NodeSnapshot { follower: self.follower.clone(), network: self.settings.network, moment }))
    }

    fn give_up(&self) {
        self.rpc().give_up();
    }

    fn observe(&self, observer: Arc<dyn Observer>) {
        self.follower.observe(observer);
    }

    fn set_mock_time(&self, seconds: u64) -> Result<()> {
        self.unit("setmocktime", &json!([seconds]))?;
        self.follower.clock.set(seconds);
        Ok(())
    }

    fn next_block(&self) -> Result<NextBlock> {
        let template = Template::ask(self.rpc(), self.settings.network)?;
        template.next(self.follower.tip_at(template.previousblockhash)?)
    }

    fn deployments(&self, hash: BlockHash) -> Result<Option<Vec<Deployment>>> {
        deployments(self.rpc(), hash)
    }

    fn check_block(&self, raw: &[u8]) -> Result<Verdict> {
        let data = bitcoin::hex::DisplayHex::to_lower_hex_string(raw);
        let request = json!([{"mode": "proposal", "data": data, "rules": ["segwit"]}]);
        submit::verdict(self.rpc().ask("getblocktemplate", &request))
    }

    fn submit_block(&self, raw: &[u8]) -> Result<Verdict> {
        let data = bitcoin::hex::DisplayHex::to_lower_hex_string(raw);
        let verdict = submit::verdict(self.rpc().ask("submitblock", &json!([data])))?;
        self.follow_now();
        Ok(verdict)
    }

    fn submit_header(&self, raw: &[u8]) -> Result<Verdict> {
        let data = bitcoin::hex::DisplayHex::to_lower_hex_string(raw);
        match self.rpc().ask("submitheader", &json!([data])) {
            Err(AskError::Rpc { error, .. }) if error.code == RpcErrorCode::VERIFY => {
                Ok(Verdict::Invalid { reason: error.message, detail: String::new() })
            }
            answer => submit::verdict(answer),
        }
    }

    fn invalidate_block(&self, hash: BlockHash) -> Result<()> {
        self.mark("invalidateblock", hash)
    }

    fn reconsider_block(&self, hash: BlockHash) -> Result<()> {
        self.mark("reconsiderblock", hash)
    }

    fn precious_block(&self, hash: BlockHash) -> Result<()> {
        self.mark("preciousblock", hash)
    }

    fn mempool_info(&self) -> Result<MempoolInfo> {
        let info: MempoolAnswer = self.rpc().ask("getmempoolinfo", &json!([]))?;
        let mempool = &self.follower.mempool;
        Ok(MempoolInfo {
            transactions: info.size,
            virtual_size: info.bytes,
            usage: info.usage,
            total_fee: info.total_fee.0,
            max_usage: info.maxmempool,
            min_feerate: info.mempoolminfee.feerate(),
            relay_feerate: info.minrelaytxfee.feerate(),
            incremental_feerate: info.incrementalrelayfee.unwrap_or(info.minrelaytxfee).feerate(),
            sequence: mempool.sequence(),
            moves: mempool.moves(),
            unbroadcast: info.unbroadcastcount,
            clusters: info
                .limitclustercount
                .zip(info.limitclustersize)
                .map(|(count, size)| ClusterLimits { count, size }),
        })
    }

    fn mempool_sequence(&self) -> Result<u64> {
        Ok(self.follower.mempool.sequence())
    }

    fn mempool_ids(&self) -> Result<Vec<Txid>> {
        Ok(self.follower.mempool.ids())
    }

    fn mempool_entries(&self, txids: &[Txid]) -> Result<Vec<Option<MempoolEntry>>> {
        let answers = signals::entries(self.rpc(), txids)?;
        let is_open = |answer: &&EntryAnswer| answer.replaceable.is_none();
        let open = txids
            .iter()
            .zip(&answers)
            .filter_map(|(txid, answer)| Some((*txid, answer.as_ref().ok().filter(is_open)?)));
        let open = open.map(|(txid, answer)| (txid, answer.depends.clone())).collect();
        let replaceable = signals::replaceable(self.rpc(), open)?;
        let entry = |(txid, answer): (&Txid, _)| {
            Ok(known(answer)?.map(|answer: EntryAnswer| entry_of(*txid, answer, replaceable.contains(txid))))
        };
        txids.iter().zip(answers).map(entry).collect()
    }

    fn mempool_transactions(&self, txids: &[Txid]) -> Result<Vec<Option<Blob>>> {
        // With a transaction index the node also returns confirmed transactions.
        let present: Vec<Txid> = txids.iter().copied().filter(|txid| self.follower.mempool.has(txid)).collect();
        let fetched: HashMap<Txid, Transaction> = blocks::transactions(self.rpc(), &present)?.into_iter().collect();
        let raw = |transaction| Blob(serialize(transaction));
        Ok(txids.iter().map(|txid| fetched.get(txid).map(raw)).collect())
    }

    fn mempool_concerning(&self, wanted: &dyn Fn(u64) -> bool) -> Result<Vec<(Txid, Arc<Transaction>)>> {
        let txids = self.follower.mempool.concerning(wanted);
        let fetched = blocks::transactions(self.rpc(), &txids)?;
        Ok(fetched.into_iter().map(|(txid, transaction)| (txid, Arc::new(transaction))).collect())
    }

    fn mempool_spenders(&self, outpoints: &[OutPoint]) -> Result<Vec<Option<Txid>>> {
        if outpoints.is_empty() {
            return Ok(Vec::new());
        }
        let asked: Vec<_> = outpoints.iter().map(outpoint).collect();
        let answers: Vec<SpenderAnswer> = self.rpc().ask("gettxspendingprevout", &json!([asked]))?;
        Ok(answers.into_iter().map(|answer| answer.spendingtxid).collect())
    }

    fn submit(&self, raw: &[u8], max_feerate: FeeRate) -> Result<Admission> {
        let admission = submit::submit(self.rpc(), raw, max_feerate)?;
        if matches!(admission, Admission::Accepted { .. }) {
            // The wallets see the transaction before its sender has the answer. The node has accepted it, so an error
            // could make the sender pay twice.
            let transaction = deserialize(raw).map_err(|error| NodeError::Internal(error.to_string()));
            if let Err(error) = transaction.and_then(|transaction| Ok(self.follower.take_submitted(&transaction)?)) {
                tracing::warn!(%error, "the wallets will see the submitted transaction later");
            }
        }
        Ok(admission)
    }

    fn try_submit(&self, raw: &[u8], max_feerate: FeeRate) -> Result<Admission> {
        submit::try_submit(self.rpc(), raw, max_feerate)
    }

    fn fee_estimate(&self, blocks: u32, conservative: bool) -> Result<FeeEstimate> {
        // Explicit, since the node's default changed in Bitcoin Core 28.
        let mode = if conservative { "conservative" } else { "economical" };
        match self.rpc().ask::<FeeAnswer>("estimatesmartfee", &json!([blocks, mode])) {
            // A node with -blocksonly makes no estimates.
            Err(error) if error.code() == Some(RpcErrorCode::INTERNAL) => Ok(FeeEstimate { feerate: None, blocks }),
            answer => {
                let FeeAnswer { feerate, blocks } = answer?;
                let feerate = feerate.map(Btc::feerate);
                if let Some(feerate) = feerate.filter(|feerate| *feerate > self.settings.max_estimate) {
                    let (estimate, limit) =
                        (feerate.to_sat_per_vb_text(), self.settings.max_estimate.to_sat_per_vb_text());
                    return Err(NodeError::Refused(format!(
                        "The node's fee estimate ({estimate}) is above the limit ({limit}, backend.max_estimate)"
                    )));
                }
                Ok(FeeEstimate { feerate, blocks })
            }
        }
    }

    fn candidate(&self, known: Option<u64>) -> Result<Option<Candidate>> {
        // Read before the request: the selection may contain changes of the mempool that this number does not count yet.
        let sequence = self.follower.mempool.sequence();
        let template = Template::ask(self.rpc(), self.settings.network)?;
        let tip = self.follower.tip_at(template.previousblockhash)?;
        let candidate = self.selections.candidate(template, tip, sequence, known)?;
        candidate.map(|candidate| proven(self.rpc(), candidate)).transpose()
    }

    fn prioritise(&self, txid: Txid, fee_delta: SignedAmount) -> Result<()> {
        let done = self.unit("prioritisetransaction", &json!([txid, 0, fee_delta.to_sat()]));
        // Also after an error: the node may have changed the fee although its answer was lost.
        self.follower.mempool.count_change();
        done
    }

    fn prioritised(&self) -> Result<Vec<Prioritised>> {
        prioritised(self.rpc())
    }
}

/// Converts an answer. `replaceable` is the value if the answer does not state it.
fn entry_of(txid: Txid, answer: EntryAnswer, replaceable: bool) -> MempoolEntry {
    MempoolEntry {
        txid,
        wtxid: answer.wtxid,
        weight: Weight::from_wu(answer.weight.unwrap_or(answer.vsize.saturating_mul(4))),
        virtual_size: answer.vsize,
        fee: answer.fees.base.0,
        modified_fee: answer.fees.modified.0,
        time: answer.time,
        height: answer.height,
        ancestor_count: answer.ancestorcount,
        ancestor_size: answer.ancestorsize,
        ancestor_fees: answer.fees.ancestor.0,
        descendant_count: answer.descendantcount,
        descendant_size: answer.descendantsize,
        descendant_fees: answer.fees.descendant.0,
        depends: answer.depends,
        spent_by: answer.spentby,
        replaceable: answer.replaceable.unwrap_or(replaceable),
        unbroadcast: answer.unbroadcast,
    }
}

impl Drop for BitcoindNode {
    fn drop(&mut self) {
        self.follower.stop();
        // If the queue is full, the follower wakes soon anyway.
        let _ = self.wake.try_send(Hint::Look);
        if let Some(thread) = self.thread.lock().take() {
            // The thread has no state of its own.
            let _ = thread.join();
        }
    }
}
