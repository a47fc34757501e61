//! `events/1`: what happens, told to the plugins whose manifest asks for it.
//!
//! Events are delivered by a thread of the instance's own from a bounded queue, never under a lock of the host, in the
//! order in which they happened. What a slow subscriber cannot take is dropped and counted.
//!
//! An event says that there is something to look at; what is so now, a service tells. A plugin that may not miss anything looks
//! again when the count of dropped events has grown.
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! use outrigger_sdk::serde_json::{Map, Value, json};
//! use outrigger_sdk::service::events::Event;
//! use outrigger_sdk::testing::TestHost;
//! use outrigger_sdk::{Call, Host, Plugin, Reply, RpcError};
//!
//! /// Counts the blocks that came while it ran.
//! struct Counter {
//!     host: Host,
//!     blocks: AtomicU32,
//! }
//!
//! impl Plugin for Counter {
//!     fn new(host: Host, _: Map<String, Value>) -> Result<Self, String> {
//!         Ok(Self { host, blocks: AtomicU32::new(0) })
//!     }
//!
//!     fn event(&self, event: Event) {
//!         // The manifest says `"events": ["tip"]`. `ShuttingDown` comes to everybody.
//!         if let Event::TipChanged { .. } = event {
//!             self.blocks.fetch_add(1, Ordering::Relaxed);
//!         }
//!     }
//!
//!     fn call(&self, call: Call<'_>, reply: Reply) {
//!         let dropped = self.host.events.dropped(call.scope).map_err(RpcError::from);
//!         let blocks = self.blocks.load(Ordering::Relaxed);
//!         reply.send(dropped.map(|dropped| json!({"blocks": blocks, "missed": dropped})));
//!     }
//! }
//!
//! const MANIFEST: &str = r#"{"id": "counter", "version": "1.0.0", "summary": "Counts blocks", "events": ["tip"],
//!     "services": ["events/1"], "methods": [{"name": "countblocks", "category": "Test", "help": "Tells the count."}]}"#;
//!
//! let test = TestHost::new();
//! let plugin = test.start::<Counter>(MANIFEST, json!({}));
//! let hash = test.chain.mine(vec![]);
//! plugin.tell(Event::TipChanged { hash, height: 1 });
//! assert_eq!(plugin.call("countblocks", json!([])), Ok(json!({"blocks": 1, "missed": 0})));
//! ```

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
        } = 3,
        /// A wallet was locked or unlocked (`wallet-lock`).
        WalletLockChanged {
            /// The wallet's name.
            wallet: String,
            /// Whether it is locked now.
            locked: bool,
        } = 4,
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
            Self::ShuttingDown => None,
        }
    }
}

/// The names that a manifest may ask for.
pub const TOPICS: [&str; 5] = ["tip", "mempool", "wallet-transaction", "rescan", "wallet-lock"];

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
