//! The clients of all services for a plugin.

use std::sync::Arc;

#[cfg(doc)]
use outrigger_abi::ErrorKind;
use outrigger_abi::{ExportedService, RawService};
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
use crate::wire::{Blob, ServiceShape};
use crate::{Described, Result, Scope};

/// Declares the services of a host: [`Host`] with a client of each, and their descriptions.
macro_rules! services {
    ($($(#[doc = $doc:literal])* $name:ident: $service:ident,)*) => {
        /// The services that a plugin may use. All functions of a service that the configuration does not grant fail with
        /// [`ErrorKind::NotGranted`].
        #[derive(Clone)]
        pub struct Host {
            $($(#[doc = $doc])* pub $name: Arc<dyn $service>,)*
        }

        impl Host {
            /// Clients of the services. `service` returns the table of a service by name and revision, for example `chain/1`.
            pub fn reached_by(service: &dyn Fn(&str) -> RawService) -> Self {
                Self { $($name: Client::<dyn $service>::new(service),)* }
            }

            /// The table of a service by name and revision. A host in memory exports its services so.
            #[doc(hidden)]
            pub fn export(&self, service: &str) -> Option<ExportedService> {
                $(if service == <dyn $service as Described>::SHAPE.name {
                    return Some(ExportedService::new::<dyn $service>(self.$name.clone()));
                })*
                None
            }
        }

        /// The services of a host.
        pub const SERVICES: [&ServiceShape; [$(stringify!($name)),*].len()] = [$(<dyn $service as Described>::SHAPE),*];
    };
}

services! {
    /// Blocks, headers, coins.
    chain: Chain,
    /// Unconfirmed transactions.
    mempool: Mempool,
    /// Reads wallets.
    wallet: WalletRead,
    /// Addresses, labels and locks of wallets.
    book: WalletBook,
    /// Payments of wallets.
    pay: WalletPay,
    /// Imports and rescans.
    import: WalletImport,
    /// Creates, loads, encrypts and backs up wallets.
    admin: WalletAdmin,
    /// Exports private keys.
    keys: WalletKeys,
    /// Signs with the keys of wallets.
    signer: Signer,
    /// The state of the event queue.
    events: Events,
    /// The log.
    log: Log,
    /// Calls of methods.
    rpc: Rpc,
    /// The plugin's own store.
    store: Store,
    /// The plugin's own metrics.
    metrics: Metrics,
    /// The host and the plugin.
    info: HostInfo,
}

impl Host {
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
