//! Hooks of the host around forwarded calls.

use bitcoin::Transaction;
use futures_util::future::BoxFuture;

/// Hooks that run after a call was forwarded, before its client has the answer.
pub trait Taps: Send + Sync {
    /// An answer of the node goes to a client: the host's own answers must not be older than it.
    fn answered(&self);

    /// The number of node answers sent to clients, if one of them may have shown a later block than the host's tip;
    /// `None` if certainly not.
    fn unconfirmed(&self) -> Option<u64>;

    /// Completes when the tip is no older than the blocks that clients were shown before, or after a bounded time.
    fn caught_up(&self) -> BoxFuture<'static, ()>;

    /// A transaction may have entered the mempool: completes when the wallets have seen it, or after a bounded time.
    fn mempool_changed(&self, submitted: Option<Transaction>) -> BoxFuture<'static, ()>;

    /// setmocktime: the node's time in Unix seconds; 0 for the system clock.
    fn time_set(&self, seconds: u64);

    /// The best chain may have changed: completes when the host has followed, or after a bounded time.
    fn chain_changed(&self) -> BoxFuture<'static, ()>;

    /// The node's own wallets have synchronised (syncwithvalidationinterfacequeue): completes when the host's have, or
    /// after a bounded time.
    fn wallets_synced(&self) -> BoxFuture<'static, ()>;
}
