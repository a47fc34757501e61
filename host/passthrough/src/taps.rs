use bitcoin::Transaction;
use bytes::Bytes;
use futures_util::future::BoxFuture;

/// A client's transaction that the node has accepted, and the node's answers right after that.
pub struct Submission {
    pub transaction: Transaction,
    /// The JSON result of `getbestblockhash`.
    pub best: Bytes,
    /// The JSON result of `getmempoolentry`.
    pub entry: Bytes,
}

/// The host's hooks around forwarded calls. They run before the client has the answer.
pub trait Taps: Send + Sync {
    /// The node has answered a client: the host's own answers must be at least as recent.
    fn answered(&self);

    /// The number of node answers that clients have seen, if one may have shown a later block than the host's tip.
    fn unconfirmed(&self) -> Option<u64>;

    /// Completes when the tip is no older than the blocks that clients have seen, or after a bounded time.
    fn caught_up(&self) -> BoxFuture<'static, ()>;

    /// The best chain or the mempool may have changed. With a submission, only its transaction is new. Completes when the host has
    /// followed, or after a bounded time.
    fn changed(&self, submission: Option<Submission>) -> BoxFuture<'static, ()>;

    /// A client has set the node's time (setmocktime), in Unix seconds; 0 for the system's clock.
    fn time_set(&self, seconds: u64);

    /// The node's own wallets have synchronised (syncwithvalidationinterfacequeue). Completes when the host's have, or
    /// after a bounded time.
    fn wallets_synced(&self) -> BoxFuture<'static, ()>;
}
