//! `wallet-pay/1`.

use bitcoin::Txid;
use outrigger_values::FeeRate;

#[cfg(doc)]
use super::TxState;
use crate::mempool::Admission;
use crate::service;
use crate::wire::Blob;

service! {
    /// Payments of a wallet. The transactions come signed: [`crate::Signer`] signs.
    pub trait WalletPay as WalletPayClient = "wallet-pay/1" {
        /// Waits until no other call makes a payment of the wallet, and keeps others waiting until this call has ended: called
        /// before a payment looks at the coins, it keeps two payments from choosing the same one. What the call reads afterwards is
        /// the wallet as the payments before it left it. Nothing where this call has begun one already. A call that takes longer
        /// than a minute keeps nobody waiting any more; should its payment then spend what another has spent, `send` refuses it.
        ///
        /// `Stale` once nobody waits for the call's answer; `Unsupported` for methods marked `inline`, which may not wait, and
        /// outside of calls.
        fn begin_payment() -> ();
        /// Sends a signed transaction of the wallet. It is stored with these texts (see `set_metadata`) before a byte of it leaves
        /// the host, so that nothing else spends what it does: inactive, or in the mempool where the node is in the host's process.
        /// Then it is offered to the mempool. Gives the answer; none where the node did not say whether it took it, or is away, and
        /// where nothing is broadcast. It stays in any case, also where the mempool refuses it: then it is inactive, what it
        /// spends is taken until it is given up (`abandon`), and it is offered again as all that is inactive. A kill of the host
        /// leaves nothing of it before it is stored, and such a transaction after. One that the wallet has already is only
        /// offered.
        ///
        /// `Refused` where it neither pays to the wallet nor spends from it, or spends what another transaction of the wallet does
        /// that is confirmed, in the mempool or inactive; and for a text of more than 16,384 bytes. With an error, nothing of it is
        /// stored or sent.
        fn send(raw: Blob, metadata: Vec<(String, String)>) -> Option<Admission>;
        /// Sends a transaction as `send` does that takes the place of one of the wallet which is not confirmed: that this spends
        /// the same is no reason to refuse it. Each of the two gets the other's id as a text (`replaces_txid`, `replaced_by_txid`),
        /// also where the mempool refuses it. `NotFound` where the wallet does not have the one to replace.
        fn replace(replaced: Txid, raw: Blob, metadata: Vec<(String, String)>) -> Option<Admission>;
        /// Gives up a transaction that is neither in the chain nor in the mempool, and what of the wallet builds on it: what
        /// they spend is free. Should one come back, it counts as if it had not been given up. Nothing for one that is given
        /// up already. `NotFound` for one that the wallet does not have; `Refused` when it is in the chain, in the mempool,
        /// or [`TxState::Conflicted`].
        fn abandon(txid: Txid) -> ();
        /// Sets the feerate of payments that name none, until the wallet is unloaded; none: it is estimated again.
        fn set_pay_feerate(feerate: Option<FeeRate>) -> ();
    }
}
