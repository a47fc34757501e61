//! What the host does around calls that are passed on.

use bitcoin::Transaction;
use futures_util::future::BoxFuture;

/// What the host does when a call was passed on, before its client has the answer.
pub trait Taps: Send + Sync {
    /// An answer of the node goes to a client: what the client saw there, it must not miss in the host's own answers.
    fn answered(&self);

    /// How many answers of the node had gone to clients, where one of them may have shown a later block than the tip that the host
    /// knows; none where that is certainly not so.
    fn unconfirmed(&self) -> Option<u64>;

    /// Ends when the tip is no older than what clients were shown before, or after a bounded time.
    fn caught_up(&self) -> BoxFuture<'static, ()>;

    /// A transaction may have entered the mempool: ends when the wallets have seen it, or after a bounded time.
    fn mempool_changed(&self, submitted: Option<Transaction>) -> BoxFuture<'static, ()>;

    /// The node's time was set, in Unix seconds; 0: it is the clock's again (setmocktime).
    fn time_set(&self, seconds: u64);

    /// The best chain may have changed: ends when the host has followed, or after a bounded time.
    fn chain_changed(&self) -> BoxFuture<'static, ()>;

    /// The node's own wallets have followed (syncwithvalidationinterfacequeue): ends when the host's have, or after a bounded time.
    fn wallets_synced(&self) -> BoxFuture<'static, ()>;
}
