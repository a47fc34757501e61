//! `events/1`: notifications for the plugins that subscribe to them in their manifest.
//!
//! Each instance has a bounded queue and a thread that delivers its events in order, never under a lock of the host.
//! If the queue of a slow subscriber is full, the host drops events and counts them.
//!
//! An event only reports a change; the plugin reads the current state from a service. A plugin that must not miss a change
//! reads the state again after the count of dropped events has grown.
//!
//! The example `events` of the SDK shows it in use.

use bitcoin::{BlockHash, Txid};

use super::service;
use crate::wire::wire_enum;

wire_enum! {
    /// An event. The name in parentheses subscribes to it in the manifest.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum Event {
        /// The best chain has another tip (`tip`).
        TipChanged {
            /// The new tip.
            hash: BlockHash,
            /// Its height.
            height: u32,
        } = 0,
        /// Transactions came to or left the mempool (`mempool`).
        MempoolChanged {
            /// The mempool's sequence afterwards.
            sequence: u64,
        } = 1,
        /// A wallet stored or updated a transaction (`wallet-transaction`).
        WalletTransaction {
            /// The wallet's name.
            wallet: String,
            /// The transaction.
            txid: Txid,
        } = 2,
        /// A rescan ended (`rescan`).
        RescanFinished {
            /// The wallet's name.
            wallet: String,
            /// The number that `rescan_start` returned.
            rescan: u64,
            /// How it ended.
            outcome: RescanOutcome,
            /// The height of the last block of the rescan's range; none if the range was empty.
            last_height: Option<u32>,
            /// Whether the wallet found payments near the end of its derived range, derived more scripts and read the blocks again.
            widened: bool,
        } = 3,
        /// A wallet was locked or unlocked (`wallet-lock`).
        WalletLockChanged {
            /// The wallet's name.
            wallet: String,
            /// Whether it is locked now.
            locked: bool,
        } = 4,
        /// A wallet has followed a deep reorganisation (`wallet.reorganisation_notice`) that removed its transactions from the chain
        /// (`reorganisation`). Other blocks may confirm some of them again.
        WalletReorganised {
            /// The wallet's name.
            wallet: String,
            /// The number of blocks that the wallet disconnected.
            blocks: u32,
            /// The transactions, in no order; at most [`MAX_REORGANISED`].
            transactions: Vec<Txid>,
        } = 6,
        /// A call that the plugin observes ended (`wrapper = "observe"`). Only observers get it, without a subscription.
        CallEnded {
            /// The method.
            method: String,
            /// The user's name.
            user: String,
            /// The wallet that the call names, or the user's only one.
            wallet: Option<String>,
            /// 0 for a result, else the error's code; -1 for a call that did not start.
            code: i32,
            /// How long it took, in microseconds.
            microseconds: u64,
        } = 7,
        /// A timer of the manifest fired (`timers`). Missed times, for example while the machine slept, give a single event. Only the
        /// timer's plugin gets it, without a subscription.
        Timer {
            /// The timer's name.
            name: String,
        } = 9,
        /// The log of a wallet has new entries (`wallet-log`); `log` of `wallet-read/1` reads them.
        WalletLogged {
            /// The wallet's name.
            wallet: String,
            /// The number of the newest entry.
            last: u64,
        } = 8,
        /// The host is stopping. The plugin should answer all kept reply tokens now. Every plugin gets it, without a subscription.
        ShuttingDown = 5,
    }
}

impl Event {
    /// The name that subscribes to this kind of event in a manifest; none for an event that needs no subscription.
    pub fn topic(&self) -> Option<&'static str> {
        match self {
            Self::TipChanged { .. } => Some("tip"),
            Self::MempoolChanged { .. } => Some("mempool"),
            Self::WalletTransaction { .. } => Some("wallet-transaction"),
            Self::RescanFinished { .. } => Some("rescan"),
            Self::WalletLockChanged { .. } => Some("wallet-lock"),
            Self::WalletReorganised { .. } => Some("reorganisation"),
            Self::WalletLogged { .. } => Some("wallet-log"),
            Self::CallEnded { .. } | Self::Timer { .. } | Self::ShuttingDown => None,
        }
    }

    /// The wallet of the event, if it concerns one.
    pub fn wallet(&self) -> Option<&str> {
        match self {
            Self::WalletTransaction { wallet, .. }
            | Self::RescanFinished { wallet, .. }
            | Self::WalletLockChanged { wallet, .. }
            | Self::WalletReorganised { wallet, .. }
            | Self::WalletLogged { wallet, .. } => Some(wallet),
            Self::TipChanged { .. }
            | Self::MempoolChanged { .. }
            | Self::CallEnded { .. }
            | Self::Timer { .. }
            | Self::ShuttingDown => None,
        }
    }
}

/// The names of the events that a manifest may subscribe to.
pub const TOPICS: [&str; 7] =
    ["tip", "mempool", "wallet-transaction", "rescan", "wallet-lock", "reorganisation", "wallet-log"];

/// The most transactions that [`Event::WalletReorganised`] lists. `listsinceblock` lists all.
pub const MAX_REORGANISED: usize = 1000;

wire_enum! {
    /// How a rescan ended.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum RescanOutcome {
        /// The wallet read all blocks of the range.
        Complete = 0,
        /// Some blocks could not be read.
        Unreadable {
            /// The greatest header time up to the last such block, in seconds.
            block_time: u32,
        } = 1,
        /// A client or the shutdown of the host aborted it.
        Aborted = 2,
    }
}

service! {
    /// The state of this instance's event queue.
    pub trait Events = "events/1" {
        /// The number of events that the host dropped because the queue was full.
        fn dropped() -> u64;
    }
}
