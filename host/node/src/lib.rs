//! The host's interface to a node: chain, mempool, and the events of both.
//!
//! Services, wallets, metrics and the host's main loop use a node through [`Node`] and [`Snapshot`] only, so that
//! support for another node needs only one more crate. This crate has no I/O and no database; within the project it depends on the
//! services' messages and values only. Only the binary depends on an implementation.
//!
//! A function without a `Result` answers from memory and never blocks. A function with a `Result` may block on another
//! process: its caller must hold no lock and no write transaction.

mod clock;
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
use bitcoin::{Block, BlockHash, Network, OutPoint, ScriptBuf, SignedAmount, Transaction, TxOut, Txid};
use outrigger_service::chain::{
    BlockInfo, BlockRef, ChainInfo, ChainTip, Coin, CoinSearch, ConfirmedTransaction, Deployment, NextBlock,
    SpentOutputs, Tip, UnspentOutput, Verdict,
};
use outrigger_service::mempool::{
    Admission, Candidate, FeeEstimate, MempoolEntry, MempoolInfo, PackageOutcome, Prioritised,
};
use outrigger_service::wire::{Blob, ListView};
use outrigger_values::FeeRate;

pub use clock::Clock;
pub use error::NodeError;
pub use events::{NodeEvent, Observer, Removal};
pub use identity::ChainIdentity;
pub use search::{Findings, ScriptSet, SearchReads};

pub type Result<T> = std::result::Result<T, NodeError>;

/// Scripts to search for, as encoded in the caller's message.
pub type CoinScripts<'a> = ListView<'a, ScriptBuf>;

/// The state of the connection to a node in another process.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Link {
    /// Whether the node answered the last request, and is on the followed chain.
    pub reached: bool,
    /// Whether each connection ends after one answer, so that calls with effects are impossible.
    pub ends_connections: bool,
    /// Requests sent to it for services and wallets.
    pub requests: u64,
    /// Requests without a reply.
    pub failures: u64,
    /// Replies, except those of long polls.
    pub replies: u64,
    /// The total time from request to the first byte of the reply, in microseconds.
    pub reply_microseconds: u64,
    /// Block filters that searches read from the host's cache.
    pub filters_kept: u64,
    /// Block filters fetched from the node.
    pub filters_fetched: u64,
    /// How the host learns of changes at the node.
    pub hints: HintSource,
    /// How many blocks the node's best block is behind the followed one.
    pub behind: u32,
    /// Whether the node's chain went back further than allowed, or was behind or lacked blocks of known headers for too long.
    pub stalled: bool,
    /// Replies with a block or transaction other than requested.
    pub unproven: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum HintSource {
    Zmq,
    /// A long poll for blocks; the mempool is polled.
    Wait,
    #[default]
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

/// Why a node lacks blocks of its best chain, and the height from which it has all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gap {
    /// No block is missing.
    None,
    /// The node has pruned them.
    Pruned { first: u32 },
    /// The node began with a snapshot of the unspent outputs (assumeutxo), and still validates the blocks below it.
    Background { first: u32 },
}

/// The capabilities that plugins may require of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Abilities {
    /// The major release of Bitcoin Core; `None` if the node does not say.
    pub release: Option<u32>,
    /// Whether it finds every confirmed transaction.
    pub transactions: bool,
    pub block_filters: bool,
    /// Whether it has the outputs that each block spends.
    pub spent_outputs: bool,
}

impl Abilities {
    /// The abilities of a node in this process.
    pub const ALL: Self = Self { release: None, transactions: true, block_filters: true, spent_outputs: true };
}

/// A node. All its functions fail with [`NodeError`].
pub trait Node: Send + Sync {
    fn network(&self) -> Network;

    /// The node's chain: as configured, or the network's.
    fn chain(&self) -> ChainIdentity {
        ChainIdentity::of(self.network())
    }

    /// The major release of Bitcoin Core that answers to clients follow: as configured, or the release of the node in
    /// another process. `None` until that node has answered, and for a node in this process.
    fn release(&self) -> Option<u32> {
        None
    }

    /// The node's abilities beyond the chain and the mempool.
    fn abilities(&self) -> Result<Abilities> {
        Ok(Abilities::ALL)
    }

    /// Why the host does not follow the node's chain, for the operator (`warnings` of getwalletinfo and
    /// getblockchaininfo).
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    fn tip(&self) -> Tip;

    /// Updates [`Node::tip`] until it is at least as recent as any block that a client may have seen at the node
    /// directly. A node in this process need not do anything. While the node is unreachable, the tip stays.
    ///
    /// # Errors
    /// The mirrored chain cannot be read, or the node has been away for longer than the operator allows.
    fn catch_up(&self) -> Result<()> {
        Ok(())
    }

    /// Whether [`Node::catch_up`] would make no request.
    fn is_caught_up(&self) -> bool {
        true
    }

    /// The state of the connection; `None` for a node in this process.
    fn link(&self) -> Option<Link> {
        None
    }

    /// The kind of data that [`Snapshot::find`] reads of each block.
    fn search_reads(&self) -> SearchReads {
        SearchReads::Digests
    }

    /// The blocks that the node lacks in its best chain.
    fn gap(&self) -> Result<Gap> {
        Ok(Gap::None)
    }

    /// The node's time, in Unix seconds, perhaps mocked.
    fn time(&self) -> u64;

    fn snapshot(&self) -> Result<Box<dyn Snapshot>>;

    fn observe(&self, observer: Arc<dyn Observer>);

    /// Called when the host stops: lets requests fail soon that a node in another process does not answer.
    fn give_up(&self) {}

    /// Flushes unsynced data to disk when the host stops.
    fn finish(&self) {}

    /// Sets the node's time, in Unix seconds; 0 returns to the system clock (setmocktime).
    fn set_mock_time(&self, seconds: u64) -> Result<()>;

    /// The rules for a block on top of the tip, for a template (BIP 22).
    fn next_block(&self) -> Result<NextBlock>;

    /// The deployments as of a block; `None` if the block is unknown (getdeploymentinfo).
    fn deployments(&self, hash: BlockHash) -> Result<Option<Vec<Deployment>>>;

    /// Validates a block on top of the tip, except its proof of work (BIP 23 proposals).
    fn check_block(&self, raw: &[u8]) -> Result<Verdict>;

    fn submit_block(&self, raw: &[u8]) -> Result<Verdict>;

    fn submit_header(&self, raw: &[u8]) -> Result<Verdict>;

    fn invalidate_block(&self, hash: BlockHash) -> Result<()>;

    fn reconsider_block(&self, hash: BlockHash) -> Result<()>;

    /// Prefers a block to others with the same chainwork (preciousblock).
    fn precious_block(&self, hash: BlockHash) -> Result<()>;

    fn mempool_info(&self) -> Result<MempoolInfo>;

    /// The mempool's sequence, which grows with each change of the mempool or the tip.
    fn mempool_sequence(&self) -> Result<u64> {
        Ok(self.mempool_info()?.sequence)
    }

    fn mempool_ids(&self) -> Result<Vec<Txid>>;

    /// The mempool's entries of these transactions, in their order; `None` for those not in the mempool (getmempoolentry).
    fn mempool_entries(&self, txids: &[Txid]) -> Result<Vec<Option<MempoolEntry>>>;

    /// These transactions, in their order; `None` for those not in the mempool.
    fn mempool_transactions(&self, txids: &[Txid]) -> Result<Vec<Option<Blob>>>;

    /// The mempool transactions with a `wanted` interest ([`interest`]), parents before children.
    fn mempool_concerning(&self, wanted: &dyn Fn(u64) -> bool) -> Result<Vec<(Txid, Arc<Transaction>)>>;

    /// The mempool transactions that spend these outputs, in their order; `None` for an output that none spends.
    fn mempool_spenders(&self, outpoints: &[OutPoint]) -> Result<Vec<Option<Txid>>>;

    /// Submits a transaction to the mempool, unless its feerate exceeds `max_feerate`; [`FeeRate::ZERO`] means no limit
    /// (sendrawtransaction).
    ///
    /// # Errors
    /// [`NodeError::OutcomeUnknown`] if the node may have accepted the transaction. After any other error it has not.
    fn submit(&self, raw: &[u8], max_feerate: FeeRate) -> Result<Admission>;

    /// The result that [`Node::submit`] would have; changes nothing (testmempoolaccept).
    fn try_submit(&self, raw: &[u8], max_feerate: FeeRate) -> Result<Admission>;

    /// Submits a child and its parents, parents first, unless a feerate exceeds `max_feerate`; [`FeeRate::ZERO`] means
    /// no limit (submitpackage).
    ///
    /// # Errors
    /// [`NodeError::Unsupported`] from a node in another process: clients call that node's method.
    fn submit_package(&self, _raw: &[Blob], _max_feerate: FeeRate) -> Result<PackageOutcome> {
        Err(NodeError::Unsupported("packages are submitted by the node's own submitpackage".into()))
    }

    /// The result that these transactions would have as a package without replacements; changes nothing (testmempoolaccept).
    ///
    /// # Errors
    /// Those of [`Node::submit_package`].
    fn try_package(&self, _raw: &[Blob]) -> Result<PackageOutcome> {
        Err(NodeError::Unsupported("packages are tried by the node's own testmempoolaccept".into()))
    }

    /// The feerate estimated to confirm within `blocks` blocks (estimatesmartfee). A `conservative` estimate considers
    /// a longer history, and falls more slowly.
    fn fee_estimate(&self, blocks: u32, conservative: bool) -> Result<FeeEstimate>;

    /// The transactions selected for the next block; `None` if the selection's version is still `known`.
    fn candidate(&self, known: Option<u64>) -> Result<Option<Candidate>>;

    /// Adds `fee_delta` to the fee by which the node selects a transaction for blocks (prioritisetransaction).
    fn prioritise(&self, txid: Txid, fee_delta: SignedAmount) -> Result<()>;

    fn prioritised(&self) -> Result<Vec<Prioritised>>;

    /// Writes the mempool to its file, and returns the path (savemempool).
    ///
    /// # Errors
    /// [`NodeError::Refused`] if the file cannot be written; [`NodeError::Unsupported`] from a node in another process.
    fn save_mempool(&self) -> Result<PathBuf> {
        Err(NodeError::Unsupported("the mempool is saved by the node's own savemempool".into()))
    }
}

pub struct ReadBlock {
    pub block: Block,
    /// In the order of the block's transactions.
    pub txids: Vec<Txid>,
    /// The serialised size, in bytes.
    pub size: usize,
}

impl ReadBlock {
    /// `size` is the block's serialised size, in bytes.
    pub fn new(block: Block, size: usize) -> Self {
        let txids = block.txdata.iter().map(Transaction::compute_txid).collect();
        Self { block, txids, size }
    }
}

/// An immutable view of the chain at one moment.
///
/// It may hold resources of the node, such as an LMDB read transaction, so it must not outlive the call that it serves.
/// It may move between threads, but only one uses it at a time.
pub trait Snapshot: Send {
    fn tip(&self) -> Tip;

    fn info(&self) -> Result<ChainInfo>;

    /// A block's entry in the block index; `None` if the block is unknown.
    fn block_info(&self, block: BlockRef) -> Result<Option<BlockInfo>>;

    /// The serialised block, on any branch; `None` if it is unknown or only its header is known.
    fn block(&self, hash: BlockHash) -> Result<Option<Blob>>;

    /// A block with the ids of its transactions; `None` as in [`Snapshot::block`].
    fn read_block(&self, hash: BlockHash) -> Result<Option<ReadBlock>> {
        let Some(raw) = self.block(hash)? else { return Ok(None) };
        let block = deserialize(&raw).map_err(|error| NodeError::Storage(format!("block {hash}: {error}")))?;
        Ok(Some(ReadBlock::new(block, raw.len())))
    }

    /// A block's undo data: the outputs that each transaction spent, empty for the coinbase; `None` if the block was
    /// never connected.
    fn spent_outputs(&self, hash: BlockHash) -> Result<Option<Vec<SpentOutputs>>>;

    /// The outputs that a connected block spends, one for each input in the block's order, except the coinbase's. `block` is
    /// its serialisation. `None` as in [`Snapshot::spent_outputs`].
    fn spent_by(&self, hash: BlockHash, _block: &[u8]) -> Result<Option<Vec<TxOut>>> {
        let outputs =
            |spent: Vec<SpentOutputs>| spent.into_iter().flat_map(|spent| spent.coins).map(|coin| coin.output);
        Ok(self.spent_outputs(hash)?.map(|spent| outputs(spent).collect()))
    }

    /// The transaction with this id in the best chain.
    fn transaction(&self, txid: Txid) -> Result<Option<ConfirmedTransaction>>;

    /// The best chain's unspent outputs at these outpoints, in their order; `None` for a spent or unknown one.
    fn coins(&self, outpoints: &[OutPoint]) -> Result<Vec<Option<Coin>>>;

    /// The best chain's unspent outputs after `outpoint` in the table's order, or from the first: at most `limit`, and
    /// fewer if their scripts are long.
    ///
    /// # Errors
    /// [`NodeError::Unsupported`] from a node in another process.
    fn coins_after(&self, _outpoint: Option<&OutPoint>, _limit: u32) -> Result<Vec<UnspentOutput>> {
        Err(NodeError::Unsupported("the node cannot list all coins (scantxoutset looks for some)".into()))
    }

    /// Searches the coins that [`Snapshot::coins_after`] lists for scripts: at most `limit` of them, and fewer if many
    /// match.
    ///
    /// # Errors
    /// Those of [`Snapshot::coins_after`].
    fn find_coins(&self, _scripts: CoinScripts<'_>, _after: Option<&OutPoint>, _limit: u32) -> Result<CoinSearch> {
        Err(NodeError::Unsupported("the node lists no coins (its scantxoutset looks for some)".into()))
    }

    /// The last common ancestor of a block and the tip; `None` if the block is unknown.
    fn fork_point(&self, hash: BlockHash) -> Result<Option<BlockInfo>>;

    /// The tips of all branches, the best chain's first, then by descending height (getchaintips).
    fn tips(&self) -> Result<Vec<ChainTip>>;

    /// The `nTimeMax` of the best chain's block at a height: the greatest time of it and its ancestors, in Unix seconds.
    fn max_time(&self, height: u32) -> Result<u32>;

    /// The height of the first block whose [`Snapshot::max_time`] is at least `time`, in Unix seconds. A binary search:
    /// `max_time` never decreases with height.
    fn first_at(&self, time: u64) -> Result<Option<u32>> {
        let end = self.tip().height.saturating_add(1);
        let (mut low, mut high) = (0, end);
        while low < high {
            let middle = low + (high - low) / 2;
            if u64::from(self.max_time(middle)?) < time {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok((low < end).then_some(low))
    }

    /// Searches the best chain's blocks at these heights for a wallet's scripts. An unreadable block is no error: its
    /// `found` is `None`.
    fn find(&self, heights: Range<u32>, wanted: &ScriptSet) -> Result<Findings>;
}
