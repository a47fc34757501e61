//! The node as the host sees it: the chain, the mempool, and what is told of both.
//!
//! Services, wallets, metrics and the run of the host know a node by [`Node`] and [`Snapshot`] alone, so that another node is
//! another crate and no more. This crate has no I/O of its own and no database; it depends on the services' messages and on
//! nothing else of the project. Only the binary depends on an implementation.
//!
//! What a node answers at once, from memory, and what may take its time (another process may be asked) is told apart by the
//! functions' results: what cannot fail does not wait. Whoever calls one that can fail holds no lock and no write transaction.

mod error;
pub mod events;
pub mod interest;
pub mod search;

use std::ops::Range;
use std::sync::Arc;

use bitcoin::{BlockHash, Network, OutPoint, Transaction, Txid};
use outrigger_service::chain::{
    BlockInfo, BlockRef, ChainInfo, ChainTip, Coin, ConfirmedTransaction, Deployment, NextBlock, SpentOutputs, Tip,
    UnspentOutput, Verdict,
};
use outrigger_service::mempool::{Admission, Candidate, MempoolEntry, MempoolInfo, Prioritised, RawTransaction};
use outrigger_service::wire::Blob;

pub use error::NodeError;
pub use events::{NodeEvent, Observer, Removal};
pub use search::{Findings, ScriptSet};

/// What a function of a node gives.
pub type Result<T> = std::result::Result<T, NodeError>;

/// A node. The errors of all its functions: [`NodeError`].
pub trait Node: Send + Sync {
    /// The network that it is on.
    fn network(&self) -> Network;

    /// The best block. Answered from memory.
    fn tip(&self) -> Tip;

    /// The node's time, in seconds. Answered from memory.
    fn time(&self) -> u64;

    /// The chain as it stands now.
    fn snapshot(&self) -> Result<Box<dyn Snapshot>>;

    /// Tells `observer` of every change from now on.
    fn observe(&self, observer: Arc<dyn Observer>);

    /// The host stops: what is not on the disk yet is put there.
    fn finish(&self);

    /// Sets the node's time in seconds; 0 goes back to the clock (setmocktime).
    fn set_mock_time(&self, seconds: u64) -> Result<()>;

    /// What a block on the tip must and may be (BIP 22).
    fn next_block(&self) -> Result<NextBlock>;

    /// The deployments as of a block; none when it is unknown (getdeploymentinfo).
    fn deployments(&self, hash: BlockHash) -> Result<Option<Vec<Deployment>>>;

    /// Judges a block on the tip without its proof of work (BIP 23's proposals).
    fn check_block(&self, raw: &[u8]) -> Result<Verdict>;

    /// Takes a block (submitblock).
    fn submit_block(&self, raw: &[u8]) -> Result<Verdict>;

    /// Takes a header (submitheader).
    fn submit_header(&self, raw: &[u8]) -> Result<Verdict>;

    /// Marks a block as invalid (invalidateblock).
    fn invalidate_block(&self, hash: BlockHash) -> Result<()>;

    /// Takes that mark away (reconsiderblock).
    fn reconsider_block(&self, hash: BlockHash) -> Result<()>;

    /// Prefers a block to others of the same work (preciousblock).
    fn precious_block(&self, hash: BlockHash) -> Result<()>;

    /// The mempool as a whole.
    fn mempool_info(&self) -> Result<MempoolInfo>;

    /// The ids of the mempool's transactions.
    fn mempool_ids(&self) -> Result<Vec<Txid>>;

    /// What the mempool knows of these transactions.
    fn mempool_entries(&self, txids: &[Txid]) -> Result<Vec<Option<MempoolEntry>>>;

    /// These transactions of the mempool.
    fn mempool_transactions(&self, txids: &[Txid]) -> Result<Vec<Option<RawTransaction>>>;

    /// The transactions of the mempool with an interest that is wanted ([`interest`]), and those that spend their outputs, in an
    /// order in which none comes before one that it spends.
    fn mempool_concerning(&self, wanted: &dyn Fn(u64) -> bool) -> Result<Vec<(Txid, Arc<Transaction>)>>;

    /// The transactions of the mempool that spend these outputs.
    fn mempool_spenders(&self, outpoints: &[OutPoint]) -> Result<Vec<Option<Txid>>>;

    /// Whether these transactions of the mempool were submitted here and not taken by another node yet.
    fn mempool_unbroadcast(&self, txids: &[Txid]) -> Result<Vec<bool>>;

    /// Offers a transaction to the mempool, unless it pays more than `max_feerate`, in satoshi per 1000 virtual bytes; 0 is no
    /// limit.
    fn submit(&self, raw: &[u8], max_feerate: u64) -> Result<Admission>;

    /// What [`Node::submit`] would answer.
    fn try_submit(&self, raw: &[u8], max_feerate: u64) -> Result<Admission>;

    /// The feerate at which a transaction is expected to be confirmed within so many blocks, in satoshi per 1000 virtual bytes;
    /// none where there is no estimate.
    fn fee_estimate(&self, blocks: u32) -> Result<Option<u64>>;

    /// The transactions for the next block; none where `known` is still the newest version of them.
    fn candidate(&self, known: Option<u64>) -> Result<Option<Candidate>>;

    /// Adds to the fee that a transaction is selected by, in satoshi (prioritisetransaction).
    fn prioritise(&self, txid: Txid, fee_delta: i64) -> Result<()>;

    /// The transactions with such additions.
    fn prioritised(&self) -> Result<Vec<Prioritised>>;
}

/// The chain as it stood at one moment, however much it changes.
///
/// It may keep resources of the node, so it must not live longer than the call it serves. It may go to another thread, but is
/// not to be used by two at once.
pub trait Snapshot: Send {
    /// The best block. Answered from memory.
    fn tip(&self) -> Tip;

    /// Which chain this is and where it stands.
    fn info(&self) -> Result<ChainInfo>;

    /// A block's entry in the index; none when it is unknown.
    fn block_info(&self, block: BlockRef) -> Result<Option<BlockInfo>>;

    /// A block's serialisation, on any branch; none when it is unknown or only its header is known.
    fn block(&self, hash: BlockHash) -> Result<Option<Blob>>;

    /// What each transaction of a block that was connected once spent, the coinbase's entry being empty.
    fn spent_outputs(&self, hash: BlockHash) -> Result<Option<Vec<SpentOutputs>>>;

    /// The confirmed transaction of an id on the best chain.
    fn transaction(&self, txid: Txid) -> Result<Option<ConfirmedTransaction>>;

    /// The unspent outputs of the best chain at these outpoints, in their order.
    fn coins(&self, outpoints: &[OutPoint]) -> Result<Vec<Option<Coin>>>;

    /// The unspent outputs of the best chain that follow this one in the order of the table, or the first ones: at most so
    /// many, and fewer where their scripts are long.
    fn coins_after(&self, outpoint: Option<&OutPoint>, limit: u32) -> Result<Vec<UnspentOutput>>;

    /// The last block that a block and the best chain share; none when the block is unknown.
    fn fork_point(&self, hash: BlockHash) -> Result<Option<BlockInfo>>;

    /// The ends of all branches, the best chain's first, then by falling height.
    fn tips(&self) -> Result<Vec<ChainTip>>;

    /// The height of the first block whose running-maximum time is at least `time`, in seconds; none where there is none.
    fn first_at(&self, time: u64) -> Result<Option<u32>>;

    /// Searches the blocks of the best chain at these heights for what a wallet looks for. A block that cannot be read is no
    /// error: it is given without what is in it.
    fn find(&self, heights: Range<u32>, wanted: &ScriptSet) -> Result<Findings>;
}
