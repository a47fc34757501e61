//! `events/1`: what happens, told to the plugins whose manifest asks for it.
//!
//! Events are delivered by a thread of the instance's own from a bounded queue, never under a lock of the host, in the
//! order in which they happened. What a slow subscriber cannot take is dropped and counted.
//!
//! An event says that there is something to look at; what is so now, a service tells. A plugin that may not miss anything looks
//! again when the count of dropped events has grown.
//!
//! The example `events` of the SDK shows it in use.

use bitcoin::{BlockHash, Txid};

use super::service;
use crate::wire::wire_enum;

wire_enum! {
    /// Something that happened. In parentheses stands the name by which a manifest asks to hear of it.
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
        /// A wallet stored a transaction or changed what it knows of one (`wallet-transaction`).
        WalletTransaction {
            /// The wallet's name.
            wallet: String,
            /// The transaction.
            txid: Txid,
        } = 2,
        /// A rescan came to its end (`rescan`).
        RescanFinished {
            /// The wallet's name.
            wallet: String,
            /// The number that `rescan_start` gave.
            rescan: u64,
            /// How it ended.
            outcome: RescanOutcome,
            /// The height of the last block that was to be read; none where there was none.
            #[since(1)]
            last_height: Option<u32>,
            /// Whether payments near the end of what the wallet had derived made it derive more and read the blocks again.
            #[since(1)]
            widened: bool,
        } = 3,
        /// A wallet was locked or unlocked (`wallet-lock`).
        WalletLockChanged {
            /// The wallet's name.
            wallet: String,
            /// Whether it is locked now.
            locked: bool,
        } = 4,
        /// A deep reorganisation (`wallet.reorganisation_notice`) took transactions of a wallet out of the chain, and the wallet has
        /// followed it (`reorganisation`). Some of them may be confirmed again in other blocks.
        #[since(1)]
        WalletReorganised {
            /// The wallet's name.
            wallet: String,
            /// How many blocks the wallet went back.
            blocks: u32,
            /// The transactions, in no order; at most [`MAX_REORGANISED`].
            transactions: Vec<Txid>,
        } = 6,
        /// A call ended that the plugin observes (`wrapper = "observe"`). Always told to observers, and to nobody else.
        #[since(1)]
        CallEnded {
            /// The method.
            method: String,
            /// The user's name.
            user: String,
            /// The wallet that the call names, or the user's only one.
            wallet: Option<String>,
            /// 0 for a result, else the error's code; -1 for a call that was not begun.
            code: i32,
            /// How long it took, in microseconds.
            microseconds: u64,
        } = 7,
        /// The time of a timer of the manifest has come (`timers`). Times that passed meanwhile, for example while the machine slept, are
        /// one event. Always told to the plugin of the timer, and to nobody else.
        #[since(1)]
        Timer {
            /// The timer's name.
            name: String,
        } = 9,
        /// The log of a wallet has new entries, which `log` of `wallet-read/1` reads (`wallet-log`).
        #[since(1)]
        WalletLogged {
            /// The wallet's name.
            wallet: String,
            /// The number of the newest entry.
            last: u64,
        } = 8,
        /// The host is stopping; kept reply tokens should be answered now (always told).
        ShuttingDown = 5,
    }
}

impl Event {
    /// The name by which a manifest asks for this kind of event; none for what is always told.
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

    /// The wallet that it is about, where it is about one.
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

/// The names that a manifest may ask for.
pub const TOPICS: [&str; 7] =
    ["tip", "mempool", "wallet-transaction", "rescan", "wallet-lock", "reorganisation", "wallet-log"];

/// The most transactions that [`Event::WalletReorganised`] lists. `listsinceblock` lists all.
pub const MAX_REORGANISED: usize = 1000;

wire_enum! {
    /// How a rescan ended.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum RescanOutcome {
        /// Everything that had to be read was read.
        Complete = 0,
        /// Some blocks could not be read.
        Unreadable {
            /// The running-maximum time of the last such block, in seconds.
            block_time: u32,
        } = 1,
        /// Aborted by a client or by the host's stopping.
        Aborted = 2,
    }
}

service! {
    /// The state of this instance's event queue.
    pub trait Events as EventsClient = "events/1" {
        /// How many events were dropped because the queue was full.
        fn dropped() -> u64;
    }
}
