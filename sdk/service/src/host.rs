//! The clients of all services for a plugin.

use std::sync::Arc;

#[cfg(doc)]
use outrigger_abi::ErrorKind;
use outrigger_abi::RawService;
use outrigger_values::RpcError;
use serde_json::Value;

use crate::about::{About, HostInfo};
use crate::chain::Chain;
use crate::events::Events;
use crate::log::{Level, Log};
use crate::mempool::Mempool;
use crate::metrics::{Measure, Metrics, Sample};
use crate::rpc::{As, Rpc};
use crate::signer::Signer;
use crate::store::Store;
use crate::transport::Client;
use crate::wallet::{WalletAdmin, WalletBook, WalletImport, WalletKeys, WalletPay, WalletRead};
use crate::wire::Blob;
use crate::{Result, Scope};

/// The services that a plugin may use. All functions of a service that the configuration does not grant fail with
/// [`ErrorKind::NotGranted`].
#[derive(Clone)]
pub struct Host {
    /// Blocks, headers, coins.
    pub chain: Arc<dyn Chain>,
    /// Unconfirmed transactions.
    pub mempool: Arc<dyn Mempool>,
    /// Reads wallets.
    pub wallet: Arc<dyn WalletRead>,
    /// Addresses, labels and locks of wallets.
    pub book: Arc<dyn WalletBook>,
    /// Payments of wallets.
    pub pay: Arc<dyn WalletPay>,
    /// Imports and rescans.
    pub import: Arc<dyn WalletImport>,
    /// Creates, loads, encrypts and backs up wallets.
    pub admin: Arc<dyn WalletAdmin>,
    /// Exports private keys.
    pub keys: Arc<dyn WalletKeys>,
    /// Signs with the keys of wallets.
    pub signer: Arc<dyn Signer>,
    /// The state of the event queue.
    pub events: Arc<dyn Events>,
    /// The log.
    pub log: Arc<dyn Log>,
    /// Calls of methods.
    pub rpc: Arc<dyn Rpc>,
    /// The plugin's own store.
    pub store: Arc<dyn Store>,
    /// The plugin's own metrics.
    pub metrics: Arc<dyn Metrics>,
    /// The host and the plugin.
    pub info: Arc<dyn HostInfo>,
}

impl Host {
    /// Clients of the services. `service` returns the table of a service by name and revision, for example `chain/1`.
    pub fn reached_by(service: &dyn Fn(&str) -> RawService) -> Self {
        Self {
            chain: Client::<dyn Chain>::new(service),
            mempool: Client::<dyn Mempool>::new(service),
            wallet: Client::<dyn WalletRead>::new(service),
            book: Client::<dyn WalletBook>::new(service),
            pay: Client::<dyn WalletPay>::new(service),
            import: Client::<dyn WalletImport>::new(service),
            admin: Client::<dyn WalletAdmin>::new(service),
            keys: Client::<dyn WalletKeys>::new(service),
            signer: Client::<dyn Signer>::new(service),
            events: Client::<dyn Events>::new(service),
            log: Client::<dyn Log>::new(service),
            rpc: Client::<dyn Rpc>::new(service),
            store: Client::<dyn Store>::new(service),
            metrics: Client::<dyn Metrics>::new(service),
            info: Client::<dyn HostInfo>::new(service),
        }
    }

    /// The plugin's id, folder and limits, the network and the release ([`HostInfo::about`]).
    ///
    /// # Errors
    /// `Stale` after `stop`.
    pub fn about(&self) -> Result<About> {
        self.info.about(Scope::NONE)
    }

    /// The scope of a wallet by name ([`WalletRead::scope_of`]) for the plugin's own work, without the limits of a call's user.
    ///
    /// # Errors
    /// `WalletNotLoaded` if the wallet is not loaded, or the plugin has no access to it.
    pub fn wallet_scope(&self, name: &str) -> Result<Scope> {
        self.wallet.scope_of(Scope::NONE, name.to_owned()).map(Scope)
    }

    /// Calls a method ([`Rpc::call`]) with these parameters, an array or an object, and reads its result.
    ///
    /// # Errors
    /// The error of the method, or of the service.
    pub fn call(
        &self,
        scope: Scope,
        method: &str,
        params: &Value,
        account: As,
    ) -> std::result::Result<Value, RpcError> {
        let params = Blob(params.to_string().into_bytes());
        let json = self.rpc.call(scope, method.to_owned(), params, account)?.into_result()?;
        serde_json::from_slice(&json).map_err(|error| RpcError::internal(error.to_string()))
    }

    /// Records a sample of a metric of the plugin ([`Metrics::record`]). Errors are ignored.
    pub fn measure(&self, name: &str, help: &str, labels: &[(&str, &str)], measure: Measure) {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let _ =
            self.metrics.record(Scope::NONE, vec![Sample { name: name.into(), help: help.into(), labels, measure }]);
    }

    /// Writes a line to the host's log. Errors are ignored.
    pub fn log(&self, level: Level, message: impl Into<String>) {
        let _ = self.log.write(Scope::NONE, level, message.into());
    }
}
