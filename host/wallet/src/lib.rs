//! The wallets: what they own, their history, and their keys.
//!
//! Each wallet is one LMDB environment (`store`). A few threads follow the chain and the mempool for all loaded wallets
//! (`follow`); one that is busy holds up no other. What clients ask is read from snapshots ([`WalletView`]) or written by [`Wallet`].
//!
//! Invariants:
//! - A wallet's rows and its `synced` block change in one write transaction, so that they never disagree. In memory a wallet
//!   may stand further than it has stored: every write stores that too.
//! - A wallet never skips a block: where events do not lead from `synced` to the tip, it reads the chain between them.
//! - A write computes the owner of each output and the debit of each transaction; an import computes the rows that it touches anew
//!   in the same write. Each answer looks up labels, which also decide whether an output is change (`labels`).
//! - No callback of the host runs while a lock or a write transaction is held.
//! - A payment is stored before any byte of it leaves the host, so a client that pays again after an error never pays twice. Neither a
//!   lost answer nor a refusal by the mempool is an error for the client (`send`).
//! - Payments of one wallet are made one after the other (`paying`). Storing a second spend of a coin is refused.
//! - The write that replaces a key or a passphrase sets a mark, which stays until a search of the file no longer finds the former
//!   secret (`scrub`). Loading a wallet finishes an interrupted search.
//! - A panic while a wallet follows the chain fails that wallet alone.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by failing"))]

mod absolute;
mod attempts;
mod backup;
mod binding;
mod coins;
mod copied;
mod creation;
mod credits;
mod descriptors;
mod draw;
mod edits;
mod encrypt;
mod error;
mod files;
mod follow;
mod former_keys;
mod hardened;
mod import;
mod imported;
mod keypool;
mod labels;
mod latest;
mod layout;
mod live;
pub mod load_list;
mod loading;
mod locks;
mod manager;
mod matching;
mod ownership;
mod passphrase;
mod paying;
mod pruned_funds;
mod reorganisations;
mod rescan;
mod scrub;
mod send;
mod settings;
mod signing;
mod store;
mod sums;
mod synced;
#[cfg(test)]
mod tests;
mod trust;
mod turns;
mod unsent;
mod view;
mod write;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bitcoin::Network;
use outrigger_service::chain::{BlockInfo, BlockRef};
use outrigger_service::events::Event;

use attempts::AllAttempts;
pub use copied::take_over;
pub use encrypt::key_of_file as encryption_key;
pub use files::remove as remove_wallet;
use follow::thread::Follower;
pub use live::Wallet;
pub use manager::{WalletManager, WalletStatus};
use outrigger_base::client_files::ClientFiles;
use outrigger_node::Node;
use outrigger_standard::release::{self, Rules};
pub use paying::Turn;
use scrub::Scrubber;
pub use settings::Settings;
pub use view::WalletView;

/// Where the engine tells what happened. Called under no lock.
pub type Sink = Arc<dyn Fn(Event) + Send + Sync>;

/// What all wallets share.
struct Shared {
    network: Network,
    settings: Settings,
    node: Arc<dyn Node>,
    sink: Sink,
    /// The loaded wallets and what follows the node for them. They and this know each other until the manager is shut down.
    follower: Arc<Follower>,
    /// The rule for files that clients name.
    client_files: Arc<ClientFiles>,
    /// Attempts to unlock wallets.
    attempts: AllAttempts,
    /// Removes former secrets from wallets' files where that could not be done at once.
    scrubber: Arc<Scrubber>,
    /// The host is stopping: imports that take long are given up.
    stopping: AtomicBool,
}

impl Shared {
    /// What the node's release does in its own way.
    fn rules(&self) -> Rules {
        release::rules(self.node.release())
    }

    /// A block's entry in the chain as it stands now; none when it is unknown.
    fn block_info(&self, block: BlockRef) -> error::Result<Option<BlockInfo>> {
        Ok(self.node.snapshot()?.block_info(block)?)
    }
}
