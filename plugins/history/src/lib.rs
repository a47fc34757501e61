//! The operation group `history`: gettransaction, listsinceblock, listtransactions, abandontransaction, setcomment,
//! getreceivedbyaddress, getreceivedbylabel, listreceivedbyaddress, listreceivedbylabel, listaddressgroupings.
//!
//! The plugin counts depths, confirmations and `lastblock` from the wallet's last block, never from the chain's tip. The tip
//! may be ahead of the wallet, and then a client that polls would skip transactions.
//!
//! The plugin writes JSON straight into the reply, because a history may have hundreds of thousands of entries.

mod alternates;
mod destination;
mod entry;
mod groupings;
mod json;
mod list;
mod received;
mod replaceable;
mod since;
mod single;
mod texts;
mod viewpoint;

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::{Host, Plugin, plugin};

pub struct HistoryPlugin;

#[plugin(
    id = "history",
    summary = "A wallet's transactions, and the payments to its addresses",
    services = ["chain/1", "wallet-read/1", "log/1"],
    optional = ["wallet-book/1", "wallet-pay/1"],
    restartable,
    methods = [groupings, list, received, since, single]
)]
impl Plugin for HistoryPlugin {
    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self)
    }
}

#[cfg(test)]
mod tests;
