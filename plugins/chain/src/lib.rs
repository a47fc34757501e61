//! The operation group `chain`: the chain and the mempool, raw transactions, addresses and descriptors.
//!
//! Invariants: between calls the plugin keeps no chain data except whether the tip was ever recent, and the headers of
//! block filters, which never change. A call reads one snapshot. A waiting call holds no thread. Results have exactly
//! the keys of the call's Bitcoin Core release, in its order, because strict clients refuse unknown keys.

mod activity;
mod block_stats;
mod blocks;
mod chunks;
mod coins;
mod deployments;
mod descriptors;
mod filters;
mod header;
mod mempool;
mod messages;
mod network;
mod proofs;
mod scan;
mod scripts;
mod send;
mod statistics;
mod transactions;
mod waiting;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use outrigger_kit::waits::Waits;
use outrigger_sdk::options::NoOptions;
use outrigger_sdk::service::events::Event;
use outrigger_sdk::{Host, Plugin, plugin};

use crate::filters::FilterHeaders;
use crate::scan::Scan;
use crate::waiting::{Until, answer_due};

pub struct ChainPlugin {
    /// Whether the tip was ever recent. As in bitcoind, the initial block download ends only once.
    caught_up: AtomicBool,
    coin_scan: Scan,
    block_scan: Scan,
    filter_headers: FilterHeaders,
    waits: Arc<Waits<Until>>,
}

#[plugin(
    id = "chain",
    summary = "The chain and the mempool, raw transactions, addresses and descriptors",
    services = ["chain/1", "mempool/1", "log/1"],
    requires(embedded),
    events = ["tip"],
    restartable,
    methods = [
        activity,
        block_stats,
        blocks,
        coins,
        deployments,
        descriptors,
        filters,
        mempool,
        messages,
        network,
        proofs,
        scan,
        scripts,
        send,
        statistics,
        transactions,
        waiting,
    ]
)]
impl Plugin for ChainPlugin {
    fn new(host: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self {
            caught_up: AtomicBool::default(),
            coin_scan: Scan::default(),
            block_scan: Scan::default(),
            filter_headers: FilterHeaders::default(),
            waits: Waits::new(host, (), answer_due),
        })
    }

    fn cancel(&self, token: u64) {
        self.waits.cancel(token);
    }

    fn event(&self, event: Event) {
        match event {
            Event::TipChanged { .. } => self.waits.look(),
            Event::ShuttingDown => self.waits.close(),
            _ => {}
        }
    }

    fn quiesce(&self) {
        self.coin_scan.abort();
        self.block_scan.abort();
        self.waits.close();
    }

    fn stop(&self) {
        self.waits.end();
    }
}
