//! The operation group `history`: gettransaction, listsinceblock, listtransactions, abandontransaction, setcomment,
//! getreceivedbyaddress, getreceivedbylabel, listreceivedbyaddress, listreceivedbylabel, listaddressgroupings.
//!
//! The plugin counts depths, confirmations and `lastblock` from the wallet's last block, never from the chain's tip. The tip
//! may be ahead of the wallet, and then a client that polls would skip transactions.
//!
//! The plugin writes JSON straight into the reply, because a history may have hundreds of thousands of entries.

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

use outrigger_sdk::standard::release;
use outrigger_sdk::{Call, CallContext, Host, Plugin, Reply, RpcError};
use serde_json::{Map, Value};

/// The plugin.
pub struct HistoryPlugin {
    host: Host,
}

impl Plugin for HistoryPlugin {
    fn new(host: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self { host })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let rules = release::rules(Some(call.release));
        let context = CallContext { host: &self.host, scope: call.scope, params: call.params, rules, plugin: &() };
        let answer = match call.method {
            "gettransaction" => single::get_transaction(&context),
            "listsinceblock" => since::list_since_block(&context),
            "listtransactions" => list::list_transactions(&context),
            "abandontransaction" => single::abandon_transaction(&context),
            "getreceivedbyaddress" => received::by_address(&context),
            "getreceivedbylabel" => received::by_label(&context),
            "listreceivedbyaddress" => received::list_by_address(&context),
            "listreceivedbylabel" => received::list_by_label(&context),
            "listaddressgroupings" => groupings::list_address_groupings(&context),
            "setcomment" => single::set_comment(&context),
            other => Err(RpcError::no_method(other)),
        };
        reply.send_json(answer);
    }
}

// A history is private. The allocator also serves long replies from huge pages.
outrigger_sdk::wipe_freed_memory!();

outrigger_sdk::export_plugin!(HistoryPlugin, include_str!("../manifest.json"));

#[cfg(test)]
mod tests;
