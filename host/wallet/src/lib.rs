//! The wallet engine: scripts, history and keys of each wallet.
//!
//! Each wallet is one LMDB environment (`store`). A few threads follow the chain and the mempool for all loaded wallets
//! (`follow`); a busy wallet does not delay the others. [`WalletView`] reads from a snapshot, [`Wallet`] writes.
//!
//! Invariants:
//! - One write transaction changes a wallet's rows and its `synced` block, so they never disagree. The position in
//!   memory may be ahead of the stored one; every write stores it, too.
//! - A wallet never skips a block: if events do not lead from `synced` to the tip, it reads the blocks in between.
//! - A write computes the owner of each output and the debit of each transaction. An import recomputes the rows that it
//!   affects in the same write. Labels are looked up at read time; they also decide whether an output is change
//!   (`labels`).
//! - No callback of the host runs within a write transaction, or under a lock other than a wallet's write lock.
//! - A payment is stored before any byte of it leaves the host, so a client that retries after an error never pays
//!   twice. Neither a lost answer nor a refusal by the mempool is an error for the client (`send`).
//! - Payments of one wallet are made one after the other (`turns`). Storing a second spend of a coin is refused.
//! - A write that replaces a key or a passphrase sets a mark. The mark stays until a search of the file no longer finds
//!   the former secret (`scrub`). Loading a wallet finishes an interrupted search.
//! - A panic while a wallet follows the chain fails that wallet alone.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "a broken expectation fails the test"))]

mod attempts;
mod backup;
mod contents;
mod creation;
mod descriptors;
mod draw;
mod edits;
mod encrypt;
mod error;
mod export;
mod files;
mod follow;
mod former_keys;
mod guarding;
mod guards;
mod import;
mod imported;
mod keypool;
mod labels;
mod latest;
mod live;
mod loading;
mod log;
mod logging;
mod manager;
mod matching;
mod ownership;
mod passphrase;
mod reorganisations;
mod rescan;
mod scrub;
mod send;
mod settings;
mod store;
mod sums;
#[cfg(test)]
mod tests;
mod trust;
mod turns;
mod view;
mod witnesses;
mod write;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;

use bitcoin::Network;
use outrigger_service::chain::{BlockInfo, BlockRef};
use outrigger_service::events::Event;
use parking_lot::Mutex;

use attempts::AllAttempts;
pub use contents::{WalletContents, check_file};
pub use creation::take_over;
pub use encrypt::key_of_file as encryption_key;
pub use files::remove as remove_wallet;
use follow::thread::Follower;
use guards::Guards;
pub use guards::Policies;
pub use live::Wallet;
pub use loading::open_files;
pub use manager::{WalletManager, WalletStatus};
use outrigger_base::client_files::ClientFiles;
use outrigger_node::Node;
use outrigger_standard::release::{self, Rules};
pub use settings::{PolicyRule, Settings};
pub use store::LAYOUT;
pub use turns::Turn;
pub use view::{Signing, WalletView};

/// Receives the engine's events. The engine may call it under a wallet's write lock, so that the events of a wallet keep
/// the order of its writes, but under no other lock. So it must neither wait nor call the engine. The host's sink only
/// adds to bounded queues, which drop events when they are full.
pub type Sink = Arc<dyn Fn(Event) + Send + Sync>;

struct Shared {
    network: Network,
    settings: Settings,
    guards: Guards,
    node: Arc<dyn Node>,
    sink: Sink,
    /// The loaded wallets and the threads that follow the node. Part of a reference cycle, which the manager's shutdown
    /// breaks.
    follower: Arc<Follower>,
    client_files: ClientFiles,
    attempts: AllAttempts,
    /// Wakes the thread that makes backups, if there is one; `None` once the host stops.
    backups_due: Mutex<Option<SyncSender<()>>>,
    /// The host is stopping: long imports abort, and no rescan starts.
    stopping: AtomicBool,
}

impl Shared {
    /// Called when a wallet needs a backup, is loaded or is unloaded.
    fn wake_backups(&self) {
        if let Some(sender) = &*self.backups_due.lock() {
            // If the channel is full, the thread has yet to see an earlier message.
            let _ = sender.try_send(());
        }
    }

    fn rules(&self) -> Rules {
        release::rules(self.node.release())
    }

    /// A block's entry in the current chain; `None` if the block is unknown.
    fn block_info(&self, block: BlockRef) -> error::Result<Option<BlockInfo>> {
        Ok(self.node.snapshot()?.block_info(block)?)
    }
}
