//! The operation group `history`: gettransaction, listsinceblock, listtransactions, abandontransaction.
//!
//! Depths, confirmations and `lastblock` are counted from the block up to which the wallet has followed the chain, never
//! from the chain's tip: two snapshots of one call could disagree, and a poller would skip transactions.

mod entry;
mod error;
mod json;
mod list;
mod since;
mod single;
mod texts;
mod viewpoint;

use bitcoin::Network;
use outrigger_sdk::params::{Params, flag};
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::wallet::WalletInfo;
use outrigger_sdk::{Call, Host, Plugin, Reply, RpcError};
use serde_json::{Map, Value};

use error::HistoryError;
use viewpoint::WalletViewpoint;

/// The plugin.
pub struct HistoryPlugin {
    host: Host,
}

impl Plugin for HistoryPlugin {
    fn new(host: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self { host })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let context = CallContext { host: &self.host, scope: call.scope, params: &call.params };
        let answer = match call.method {
            "gettransaction" => single::get_transaction(&context),
            "listsinceblock" => since::list_since_block(&context),
            "listtransactions" => list::list_transactions(&context),
            "abandontransaction" => single::abandon_transaction(&context),
            other => Err(RpcError::no_method(other).into()),
        };
        reply.send_json(answer.map_err(RpcError::from));
    }
}

/// One call: the services that it asks, its scope and its parameters.
struct CallContext<'a> {
    host: &'a Host,
    scope: Scope,
    params: &'a Params,
}

impl CallContext<'_> {
    /// The wallet of the call.
    fn wallet(&self) -> Result<WalletInfo, HistoryError> {
        Ok(self.host.wallet.info(self.scope)?)
    }

    /// From where transactions are looked at; watched scripts count by default in a wallet without private keys.
    fn viewpoint(&self, wallet: &WalletInfo, watch_only: &Value) -> Result<WalletViewpoint, HistoryError> {
        let watch_only = match watch_only {
            Value::Null => !wallet.private_keys_enabled,
            given => flag(given)?,
        };
        Ok(WalletViewpoint { synced: wallet.synced, watch_only, network: self.network()? })
    }

    fn network(&self) -> Result<Network, HistoryError> {
        Ok(self.host.chain.network(self.scope)?)
    }
}

outrigger_sdk::export_plugin!(HistoryPlugin, include_str!("../manifest.json"));

#[cfg(test)]
mod tests;
