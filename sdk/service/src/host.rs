//! All services together, as a plugin holds them.

use std::sync::Arc;

#[cfg(doc)]
use outrigger_abi::ErrorKind;
use outrigger_abi::RawService;

use crate::Scope;
use crate::chain::{Chain, ChainClient};
use crate::events::{Events, EventsClient};
use crate::log::{Level, Log, LogClient};
use crate::mempool::{Mempool, MempoolClient};
use crate::node_rpc::{NodeRpc, NodeRpcClient};
use crate::signer::{Signer, SignerClient};
use crate::wallet::{Wallet, WalletClient};

/// The services a plugin may use. One that the configuration does not grant fails on every function with
/// [`ErrorKind::NotGranted`].
#[derive(Clone)]
pub struct Host {
    /// Blocks, headers, coins.
    pub chain: Arc<dyn Chain>,
    /// Unconfirmed transactions.
    pub mempool: Arc<dyn Mempool>,
    /// Wallets.
    pub wallet: Arc<dyn Wallet>,
    /// Signatures by wallets' keys.
    pub signer: Arc<dyn Signer>,
    /// The state of the event queue.
    pub events: Arc<dyn Events>,
    /// The log.
    pub log: Arc<dyn Log>,
    /// The methods of the bitcoind that the host stands in front of.
    pub node_rpc: Arc<dyn NodeRpc>,
}

impl Host {
    /// The services that are reached through the tables that `service` gives by name and revision.
    pub fn reached_by(service: &dyn Fn(&str) -> RawService) -> Self {
        Self {
            chain: Arc::new(ChainClient::new(service("chain/1"))),
            mempool: Arc::new(MempoolClient::new(service("mempool/1"))),
            wallet: Arc::new(WalletClient::new(service("wallet/1"))),
            signer: Arc::new(SignerClient::new(service("signer/1"))),
            events: Arc::new(EventsClient::new(service("events/1"))),
            log: Arc::new(LogClient::new(service("log/1"))),
            node_rpc: Arc::new(NodeRpcClient::new(service("node-rpc/1"))),
        }
    }

    /// Writes a line to the host's log. A log that cannot be written stops nothing.
    pub fn log(&self, level: Level, message: impl Into<String>) {
        let _ = self.log.write(Scope::NONE, level, message.into());
    }
}
