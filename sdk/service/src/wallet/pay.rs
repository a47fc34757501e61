//! `wallet-pay/1`.

use bitcoin::Txid;
use outrigger_values::FeeRate;

#[cfg(doc)]
use super::TxState;
use crate::mempool::Admission;
use crate::service;
use crate::wire::Blob;

service! {
    /// Payments of a wallet. The caller signs the transactions first, for example with [`crate::Signer`].
    pub trait WalletPay = "wallet-pay/1" {
        /// Waits until no other call makes a payment of the wallet, and makes others wait until this call has ended. Called before a
        /// payment reads the coins, it keeps two payments from choosing the same coin. Later reads of the call see the payments before
        /// it. Does nothing if the call has begun a payment already. After a minute the call no longer makes others wait; `send` refuses
        /// its payment if another has spent the coins by then.
        ///
        /// `Stale` once nobody waits for the call's answer; `Unsupported` for methods marked `inline`, which may not wait, and outside of
        /// calls.
        fn begin_payment() -> ();
        /// Sends a signed transaction of the wallet. Before a byte of it leaves the host, the wallet stores it with these texts (see
        /// `set_metadata`), so that no other payment spends its coins. It is stored as inactive, or as in the mempool if the node is in
        /// the host's process. The host then offers it to the mempool. Returns the node's answer; none if the node is away or did not
        /// answer, and if broadcasting is off. The transaction stays even if the mempool refuses it: it is then inactive, keeps its coins
        /// until `abandon`, and is offered again as all inactive transactions are. If the host is killed, the transaction is stored as
        /// described, or not at all. A transaction that the wallet already has is only offered.
        ///
        /// `Refused` if it neither pays to the wallet nor spends from it, or spends a coin that a confirmed, mempool or inactive
        /// transaction of the wallet already spends; and for a text of more than 16,384 bytes. After an error, nothing of it is stored
        /// or sent.
        fn send(raw: Blob, metadata: Vec<(String, String)>) -> Option<Admission>;
        /// Sends a transaction as `send` does, in place of an unconfirmed transaction of the wallet; it may spend the same coins. Each of
        /// the two gets the other's id as a text (`replaces_txid`, `replaced_by_txid`), even if the mempool refuses the new one.
        /// `NotFound` if the wallet does not have the transaction to replace.
        fn replace(replaced: Txid, raw: Blob, metadata: Vec<(String, String)>) -> Option<Admission>;
        /// Abandons a transaction that is neither in the chain nor in the mempool, and the wallet's transactions that build on it. This
        /// frees the coins that they spend. An abandoned transaction counts again if the wallet sees it again. Does nothing if it is
        /// abandoned already. `NotFound` if the wallet does not have it; `Refused` if it is in the chain, in the mempool, or
        /// [`TxState::Conflicted`]; `NodeUnavailable` while the node cannot say whether it is in the mempool.
        fn abandon(txid: Txid) -> ();
        /// Sets the feerate of payments that name none, until the wallet is unloaded; none: estimates it again.
        fn set_pay_feerate(feerate: Option<FeeRate>) -> ();
    }
}
