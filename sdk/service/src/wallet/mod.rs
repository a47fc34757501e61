//! The wallet services, split by what they permit: [`WalletRead`], [`WalletBook`], [`WalletPay`], [`WalletImport`], [`WalletAdmin`] and
//! [`WalletKeys`]. [`crate::Signer`] signs with the wallets' keys. This page is the contract of all of them; the tests of the host's
//! wallets check each of its promises.
//!
//! **Which wallet.** Functions without a wallet's name use the wallet of the call: the one in its URI, or the only loaded wallet that the
//! plugin may know. [`WalletRead::scope_of`] gives the scope of another. Without a wallet they fail with
//! [`crate::ErrorKind::WalletNotLoaded`], [`crate::ErrorKind::NoWallet`] or [`crate::ErrorKind::WalletNotSpecified`].
//!
//! **Grants for some wallets.** A plugin knows the wallets in its grant of `wallet-read/1`; without that grant, those in its other
//! grants. Any other wallet is `WalletNotLoaded`. For a wallet that the plugin knows, a service fails with `NotGranted` if its grant does
//! not list the wallet.
//!
//! **What a call sees.** The first of these functions in a call waits until the wallet has followed the chain to the tip at the start of
//! the call, and has taken over all earlier changes of the mempool. From then on all reads of the call see the wallet of that moment,
//! whatever others write. Only what the mempool alone can answer (replaceability, conflicts there) is read anew each time. After its own
//! write the call sees the wallet as written.
//!
//! **Writes** are atomic. A failed write changes nothing unless its function says otherwise. Ownership, debit, change and labels in rows,
//! coins and scripts are current: a write that affects them also updates them.
//!
//! **Following.** The wallet adds a transaction that it sees if the transaction pays to a script that is not [`Ownership::None`], or
//! spends such an output of a transaction of the wallet. It then keeps the transaction for good. Blocks confirm transactions. A
//! transaction that contradicts a block is conflicted, and so are the wallet's transactions that build on it; the lowest such block
//! counts. When a block is disconnected, the transactions that it confirmed or conflicted are in the mempool if they are there, else
//! inactive. Its coinbase is abandoned, and so are the transactions that build on it, until the wallet sees them again. A transaction
//! that leaves the mempool without a block is inactive. The host offers inactive transactions, except coinbases, to the mempool again
//! when the wallet is loaded, when a rescan ends, when the node returns, and then every 12 to 36 hours.
//!
//! **Lists** come in batches of at most `limit` entries; 0 counts as 1. The host may end a batch earlier, but not before its first entry.
//! `next` is the position of the next batch, none at the end of the list. Its bytes are opaque and remain valid after the call. A batch
//! `after` it begins behind the last entry of the former batch in the order of the list, even if that entry has left the list since. So
//! no entry comes twice, and a batch omits no entry that kept its position in the list throughout. An empty position, or one of more than
//! 64 bytes, is `Malformed`; other invented bytes are read as some position.
//!
//! **A locked wallet** (encrypted and not unlocked) refuses only functions that need its keys: `import`, `refill_keypool`, signing and
//! [`WalletKeys`] fail with `WalletLocked`.
//!
//! **The log** of a wallet has one entry for each change of a transaction's state, and one when it has 6 confirmations. The write that
//! makes the change also writes the entry. If one write covers several changes of a transaction, the entry is for the last. An import
//! that changes the wallet's share in a known transaction writes the entry of its state again. Numbers follow the host's clock, so that a
//! wallet restored from a backup does not use them again. The log keeps 100,000 entries, for at most 90 days.
//!
//! **Errors** besides the named ones: `Storage` (nothing was stored), `ShuttingDown`, `Stale` (the call has ended). These services accept
//! an empty passphrase; refusing it is up to the caller. The SDK's example `coins` shows the services in use.

mod admin;
mod balances;
mod book;
mod history;
mod import;
mod info;
mod keys;
mod limits;
mod log;
mod pay;
mod read;
mod received;
mod script;
mod spending;
#[cfg(test)]
mod tests;
mod write;

pub use admin::{CreateOptions, WalletAdmin};
pub use balances::{Balances, BalancesQuery, CoinTotals};
pub use book::{LabelBatch, LabelledScript, WalletBook};
pub use history::{
    CoinBatch, HistoryBatch, HistoryBatchView, HistoryQuery, HistoryRange, HistoryRow, HistoryRowView, Replaceable,
    TxState, UnsettledState, UnsettledStateView, WalletCoin, WalletOutput, WalletOutputView, WalletTransaction,
    WalletTransactionView,
};
pub use import::{DescriptorImport, Import, ImportOutcome, KeysImport, WalletImport};
pub use info::{AddressSource, AddressType, RescanProgress, Synced, WalletInfo};
pub use keys::{DescriptorInfo, HdKey, WalletKeys};
pub use limits::{MAX_LABEL_LEN, MAX_NAME_LEN, MAX_SCRIPT_LEN, MAX_TEXT_LEN, check_label, check_length, check_name};
pub use log::{LOG_DEPTH, LogCategory, LogEntry, LogKind, LogPayment, MAX_LOG_ENTRIES, WalletLog};
pub use pay::WalletPay;
pub use read::WalletRead;
pub use received::{Received, ReceivedBy, ReceivedQuery, ReceivedView};
pub use script::{KeyOrigin, Ownership, ScriptInfo, SolvingData, TapLeaf, TaprootData};
pub use spending::SpendSettings;
// Only the host writes histories.
#[doc(hidden)]
pub use write::HistoryWriter;
