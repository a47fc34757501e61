//! The operation group `webhooks`: posts the entries of wallets' logs to the operator's URLs, each at least once.
//!
//! The host resolves names, connects and checks certificates (`reach`), so the plugin needs no network access: isolate it in a process.

mod deliver;
mod http;
mod options;
mod queue;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use outrigger_sdk::service::Scope;
use outrigger_sdk::service::events::Event;
use outrigger_sdk::store::open_store;
use outrigger_sdk::{Host, Plugin, methods, net, plugin};
use serde_json::Value;

use deliver::Delivery;
use options::Options;

/// The version of the store.
const STORE_VERSION: u32 = 1;

pub struct WebhooksPlugin {
    host: Host,
    deliveries: Vec<Arc<Delivery>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[plugin(
    id = "webhooks",
    summary = "Posts what happens to wallets to URLs",
    services = ["wallet-read/1", "store/1", "log/1"],
    optional = ["metrics/1"],
    events = ["wallet-log"],
    restartable,
    methods = [self]
)]
impl Plugin for WebhooksPlugin {
    type Options = Options;

    fn new(host: Host, options: Options) -> Result<Self, String> {
        let deliveries = options.hooks()?.into_iter().map(|hook| Arc::new(Delivery::new(host.clone(), hook))).collect();
        Ok(Self { host, deliveries, threads: Mutex::default() })
    }

    fn start(&self) -> Result<(), String> {
        open_store(&self.host, Scope::NONE, STORE_VERSION, |_, _| Ok(()))?;
        let urls = self.deliveries.iter().map(|delivery| &*delivery.hook.url.text);
        queue::remove_others(&self.host, urls).map_err(|error| error.to_string())?;
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for delivery in &self.deliveries {
            net::check(&self.host, &delivery.hook.url.entry).map_err(|error| error.to_string())?;
            let delivery = delivery.clone();
            let run = move || delivery.run();
            threads.push(Builder::new().name("webhook".into()).spawn(run).map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    fn event(&self, event: Event) {
        if matches!(event, Event::WalletLogged { .. }) {
            self.deliveries.iter().for_each(|delivery| delivery.wake());
        }
    }

    fn quiesce(&self) {
        self.deliveries.iter().for_each(|delivery| delivery.quiesce());
    }

    fn stop(&self) {
        self.deliveries.iter().for_each(|delivery| delivery.stop());
        for thread in self.threads.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = thread.join();
        }
    }
}

#[methods(category = "Wallet")]
impl WebhooksPlugin {
    /// Lists the hooks: how many entries each has delivered since the plugin started, how many wait to be repeated, and how many were
    /// given up after three days (dead letters), of which the last hundred are shown.
    ///
    /// # Result
    /// [{"url": "...", "delivered": n, "waiting": n, "dead": n, "dead_letters": [...], "last_error": "..."}, ...]    (json array)
    #[method(inline, needs_tip = false)]
    fn listwebhooks(&self) -> Result<Vec<Value>, outrigger_sdk::RpcError> {
        Ok(self.deliveries.iter().map(|delivery| delivery.report()).collect())
    }
}

#[cfg(test)]
mod tests;
