//! The wallets, in services by what these allow: [`WalletRead`], [`WalletBook`], [`WalletPay`], [`WalletImport`], [`WalletAdmin`]
//! and [`WalletKeys`]. [`crate::Signer`] signs with their keys. This page is the contract of all of them. The tests of the host's
//! wallets hold them against it, promise by promise.
//!
//! **Which wallet.** But for those that name one, the functions concern the wallet of the call: the one that its URI names, or the
//! only one loaded that the plugin may know. [`WalletRead::scope_of`] gives the scope of another. They fail with [`crate::ErrorKind::WalletNotLoaded`], [`crate::ErrorKind::NoWallet`] or
//! [`crate::ErrorKind::WalletNotSpecified`] where there is none.
//!
//! **Grants for some wallets.** A plugin knows the wallets of its grant of `wallet-read/1`; without that grant, those of its other
//! grants. Others are `WalletNotLoaded`. For a wallet that it knows, a service whose grant does not list it is `NotGranted`.
//!
//! **What is seen.** The first of them in a call waits until the wallet has followed the chain to the tip that the call
//! met, and taken over what the mempool told before. From then on all reads of the call see the wallet of that moment,
//! whatever others write; only what the mempool alone can say (replaceability, conflicts there) is of the moment of the
//! question. After a write of its own the call sees the wallet as written.
//!
//! **Writes** happen wholly or not at all. One that fails has changed nothing, except where its own words say so.
//! Ownership, debit, change and labels in rows, coins and scripts are those of now: the write that changes a reason for
//! them changes them.
//!
//! **Following.** A transaction is the wallet's from when it is met while it pays to a script that is not
//! [`Ownership::None`], or spends such an output of a transaction of the wallet; it stays for good. Block after block it is
//! confirmed; what a block contradicts, and what of the wallet builds on that, is conflicted by the lowest such block.
//! When a block is disconnected, what it confirmed or made impossible is in the mempool if it is there, else inactive; its
//! coinbase is given up, and so is what builds on it until it is met again. What leaves the mempool without a block is
//! inactive. What is inactive and no coinbase is offered to the mempool again when the wallet is loaded, when a rescan ends,
//! when the node is there again after it was away, and then every 12 to 36 hours.
//!
//! **Lists** come in batches. `limit` is the most of a batch, 0 counts as 1, and a batch may end sooner; it holds at least
//! one entry where there is any. `next` is where the list goes on, none at its end. Its bytes mean nothing to the caller
//! and outlive the call: a batch that begins `after` them holds what stands behind the last entry of the former batch by
//! the order of the list, also when that entry has left the list since. So no entry comes twice, and none is left out that
//! stood in the list all the time at one place. An empty place, or one of more than 64 bytes, is `Malformed`; others that
//! no batch gave are read as some place.
//!
//! **A locked wallet** (encrypted and not unlocked) answers everything but what needs its keys: `import`, `refill_keypool`, signing
//! and [`WalletKeys`] fail with `WalletLocked`.
//!
//! **The log** of a wallet has an entry for each change of where a transaction stands, and one when it has 6 confirmations. Entries are
//! written with the change, and each once. One write may cover several changes of a transaction, and then tells the last. An import
//! that changes what of a known transaction is the wallet's writes the entry of where it stands again. Numbers follow the host's
//! clock, so that they are not given again after a wallet was restored from a backup. The log keeps 100,000 entries, for at most
//! 90 days.
//!
//! **Errors** beside those that are named: `Storage` (nothing was stored), `ShuttingDown`, `Stale` (the call has ended).
//! Only the caller's rules refuse an empty passphrase: it is not checked here.
//! The example `coins` of the SDK shows them in use.

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

pub use admin::{CreateOptions, WalletAdmin, WalletAdminClient};
pub use balances::{Balances, BalancesQuery, CoinTotals};
pub use book::{LabelBatch, LabelledAddress, LabelledScript, WalletBook, WalletBookClient};
pub use history::{
    CoinBatch, HistoryBatch, HistoryBatchView, HistoryQuery, HistoryRange, HistoryRow, HistoryRowView, Replaceable,
    TxState, UnsettledState, UnsettledStateView, WalletCoin, WalletOutput, WalletOutputView, WalletTransaction,
    WalletTransactionView,
};
pub use import::{DescriptorImport, Import, ImportOutcome, KeysImport, WalletImport, WalletImportClient};
pub use info::{AddressSource, AddressType, RescanProgress, Synced, WalletInfo};
pub use keys::{DescriptorInfo, HdKey, WalletKeys, WalletKeysClient};
pub use limits::{MAX_LABEL_LEN, MAX_SCRIPT_LEN, MAX_TEXT_LEN, check_label, check_script, check_text};
pub use log::{LOG_DEPTH, LogCategory, LogEntry, LogKind, LogPayment, MAX_LOG_ENTRIES, WalletLog};
pub use pay::{WalletPay, WalletPayClient};
pub use read::{WalletRead, WalletReadClient};
pub use received::{Received, ReceivedBy, ReceivedQuery, ReceivedView};
pub use script::{KeyOrigin, Ownership, ScriptInfo, SolvingData, TapLeaf, TaprootData};
pub use spending::SpendSettings;
// The host writes a history; others read it.
#[doc(hidden)]
pub use write::HistoryWriter;
