use bitcoin::Transaction;
use futures_util::future::BoxFuture;

/// The host's hooks around forwarded calls. They run before the client has the answer.
pub trait Taps: Send + Sync {
    /// The node has answered a client: the host's own answers must be at least as recent.
    fn answered(&self);

    /// The number of node answers that clients have seen, if one may have shown a later block than the host's tip.
    fn unconfirmed(&self) -> Option<u64>;

    /// Completes when the tip is no older than the blocks that clients have seen, or after a bounded time.
    fn caught_up(&self) -> BoxFuture<'static, ()>;

    /// The best chain may have changed, or the mempool may have a new transaction. Completes when the host has followed, or after a
    /// bounded time.
    fn changed(&self, submitted: Option<Transaction>) -> BoxFuture<'static, ()>;

    /// A client has set the node's time (setmocktime), in Unix seconds; 0 for the system's clock.
    fn time_set(&self, seconds: u64);

    /// The node's own wallets have synchronised (syncwithvalidationinterfacequeue). Completes when the host's have, or
    /// after a bounded time.
    fn wallets_synced(&self) -> BoxFuture<'static, ()>;
}
