//! The operation group `history`: gettransaction, listsinceblock, listtransactions, abandontransaction, setcomment,
//! getreceivedbyaddress, getreceivedbylabel, listreceivedbyaddress, listreceivedbylabel, listaddressgroupings, waitevents.
//!
//! The plugin counts depths, confirmations and `lastblock` from the wallet's last block, never from the chain's tip: with a tip
//! ahead of the wallet, a client that polls would skip transactions.
//!
//! The plugin writes JSON directly into the reply, because a history may have hundreds of thousands of entries.

mod destination;
mod entry;
mod groupings;
mod json;
mod list;
mod received;
mod since;
mod single;
mod viewpoint;
mod waiting;

use std::sync::Arc;

use outrigger_kit::waits::Waits;
use outrigger_sdk::options::NoOptions;
use outrigger_sdk::service::events::Event;
use outrigger_sdk::{Host, Plugin, plugin};
use waiting::{Wanted, answer_due};

pub struct HistoryPlugin {
    waits: Arc<Waits<Wanted>>,
}

#[plugin(
    id = "history",
    summary = "A wallet's transactions, and the payments to its addresses",
    services = ["chain/1", "wallet-read/1", "log/1"],
    optional = ["wallet-book/1", "wallet-pay/1"],
    events = ["wallet-log"],
    restartable,
    methods = [groupings, list, received, since, single, waiting]
)]
impl Plugin for HistoryPlugin {
    fn new(host: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self { waits: Waits::new(host, (), |waits: &Waits<Wanted>| answer_due(waits, None)) })
    }

    fn cancel(&self, token: u64) {
        self.waits.cancel(token);
    }

    fn event(&self, event: Event) {
        match event {
            Event::WalletLogged { wallet, .. } => answer_due(&self.waits, Some(&wallet)),
            Event::ShuttingDown => self.waits.close(),
            _ => {}
        }
    }

    fn quiesce(&self) {
        self.waits.close();
    }

    fn stop(&self) {
        self.waits.end();
    }
}

#[cfg(test)]
mod tests;
