//! Following the chain: a thread of the plugin that gives each block to a [`Follower`].
//!
//! The thread pulls the blocks ([`outrigger_service::Chain::steps`]) and compares them by hash. One commit of the plugin's store holds the
//! follower's rows and its position, so after a crash the follower continues with the next block.
//!
//! ```
//! use std::time::Duration;
//!
//! use outrigger_sdk::follow::{BlockWithSpent, Follow, Follower, Result};
//! use outrigger_sdk::service::{Chain, Scope};
//! use outrigger_sdk::store::Batch;
//! use outrigger_sdk::testing::StubHost;
//!
//! /// Keeps the number of transactions of each block.
//! struct Counts;
//!
//! impl Follower for Counts {
//!     fn connect(&mut self, block: &BlockWithSpent, store: &mut Batch) -> Result {
//!         store.put(&block.height.to_be_bytes(), &block.block.txdata.len().to_be_bytes());
//!         Ok(())
//!     }
//!
//!     fn disconnect(&mut self, block: &BlockWithSpent, store: &mut Batch) -> Result {
//!         store.delete(&block.height.to_be_bytes());
//!         Ok(())
//!     }
//! }
//!
//! let host = StubHost::new();
//! host.chain.mine(vec![]);
//! // A plugin keeps `following`, calls `wake` at the event `tip`, and `stop` in `Plugin::stop`.
//! let following = host.handle().follow(Counts)?;
//! following.wait_for(&host.chain.tip(Scope::NONE)?, Duration::from_secs(10))?;
//! assert_eq!(following.cursor().map(|cursor| cursor.height), Some(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod shared;
#[cfg(test)]
mod tests;
mod walk;

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use bitcoin::{Block, BlockHash, Transaction, TxOut, consensus};
use outrigger_service::chain::{Step, Tip};
use outrigger_service::{ErrorKind, Host, ServiceError};
use outrigger_values::error::RpcError;

pub use outrigger_service::chain::Cursor;

use crate::store::Batch;
use shared::Shared;

/// The key of the follower's position in the plugin's store. Without this row the follower begins at genesis.
pub const CURSOR_KEY: &[u8] = b"outrigger/cursor";

/// Why a follower did not process a block.
pub type Failure = Box<dyn Error + Send + Sync>;

/// The result of a follower's functions.
pub type Result<T = ()> = std::result::Result<T, Failure>;

/// A block, with the outputs that it spends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockWithSpent {
    /// Its hash.
    pub hash: BlockHash,
    /// Its height.
    pub height: u32,
    /// The block.
    pub block: Block,
    /// The outputs that it spends, one for each input in the block's order, without the coinbase's; empty without
    /// [`Follower::WITH_SPENT`].
    pub spent: Vec<TxOut>,
}

impl BlockWithSpent {
    fn read(step: Step, with_spent: bool) -> outrigger_service::Result<Self> {
        let Step { hash, height, block, spent } = step;
        let malformed = |reason: String| ServiceError::new(ErrorKind::Malformed, format!("block {hash}: {reason}"));
        let block: Block = consensus::deserialize(&block).map_err(|error| malformed(error.to_string()))?;
        let inputs: usize = block.txdata.iter().map(spending).sum();
        if with_spent && inputs != spent.len() {
            return Err(malformed(format!("{inputs} inputs spend {} outputs", spent.len())));
        }
        Ok(Self { hash, height, block, spent })
    }

    /// The transactions, each with the outputs that it spends, one for each input. The coinbase spends none.
    pub fn transactions(&self) -> impl Iterator<Item = (&Transaction, &[TxOut])> {
        let mut rest = self.spent.as_slice();
        self.block.txdata.iter().map(move |transaction| {
            let (spent, others) = rest.split_at_checked(spending(transaction)).unwrap_or_default();
            rest = others;
            (transaction, spent)
        })
    }
}

/// How many outputs a transaction of a block spends.
fn spending(transaction: &Transaction) -> usize {
    if transaction.is_coinbase() { 0 } else { transaction.input.len() }
}

/// Where a follower keeps its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// In the plugin's store, with its rows.
    InStore,
    /// Elsewhere, for example in a database in a folder: the last block that it has committed; none before the first.
    Elsewhere(Option<Cursor>),
}

/// Processes the blocks of the best chain.
///
/// After a failure or a panic the SDK logs it, pauses, and delivers the blocks since the last commit again. So a follower's state in
/// memory must stay correct when a block comes twice.
pub trait Follower: Send + 'static {
    /// Whether blocks come with the outputs that they spend.
    const WITH_SPENT: bool = true;

    /// Adds a block, the new tip. `store` has the changes of all blocks since the last commit, and [`Batch::get`] reads them.
    ///
    /// # Errors
    /// The follower cannot process the block now.
    fn connect(&mut self, block: &BlockWithSpent, store: &mut Batch) -> Result;

    /// Undoes [`Follower::connect`] of the tip, which has left the best chain.
    ///
    /// # Errors
    /// As for [`Follower::connect`].
    fn disconnect(&mut self, block: &BlockWithSpent, store: &mut Batch) -> Result;

    /// Where the follower keeps its position. The SDK asks at the start and after a failure; a follower that keeps it elsewhere then
    /// drops its uncommitted changes.
    ///
    /// # Errors
    /// The position cannot be read now.
    fn kept(&mut self) -> Result<Kept> {
        Ok(Kept::InStore)
    }

    /// Commits the blocks up to this one, if the follower keeps its position elsewhere. The SDK then drops `store`.
    ///
    /// # Errors
    /// Nothing was committed.
    fn commit(&mut self, _cursor: Cursor) -> Result {
        Ok(())
    }
}

/// Starts followers.
pub trait Follow {
    /// Follows the chain on a new thread, from the follower's position or from genesis on. A plugin has one follower that keeps its
    /// position in the store.
    ///
    /// # Errors
    /// The system cannot start a thread; for the operator.
    fn follow<F: Follower>(&self, follower: F) -> std::result::Result<Following, String>;
}

impl Follow for Host {
    fn follow<F: Follower>(&self, follower: F) -> std::result::Result<Following, String> {
        let shared = Arc::<Shared>::default();
        let (own, host) = (shared.clone(), self.clone());
        let thread = Builder::new().name("follow".into()).spawn(move || walk::run(follower, host, &own));
        let thread = thread.map_err(|error| format!("the follower's thread does not start: {error}"))?;
        Ok(Following { shared, thread: Mutex::new(Some(thread)) })
    }
}

/// A running follower. Dropping it ends the thread.
pub struct Following {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Following {
    /// Looks for new blocks now; call it at the event `tip`. Without it the follower looks every ten seconds.
    pub fn wake(&self) {
        self.shared.wake();
    }

    /// The last block whose rows are committed.
    pub fn cursor(&self) -> Option<Cursor> {
        self.shared.cursor()
    }

    /// Waits until the follower has processed the block `tip`, or a chain that has replaced it. Call it with the current tip in a
    /// method that reads the follower's rows, but not in an `inline` method.
    ///
    /// # Errors
    /// -28 if the follower does not reach the tip within `deadline`, or if the node cannot be reached; -1 if it fails or ends.
    pub fn wait_for(&self, tip: &Tip, deadline: Duration) -> std::result::Result<(), RpcError> {
        self.shared.wait_for(tip, deadline)
    }

    /// Ends the follower after its current block; call it in [`crate::Plugin::stop`].
    pub fn stop(&self) {
        self.shared.end("The plugin stops");
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ = thread.map(JoinHandle::join);
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.stop();
    }
}
