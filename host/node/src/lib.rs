//! The host's interface to a node: chain, mempool, and the events of both.
//!
//! Services, wallets, metrics and the host's main loop use a node only through [`Node`] and [`Snapshot`], so supporting another
//! node takes one more crate. This crate has no I/O and no database; of the project it depends only on the services' messages and their values.
//! Only the binary depends on an implementation.
//!
//! A function that returns no `Result` answers from memory and never blocks. A function that returns a `Result` may block, since
//! it may ask another process: its caller must hold no lock and no write transaction.

mod error;
pub mod events;
mod identity;
pub mod interest;
pub mod merkle;
pub mod search;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bitcoin::consensus::deserialize;
use bitcoin::{Block, BlockHash, Network, OutPoint, ScriptBuf, SignedAmount, Transaction, Txid};
use outrigger_service::chain::{
    BlockInfo, BlockRef, ChainInfo, ChainTip, Coin, CoinSearch, ConfirmedTransaction, Deployment, NextBlock,
    SpentOutputs, Tip, UnspentOutput, Verdict,
};
use outrigger_service::mempool::{
    Admission, Candidate, FeeEstimate, MempoolEntry, MempoolInfo, PackageOutcome, Prioritised, RawTransaction,
};
use outrigger_service::wire::{Blob, ListView};
use outrigger_values::FeeRate;

pub use error::NodeError;
pub use events::{NodeEvent, Observer, Removal};
pub use identity::ChainIdentity;
pub use search::{Findings, ScriptSet, SearchReads};

/// The result of a function of a node.
pub type Result<T> = std::result::Result<T, NodeError>;

/// Scripts to look for, in the message that asks for them.
pub type CoinScripts<'a> = ListView<'a, ScriptBuf>;

/// How the connection to a node in another process stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Whether it answered when it was last asked, and is the node that was followed.
    pub reached: bool,
    /// Whether each connection to it ends after one answer, so that nothing with effects can be asked of it.
    pub ends_connections: bool,
    /// Requests sent to it for services and wallets.
    pub requests: u64,
    /// Those of them that had no reply.
    pub failures: u64,
    /// Replies to them, but to those that wait there.
    pub replies: u64,
    /// The time from these requests to the first bytes of their replies, in microseconds.
    pub reply_microseconds: u64,
    /// Block filters that a search found among those that are kept here.
    pub filters_kept: u64,
    /// Block filters that came from the node.
    pub filters_fetched: u64,
    /// What says that there is something to read.
    pub hints: HintSource,
    /// By how many blocks its best block is behind the one that is followed.
    pub behind: u32,
    /// Whether it went back further than it may, or is behind, or lacks blocks of which it has the headers, for too long.
    pub stalled: bool,
    /// Its replies of another block or transaction than the host asked for.
    pub unproven: u64,
}

/// What says that there is something to read at a node in another process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HintSource {
    Zmq,
    /// A call that waits there for a block; its mempool is polled.
    Wait,
    Poll,
}

impl HintSource {
    pub fn name(self) -> &'static str {
        match self {
            Self::Zmq => "zmq",
            Self::Wait => "wait",
            Self::Poll => "poll",
        }
    }
}

/// Why a node lacks blocks of its best chain, and the height of the lowest block from which on it has all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gap {
    /// It lacks none that it should have.
    None,
    /// It has dropped them.
    Pruned { first: u32 },
    /// It began with a snapshot of the unspent outputs (assumeutxo), and fetches and validates the blocks before that in the background.
    Background { first: u32 },
}

/// A node. All its functions fail with [`NodeError`].
pub trait Node: Send + Sync {
    /// The network that the node is on.
    fn network(&self) -> Network;

    /// The chain that the node is on, as it was told or as its network says. Answered from memory.
    fn chain(&self) -> ChainIdentity {
        ChainIdentity::of(self.network())
    }

    /// The release of Bitcoin Core that another process is, by its first number; `None` for a node in this process, and until the
    /// other one has told. Answered from memory.
    fn release(&self) -> Option<u32> {
        None
    }

    /// What keeps the host from following the node's chain, for the operator (`warnings` of getwalletinfo and getblockchaininfo).
    /// Answered from memory.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// The best block. Answered from memory.
    fn tip(&self) -> Tip;

    /// Makes [`Node::tip`] no older than any block that a client can have seen past the host. A node that is reached through the
    /// host alone has nothing to do. Where the node is away, the tip stays as it is.
    ///
    /// # Errors
    /// When what is known of the chain cannot be read; where the node has been away for longer than the operator lets it be.
    fn catch_up(&self) -> Result<()> {
        Ok(())
    }

    /// Whether [`Node::catch_up`] would ask nobody. Answered from memory.
    fn is_caught_up(&self) -> bool {
        true
    }

    /// How the connection to the node stands; `None` for a node in this process. Answered from memory.
    fn link(&self) -> Option<Link> {
        None
    }

    /// What [`Snapshot::find`] reads of each block.
    fn search_reads(&self) -> SearchReads {
        SearchReads::Digests
    }

    /// Which blocks of its best chain the node lacks, and why.
    fn gap(&self) -> Result<Gap> {
        Ok(Gap::None)
    }

    /// The node's time, in Unix seconds, or the mock time. Answered from memory.
    fn time(&self) -> u64;

    /// A consistent view of the chain as of now.
    fn snapshot(&self) -> Result<Box<dyn Snapshot>>;

    /// Sends every event from now on to `observer`.
    fn observe(&self, observer: Arc<dyn Observer>);

    /// Flushes to disk whatever is not there yet, since the host stops.
    fn finish(&self);

    /// Sets the node's time, in Unix seconds; 0 returns to the system clock (setmocktime).
    fn set_mock_time(&self, seconds: u64) -> Result<()>;

    /// The rules for a block on top of the tip, for a template (BIP 22).
    fn next_block(&self) -> Result<NextBlock>;

    /// The deployments as of a block; none when the block is unknown (getdeploymentinfo).
    fn deployments(&self, hash: BlockHash) -> Result<Option<Vec<Deployment>>>;

    /// Validates a block on top of the tip, except its proof of work (BIP 23 proposals).
    fn check_block(&self, raw: &[u8]) -> Result<Verdict>;

    fn submit_block(&self, raw: &[u8]) -> Result<Verdict>;

    fn submit_header(&self, raw: &[u8]) -> Result<Verdict>;

    /// Marks a block as invalid (invalidateblock).
    fn invalidate_block(&self, hash: BlockHash) -> Result<()>;

    /// Removes that mark (reconsiderblock).
    fn reconsider_block(&self, hash: BlockHash) -> Result<()>;

    /// Prefers a block to others with the same chainwork (preciousblock).
    fn precious_block(&self, hash: BlockHash) -> Result<()>;

    /// The mempool's totals and limits (getmempoolinfo).
    fn mempool_info(&self) -> Result<MempoolInfo>;

    /// How often the mempool has changed.
    ///
    /// # Errors
    /// As of [`Self::mempool_info`].
    fn mempool_sequence(&self) -> Result<u64> {
        Ok(self.mempool_info()?.sequence)
    }

    /// The ids of the mempool's transactions.
    fn mempool_ids(&self) -> Result<Vec<Txid>>;

    /// The mempool's entries of these transactions, in their order; none for those not in it (getmempoolentry).
    fn mempool_entries(&self, txids: &[Txid]) -> Result<Vec<Option<MempoolEntry>>>;

    /// These transactions, in their order; none for those not in the mempool.
    fn mempool_transactions(&self, txids: &[Txid]) -> Result<Vec<Option<RawTransaction>>>;

    /// The transactions of the mempool that have a wanted interest ([`interest`]), and their descendants, parents before
    /// children.
    fn mempool_concerning(&self, wanted: &dyn Fn(u64) -> bool) -> Result<Vec<(Txid, Arc<Transaction>)>>;

    /// The mempool transaction that spends each of these outputs, in their order; none where none does.
    fn mempool_spenders(&self, outpoints: &[OutPoint]) -> Result<Vec<Option<Txid>>>;

    /// Whether each of these mempool transactions was submitted here and no peer has requested it yet (`unbroadcast`).
    fn mempool_unbroadcast(&self, txids: &[Txid]) -> Result<Vec<bool>>;

    /// Submits a transaction to the mempool, unless its feerate exceeds `max_feerate`; [`FeeRate::ZERO`] means no limit
    /// (sendrawtransaction).
    ///
    /// # Errors
    /// [`NodeError::OutcomeUnknown`] where the node may have taken it; with any other it has not.
    fn submit(&self, raw: &[u8], max_feerate: FeeRate) -> Result<Admission>;

    /// What [`Node::submit`] would answer; the mempool stays as it is (testmempoolaccept).
    fn try_submit(&self, raw: &[u8], max_feerate: FeeRate) -> Result<Admission>;

    /// Submits transactions that build on one another, parents before their one child, unless the feerate of one exceeds
    /// `max_feerate`; [`FeeRate::ZERO`] means no limit (submitpackage).
    ///
    /// # Errors
    /// [`NodeError::Unsupported`] of a node in another process, whose own method is called instead.
    fn submit_package(&self, raw: &[Blob], max_feerate: FeeRate) -> Result<PackageOutcome>;

    /// What the mempool would say of these transactions if none replaced any; it stays as it is (testmempoolaccept).
    ///
    /// # Errors
    /// As of [`Node::submit_package`].
    fn try_package(&self, raw: &[Blob]) -> Result<PackageOutcome>;

    /// The feerate estimated to confirm within `blocks` blocks (estimatesmartfee). A `conservative` one also looks further back, so
    /// that it falls later.
    fn fee_estimate(&self, blocks: u32, conservative: bool) -> Result<FeeEstimate>;

    /// The transactions selected for the next block; none if version `known` of the selection is still current.
    fn candidate(&self, known: Option<u64>) -> Result<Option<Candidate>>;

    /// Adds `fee_delta` to the fee by which a transaction is selected (prioritisetransaction).
    fn prioritise(&self, txid: Txid, fee_delta: SignedAmount) -> Result<()>;

    /// The transactions that have a fee delta (getprioritisedtransactions).
    fn prioritised(&self) -> Result<Vec<Prioritised>>;

    /// Writes the mempool to its file, and returns the path (savemempool).
    ///
    /// # Errors
    /// [`NodeError::Refused`] when the file cannot be written, [`NodeError::Unsupported`] of a node in another process, whose own
    /// method is called instead.
    fn save_mempool(&self) -> Result<PathBuf> {
        Err(NodeError::Unsupported("the mempool is saved by the node's own savemempool".into()))
    }
}

/// A block and the ids of its transactions, which are costly to compute.
pub struct ReadBlock {
    pub block: Block,
    /// The ids of its transactions, in their order.
    pub txids: Vec<Txid>,
    /// The length of its serialisation, in bytes.
    pub size: usize,
}

impl ReadBlock {
    /// Computes the ids of a block whose serialisation has `size` bytes.
    pub fn new(block: Block, size: usize) -> Self {
        let txids = block.txdata.iter().map(Transaction::compute_txid).collect();
        Self { block, txids, size }
    }
}

/// An immutable view of the chain at one moment.
///
/// It may hold resources of the node, such as an LMDB read transaction, so it must not outlive the call that it serves. It may
/// move between threads, but only one uses it at a time.
pub trait Snapshot: Send {
    /// The best block. Answered from memory.
    fn tip(&self) -> Tip;

    /// The network, the tip, the best header and the sizes (getblockchaininfo).
    fn info(&self) -> Result<ChainInfo>;

    /// A block's entry in the block index; none when the block is unknown.
    fn block_info(&self, block: BlockRef) -> Result<Option<BlockInfo>>;

    /// The serialised block, on any branch; none when it is unknown or only its header is known.
    fn block(&self, hash: BlockHash) -> Result<Option<Blob>>;

    /// A block with the ids of its transactions; none as of [`Snapshot::block`].
    fn read_block(&self, hash: BlockHash) -> Result<Option<ReadBlock>> {
        let Some(raw) = self.block(hash)? else { return Ok(None) };
        let block = deserialize(&raw).map_err(|error| NodeError::Storage(format!("block {hash}: {error}")))?;
        Ok(Some(ReadBlock::new(block, raw.len())))
    }

    /// The undo data of a block: the outputs that each transaction spent, empty for the coinbase; none when the block was never
    /// connected.
    fn spent_outputs(&self, hash: BlockHash) -> Result<Option<Vec<SpentOutputs>>>;

    /// The transaction of this id on the best chain.
    fn transaction(&self, txid: Txid) -> Result<Option<ConfirmedTransaction>>;

    /// The unspent outputs of the best chain at these outpoints, in their order.
    fn coins(&self, outpoints: &[OutPoint]) -> Result<Vec<Option<Coin>>>;

    /// The unspent outputs of the best chain after `outpoint` in the table's order, or from its start: at most `limit`, fewer
    /// where their scripts are long.
    fn coins_after(&self, outpoint: Option<&OutPoint>, limit: u32) -> Result<Vec<UnspentOutput>>;

    /// Looks for scripts among the coins that [`Snapshot::coins_after`] lists: among at most `limit`, fewer where many are found.
    fn find_coins(&self, scripts: CoinScripts<'_>, outpoint: Option<&OutPoint>, limit: u32) -> Result<CoinSearch>;

    /// The last common ancestor of a block and the tip; none when the block is unknown.
    fn fork_point(&self, hash: BlockHash) -> Result<Option<BlockInfo>>;

    /// The tips of all branches, the best chain's first, then by descending height (getchaintips).
    fn tips(&self) -> Result<Vec<ChainTip>>;

    /// The height of the first block with a `nTimeMax` (greatest time of it and its ancestors) of at least `time`, in Unix seconds.
    fn first_at(&self, time: u64) -> Result<Option<u32>>;

    /// Searches the blocks of the best chain at these heights for a wallet's scripts. An unreadable block is not an error: it is
    /// returned with `found` as `None`.
    fn find(&self, heights: Range<u32>, wanted: &ScriptSet) -> Result<Findings>;
}
